// SPDX-License-Identifier: Apache-2.0
// One connection between two parties of an array, from either end: see array_links.hpp for what it
// is for, wire/array_connection.hpp for how it is proved.
//
// The end that accepts opens its memory only when the proof has been checked, and says so by a
// message of its own: what came right behind the proof would find all closed.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "node/array_link_facts.hpp"
#include "node/array_proof.hpp"
#include "node/rdma_end.hpp"
#include "raid/staging.hpp"

namespace weft::node {

struct ArrayLinkOptions {
    std::uint32_t under_way_max = 64;  ///< transfers posted, of one connection
    std::size_t waiting_max = 4096;    ///< transfers waiting for one connection
    std::uint16_t reads = 16;          ///< under way at a time
    bool checksums = false;            ///< ask for MPA's; a peer that does gets them
    /// How long a connection may take to be made and proved; and how long one that is proved may
    /// move no byte, either way, while transfers are under way. Then it is cut.
    Duration patience = std::chrono::seconds(10);
    /// How long a transfer is begun again over one connection after the other, from the end of the
    /// first; then it has timed out. Less than a controller waits for the end of an order, or it
    /// would take the box that tries for lost.
    Duration retry_for = std::chrono::seconds(10);
};

/// Memory that is registered once for all the transfers that come into it.
struct ReadyMemory {
    Buffer memory;
    std::unique_ptr<verbs::MemoryRegion> region;
};

/// A transfer somebody asked for, until it has ended.
struct TransferJob {
    enum class Way : std::uint8_t { fetch, send };
    raid::PeerTransfer* transfer = nullptr;
    Way way{};
    std::optional<Instant> again_since{};  ///< when a connection first ended under it
    unsigned hung = 0;                     ///< connections that moved nothing with it under way
    unsigned unexplained = 0;              ///< that ended, and the peer did not say over what

    /// Whether it may be the cause of such ends. It is then posted with no other, so that it ends
    /// no connection but its own, and the others get on.
    bool goes_alone() const { return unexplained >= 2; }
};

/// What both ends have.
class ArrayLink : public RdmaEnd {
public:
    bool is_proved() const { return proved_; }
    const wire::ArrayGreeting& greeting() const { return greeting_; }
    /// The Terminate that ended it, if one did.
    const std::optional<verbs::Termination>& termination() const {
        return queue_pair().termination();
    }

protected:
    ArrayLink(World& world, verbs::Device& device, const ArrayLinkOptions& options,
              const ArraySecret& secret);

    /// The queue pair, with one receive, and no rights for the peer.
    Result<void> prepare_link(std::shared_ptr<verbs::ProtectionDomain> domain,
                              std::uint32_t receive_size);
    Result<void> send_inline(ConstBuffer octets);
    verbs::ConnectOptions connect_options(ConstBuffer private_data) const;
    /// Why it ended, a sentence; the Terminate's, if there was one.
    std::string reason(const std::optional<Error>& why) const;

    World& world_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    const ArrayLinkOptions options_;
    const ArraySecret secret_;
    wire::ArrayGreeting greeting_;
    wire::ArrayWelcome welcome_;
    std::unique_ptr<Memory> received_;
    std::unique_ptr<Timer> timer_;
    bool proved_ = false;
};

class InboundLink;

class InboundLinkOwner {
public:
    virtual void proved(InboundLink& link) = 0;
    /// `why` is a sentence. The link may be destroyed from inside.
    virtual void ended(InboundLink& link, const std::string& why) = 0;

protected:
    ~InboundLinkOwner() = default;
};

/// The end that accepts: its memory is what transfers are about.
class InboundLink final : public ArrayLink {
public:
    InboundLink(World& world, verbs::Device& device, InboundLinkOwner& owner,
                const ArrayLinkOptions& options, const ArraySecret& secret)
        : ArrayLink(world, device, options, secret), owner_(owner) {}

