// SPDX-License-Identifier: Apache-2.0
// The transfers to and from one peer that this party begins, from being asked for to their end.
// They go over one connection after the other: a connection that ends, for whatever reason, fails
// nothing by itself.
//
//     refused      the peer's Terminate quotes the transfer's steering tag     access_denied
//     unreachable  a fresh connection was wanted, and could not be had         disconnected
//     timed out    connected, and nothing moved for the link's patience,       timed_out
//                  twice; or begun again and again for ArrayLinkOptions::retry_for
//
// All other transfers that were under way begin again over a fresh connection.
//
// A connection that moves nothing for some seconds is not waited for: another is tried beside it,
// and takes over all that is under way when it proves. A peer may be in several networks, of which
// the first is preferred. Where a connection over one is not made within a second, the next is
// tried, too; and as long as the one in use is not over the preferred network, that is tried now
// and then.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "node/array_link.hpp"

namespace weft::node {

class OutboundPeer;

class OutboundPeerOwner {
public:
    /// With which to come to that peer; none if this party has no name yet.
    virtual std::optional<wire::ArrayGreeting> greeting_to(
        const wire::ArrayConnectionEnd& peer) const = 0;
    virtual const std::vector<ReadyMemory>& ready_memory() const = 0;
    virtual void connected(const OutboundPeer& peer) = 0;
    /// A connection that was proved, or an attempt to have one. `why` is a sentence.
    virtual void connection_ended(const OutboundPeer& peer, bool was_proved,
                                  const std::string& why) = 0;

protected:
    ~OutboundPeerOwner() = default;
};

class OutboundPeer final : private OutboundLinkOwner {
public:
    struct Surroundings {
        World& world;
        verbs::Device& device;
        std::shared_ptr<verbs::ProtectionDomain> domain;
        ArrayLinkOptions options;
    };

    /// `where`: an address in each network, the preferred first. Without any the peer may come, and
    /// is never gone to.
    OutboundPeer(const Surroundings& around, OutboundPeerOwner& owner,
                 const wire::ArrayConnectionEnd& end, const ArraySecret& secret,
                 std::vector<Address> where);
    OutboundPeer(const OutboundPeer&) = delete;
    OutboundPeer& operator=(const OutboundPeer&) = delete;
    ~OutboundPeer() = default;

    const wire::ArrayConnectionEnd& end() const { return end_; }
    const ArraySecret& secret() const { return secret_; }
    const std::vector<Address>& where() const { return where_; }
    bool is_connected() const { return link_ != nullptr; }

    /// `disconnected` where the peer cannot be gone to, `exhausted` where too many wait. Else the
    /// transfer is told its end later, never from inside; then this may be destroyed.
    Result<void> add(const TransferJob& job);
    /// The connection is gone when this returns, and with it what it had of anybody's memory.
    std::vector<TransferJob> take_all();
    ArrayLinkFacts facts() const;

private:
    enum class State : std::uint8_t {
        idle,        ///< no connection, and nothing waits for one
        connecting,  ///< no connection; at least one is being made or proved
        connected,   ///< perhaps others are being made, over other networks
        pausing,     ///< the last ones ended at once: the next is made when it is time
    };
    /// A connection that is being made and proved.
    struct Attempt {
        std::size_t place = 0;
        std::unique_ptr<OutboundLink> link;
    };
    struct Place {
        bool tried = false;  ///< in vain, since there was a connection or need of one
        Instant last_attempt{};
    };
    struct Ended {
        raid::PeerTransfer* transfer = nullptr;
        Error why{};
    };

    // OutboundLinkOwner
    void proved(OutboundLink& link) override;
    void ended(OutboundLink& link, End how, const std::string& why) override;
    std::deque<TransferJob>& waiting() override { return waiting_; }
    ArrayLinkCounters& counters() override { return counters_; }
    const std::vector<ReadyMemory>& ready_memory() const override { return owner_.ready_memory(); }

    OutboundLinkOwner& owner_of_link() { return *this; }
    Result<void> connect();
    Result<void> attempt(std::size_t place);
    bool is_attempted(std::size_t place) const;
    bool try_next_place();
    void attempt_failed(std::vector<Ended>& ended);
    void connection_lost(std::unique_ptr<OutboundLink> gone, End how, const std::string& why,
                         std::vector<Ended>& ended);
    void leave_for(Attempt attempt, std::vector<Ended>& ended);
    void connect_again(bool was_of_use, std::vector<Ended>& ended);
    void look();
    void look_soon();
    void sort_out(std::vector<TransferJob> posted, End how,
                  const std::optional<verbs::Termination>& said, bool has_served,
                  std::vector<Ended>& ended);
    /// What becomes of one that has not ended: nothing, where it is begun again.
    std::optional<Error> judge(TransferJob& job, End how, bool explained);
    std::optional<Error> begun_too_long(TransferJob& job) const;
    void end_as(const Error& why, const TransferJob& job, std::vector<Ended>& ended);
    void end_waiting(Error why, std::vector<Ended>& ended);
    void pause_over();
    void note_end(const std::string& why);
    void count(const Error& why);
    static void tell(const std::vector<Ended>& ended);

    World& world_;
    verbs::Device& device_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    const ArrayLinkOptions options_;
    OutboundPeerOwner& owner_;
    const wire::ArrayConnectionEnd end_;
    const ArraySecret secret_;
    const std::vector<Address> where_;
    std::vector<Place> places_;  ///< of each address
    State state_ = State::idle;
    std::deque<TransferJob> waiting_;
    std::optional<Instant> trying_since_;  ///< no attempt has led to a connection since
    unsigned fruitless_ = 0;  ///< connections in a row that were proved and ended before any use
    ArrayLinkCounters counters_;
    std::string last_end_;
    Instant last_end_at_{};
    std::unique_ptr<Timer> pause_;
    std::unique_ptr<Timer> look_;  ///< whether another connection is to be tried
    bool looking_ = false;
    std::size_t place_ = 0;               ///< of link_
    std::unique_ptr<OutboundLink> link_;  ///< proved
    std::vector<Attempt> attempts_;
};

}  // namespace weft::node
