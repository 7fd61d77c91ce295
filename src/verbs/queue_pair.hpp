// SPDX-License-Identifier: Apache-2.0
// A queue pair: work goes in by post(), completions come out; in between a connection's session
// moves the bytes. The queue pair outlives its connections and can be given another.
#pragma once

#include <memory>
#include <optional>

#include "iwarp/session.hpp"
#include "verbs/completion_queue.hpp"
#include "verbs/device_core.hpp"
#include "verbs/protection_domain.hpp"
#include "verbs/queue_pair_life.hpp"
#include "verbs/receive_queue.hpp"
#include "verbs/send_queue.hpp"
#include "verbs/shared_receive_queue.hpp"

namespace weft::verbs {

/// The connection, as its queue pair sees it.
class QueuePairLink {
public:
    virtual void wake() = 0;
    virtual void peer_spoke() = 0;
    /// It has failed before there was a session that could: nothing is left to be connected.
    virtual void queue_pair_failed() = 0;
    /// The queue pair is going away, and with it the session.
    virtual void queue_pair_gone() = 0;
    /// Ends at once, without a last word, and takes back all that is lent.
    virtual void drop_stream() = 0;

protected:
    ~QueuePairLink() = default;
};

class QueuePairObject final : public QueuePair,
                              public iwarp::SessionOwner,
                              private ReceiveWaiter,
                              private MemoryWaiter {
public:
    /// The options have been checked, and their objects are this device's.
    QueuePairObject(std::shared_ptr<DeviceCore> core, const QueuePairOptions& options);
    ~QueuePairObject() override;

    std::uint32_t number() const override { return number_; }
    QueuePairState state() const override { return state_; }
    Result<void> post(const SendRequest& request) override;
    Result<void> post(const ReceiveRequest& request) override;
    std::uint64_t sends_ended() const override { return sends_.ended(); }
    std::uint64_t writes_received() const override {
        return session_ ? session_->writes_received() : 0;
    }
    bool expects_completions() const override {
        return !sends_.empty() || taken_ || (shared_ ? shared_->posted() : receives_.posted()) > 0;
    }
    Result<void> check(std::span<const SendRequest> requests) const override;
    void fail() override;
    const std::optional<Termination>& termination() const override { return termination_; }
    Result<void> reset() override;
    bool give_back(SteeringTag tag) override;
    void limit_peer(Rights rights) override { remote_limit_ = rights; }

    // For its connection.
    bool is_linked() const { return link_ != nullptr; }
    void link(QueuePairLink& link) { link_ = &link; }
    /// Full operation begins. The session stays until unlink().
    iwarp::Session& begin_session(const iwarp::Terms& terms, const iwarp::SessionOptions& options);
    iwarp::Session* session() { return session_.get(); }
    void note(LifeEvent event) { step(event, {}, AsyncEvent::Kind::queue_pair_failed); }
    /// The connection is going away: no byte of ours is lent any more, and what was completes.
    void unlink();

private:
    std::optional<iwarp::Message> next_work() override;
    void work_sent() override;
    void read_ended(std::uint64_t original) override;
    void read_failed() override { sends_.read_failed(); }  // reported with what is flushed then
    const iwarp::PostedReceive* take_receive() override;
    void receive_ended(const iwarp::ReceiveOutcome& outcome) override;
    void wake() override;
    void peer_spoke() override;
    void session_failed(const wire::TerminateControl& why, iwarp::FaultOf whose,
                        const iwarp::Quoted& about) override;
    void receive_posted() override;
    void memory_released() override { wake(); }

    /// `blame` and `kind`: what to say if this step flushes work or raises an event.
    void step(LifeEvent event, const Blame& blame, AsyncEvent::Kind kind);
    void flush(const Blame& blame);
    void flush_receives();
    void report_ended_sends();
    void report(CompletionQueueObject& queue, Completion completion, std::uint32_t* unpolled);
    void end_receive(const iwarp::ReceiveOutcome& outcome);
    void drop_taken();

    std::shared_ptr<DeviceCore> core_;
    const std::uint32_t number_;
    std::shared_ptr<ProtectionDomainObject> domain_;
    std::shared_ptr<CompletionQueueObject> send_completions_;
    std::shared_ptr<CompletionQueueObject> receive_completions_;
    std::shared_ptr<SharedReceiveQueueObject> shared_;
    SendQueue sends_;
    ReceiveQueue receives_;  ///< of its own; empty where they are shared
    ReceiveQueue::Slot* taken_ = nullptr;

    Rights remote_limit_ = iwarp::every_remote_right;
    QueuePairState state_ = QueuePairState::idle;
    QueuePairLink* link_ = nullptr;
    std::unique_ptr<iwarp::Session> session_;
    std::optional<Termination> termination_;
};

}  // namespace weft::verbs