    /// The greeting was judged already.
    Result<void> accept(verbs::ConnectionRequest& request, const wire::ArrayGreeting& greeting,
                        wire::Epoch epoch, std::shared_ptr<verbs::ProtectionDomain> domain);
    bool take_back(SteeringTag tag) { return queue_pair().give_back(tag); }
    void describe(ArrayLinkFacts& facts) const;
    void count_traffic(ArrayLinkCounters& counters) const;

private:
    void completed(const verbs::Completion& completion) override;
    void ended(std::optional<Error> why, bool rejected) override;
    void refuse(const std::string& why) { owner_.ended(*this, why); }

    InboundLinkOwner& owner_;
};

class OutboundLink;

class OutboundLinkOwner {
public:
    /// How a connection ended that was proved, or an attempt to make one.
    enum class End : std::uint8_t {
        lost,     ///< by the network, by either side, by a Terminate
        stalled,  ///< it moved nothing for too long
    };
    virtual void proved(OutboundLink& link) = 0;
    /// `why` is a sentence. The link may be destroyed from inside.
    virtual void ended(OutboundLink& link, End how, const std::string& why) = 0;
    /// From which it takes what to do, as long as there is room.
    virtual std::deque<TransferJob>& waiting() = 0;
    virtual ArrayLinkCounters& counters() = 0;
    virtual const std::vector<ReadyMemory>& ready_memory() const = 0;

protected:
    ~OutboundLinkOwner() = default;
};

/// The end that connects, and begins all transfers.
class OutboundLink final : public ArrayLink {
public:
    using Way = TransferJob::Way;

    OutboundLink(World& world, verbs::Device& device, OutboundLinkOwner& owner,
                 const ArrayLinkOptions& options, const ArraySecret& secret)
        : ArrayLink(world, device, options, secret), owner_(owner) {}

    Result<void> connect(const Address& where, wire::ArrayGreeting greeting,
                         std::shared_ptr<verbs::ProtectionDomain> domain);
    /// Takes from what waits as much as there is room for. Never tells of an end from inside.
    void post_what_may();
    /// All that is under way, in the order it was asked for; the link does nothing more.
    std::vector<TransferJob> take_posted();
    bool is_busy() const { return !posted_.empty(); }
    /// For how long nothing has moved with something under way.
    Duration still_for() const;
    /// Whether anything that was asked of this connection has ended well.
    bool has_served() const { return served_; }
    void describe(ArrayLinkFacts& facts) const;

private:
    struct Posted {
        TransferJob job;
        std::unique_ptr<verbs::MemoryRegion> region;  ///< made for this one
        Instant since{};
    };
    using End = OutboundLinkOwner::End;

    void completed(const verbs::Completion& completion) override;
    void started() override;
    void ended(std::optional<Error> why, bool rejected) override;
    void check_ready();
    bool has_room_for(const TransferJob& job) const;
    Result<void> post(const TransferJob& job);
    Result<verbs::LocalMemory> sink_of(Buffer memory, Posted& posted);
    void confirm_soon();
    void confirm();
    void ended_through(std::uint64_t serial);
    void watch();
    bool moves();
    void look_at_the_clock();
    std::uint32_t resent_per_mille() const;
    void cut(const std::string& why, End how = End::lost) { owner_.ended(*this, how, why); }

    OutboundLinkOwner& owner_;
    std::deque<Posted> posted_;
    std::uint64_t first_serial_ = 1;     ///< of posted_'s front
    std::uint64_t confirmed_up_to_ = 0;  ///< the last one that a Read was posted at or behind
    std::uint32_t confirmations_ = 0;    ///< empty Reads under way
    bool confirming_ = false;            ///< at the end of this turn
    bool served_ = false;
    bool watching_ = false;
    std::uint64_t octets_seen_ = 0;  ///< that had moved when it was last looked at
    Instant moved_at_{};             ///< when more was seen than before
    Duration last_took_{};
    std::optional<StreamCondition> network_before_, network_last_;  ///< at the last two looks
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
