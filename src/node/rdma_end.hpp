// SPDX-License-Identifier: Apache-2.0
// One end of an RDMA connection with all it needs: a queue pair, a completion queue and the memory
// registered for it. Whoever derives from it says what to do with each completion.
//
// It is driven by notifications alone, so the same code serves a loop that sleeps and one that
// spins.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>

#include "weft/rdma.hpp"

namespace weft::node {

struct RdmaEndOptions {
    std::uint32_t sends = 128;
    std::uint32_t receives = 128;
    std::uint32_t inline_bytes = 64;
    std::shared_ptr<verbs::ProtectionDomain> domain{};  ///< none: it has one of its own
    bool sends_own_memory = false;                      ///< see QueuePairOptions
};

class RdmaEnd : private verbs::ConnectionEvents {
public:
    virtual ~RdmaEnd() { *self_ = nullptr; }
    RdmaEnd(const RdmaEnd&) = delete;
    RdmaEnd& operator=(const RdmaEnd&) = delete;

    bool is_over() const { return over_; }
    const verbs::ConnectionFacts& facts() const { return connection_->facts(); }
    ConstBuffer peer_private_data() const { return connection_->peer_private_data(); }

protected:
    explicit RdmaEnd(verbs::Device& device) : device_(device) {}

    /// Makes the queue pair. Receives may be posted from then on.
    Result<void> prepare(const RdmaEndOptions& options);
    Result<void> connect(const Address& address, const verbs::ConnectOptions& options);
    Result<void> accept(verbs::ConnectionRequest& request, const verbs::ConnectOptions& options);
    void disconnect() { connection_->disconnect(); }

    /// Zeroed memory of our own, registered, for as long as this lives.
    struct Memory {
        struct Free {
            void operator()(std::byte* taken) const { std::free(taken); }
        };
        std::unique_ptr<std::byte[], Free> owned;
        Buffer bytes;
        std::unique_ptr<verbs::MemoryRegion> region;
    };
    /// Code::exhausted if there is not so much: a peer may have asked for it.
    Result<std::unique_ptr<Memory>> make_memory(std::size_t size, Rights rights);

    verbs::QueuePair& queue_pair() { return *queue_pair_; }
    const verbs::QueuePair& queue_pair() const { return *queue_pair_; }
    verbs::ConnectionTraffic traffic() const {
        return connection_ ? connection_->traffic() : verbs::ConnectionTraffic{};
    }
    std::optional<StreamCondition> condition() const {
        return connection_ ? connection_->condition() : std::nullopt;
    }

    virtual void completed(const verbs::Completion& completion) = 0;
    virtual void started() {}
    /// `why` is empty after an orderly end. Destroying this here is fine.
    virtual void ended(std::optional<Error> why, bool rejected) = 0;

private:
    void established() override;
    void rejected() override;
    void failed(Error why) override;
    void disconnected() override;
    void drain();
    void end(std::optional<Error> why, bool was_rejected);

    verbs::Device& device_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    std::shared_ptr<verbs::CompletionQueue> completions_;
    std::unique_ptr<verbs::QueuePair> queue_pair_;
    std::unique_ptr<verbs::Connection> connection_;
    std::shared_ptr<RdmaEnd*> self_ = std::make_shared<RdmaEnd*>(this);
    bool over_ = false;
};

}  // namespace weft::node
