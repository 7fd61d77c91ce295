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

#include "node/array_proof.hpp"
#include "node/rdma_end.hpp"
#include "raid/staging.hpp"

namespace weft::node {

struct ArrayLinkOptions {
    std::uint32_t under_way_max = 64;  ///< transfers posted, of one connection
    std::size_t waiting_max = 4096;    ///< transfers waiting for one connection
    std::uint16_t reads = 16;          ///< under way at a time
    bool checksums = false;            ///< ask for MPA's; a peer that does gets them
    /// How long a proof, or a transfer that was posted, may take before the connection is cut.
    Duration patience = std::chrono::seconds(10);
};

/// Memory that is registered once for all the transfers that come into it.
struct ReadyMemory {
    Buffer memory;
    std::unique_ptr<verbs::MemoryRegion> region;
};

class InboundLink;
class OutboundLink;

class ArrayLinkOwner {
public:
    virtual void proved(InboundLink& link) = 0;
    virtual void proved(OutboundLink& link) = 0;
    /// `why` is a sentence. The link may be destroyed from inside.
    virtual void ended(InboundLink& link, const std::string& why) = 0;
    virtual void ended(OutboundLink& link, const std::string& why) = 0;
    virtual const std::vector<ReadyMemory>& ready_memory() const = 0;

protected:
    ~ArrayLinkOwner() = default;
};

/// What both ends have.
class ArrayLink : public RdmaEnd {
public:
    bool is_proved() const { return proved_; }
    const wire::ArrayGreeting& greeting() const { return greeting_; }

protected:
    ArrayLink(World& world, verbs::Device& device, ArrayLinkOwner& owner,
              const ArrayLinkOptions& options, const ArraySecret& secret);

    /// The queue pair, with one receive, and no rights for the peer.
    Result<void> prepare_link(std::shared_ptr<verbs::ProtectionDomain> domain,
                              std::uint32_t receive_size);
    Result<void> send_inline(ConstBuffer octets);
    verbs::ConnectOptions connect_options(ConstBuffer private_data) const;

    World& world_;
    std::shared_ptr<verbs::ProtectionDomain> domain_;
    ArrayLinkOwner& owner_;
    const ArrayLinkOptions options_;
    const ArraySecret secret_;
    wire::ArrayGreeting greeting_;
    wire::ArrayWelcome welcome_;
    std::unique_ptr<Memory> received_;
    std::unique_ptr<Timer> timer_;
    bool proved_ = false;
};

/// The end that accepts: its memory is what transfers are about.
class InboundLink final : public ArrayLink {
public:
    InboundLink(World& world, verbs::Device& device, ArrayLinkOwner& owner,
                const ArrayLinkOptions& options, const ArraySecret& secret)
        : ArrayLink(world, device, owner, options, secret) {}

    /// The greeting was judged already.
    Result<void> accept(verbs::ConnectionRequest& request, const wire::ArrayGreeting& greeting,
                        wire::Epoch epoch, std::shared_ptr<verbs::ProtectionDomain> domain);
    bool take_back(SteeringTag tag) { return queue_pair().give_back(tag); }

private:
    void completed(const verbs::Completion& completion) override;
    void ended(std::optional<Error> why, bool rejected) override;
    void refuse(std::string why);
};

/// The end that connects, and begins all transfers.
class OutboundLink final : public ArrayLink {
public:
    enum class Way : std::uint8_t { fetch, send };
    struct Job {
        raid::PeerTransfer* transfer = nullptr;
        Way way{};
        unsigned attempts = 0;  ///< connections that ended under it
    };

    OutboundLink(World& world, verbs::Device& device, ArrayLinkOwner& owner,
                 const ArrayLinkOptions& options, const ArraySecret& secret)
        : ArrayLink(world, device, owner, options, secret) {}

    Result<void> connect(const Address& where, wire::ArrayGreeting greeting,
                         std::shared_ptr<verbs::ProtectionDomain> domain);
    /// False if too many wait.
    bool add(const Job& job);
    /// All that has not ended, in the order it was asked for; the link does nothing more.
    std::vector<Job> take_jobs();
    /// Whether what take_jobs() gives may be tried over another connection: this one worked, and
    /// ended for a reason that was not theirs.
    bool worth_another() const { return proved_ && !hung_; }

private:
    struct Posted {
        Job job;
        std::unique_ptr<verbs::MemoryRegion> region;  ///< made for this one
        Instant since{};
    };

    void completed(const verbs::Completion& completion) override;
    void started() override;
    void ended(std::optional<Error> why, bool rejected) override;
    void check_ready();
    void post_what_may();
    Result<void> post(const Job& job);
    Result<verbs::LocalMemory> sink_of(Buffer memory, Posted& posted);
    void confirm_soon();
    void confirm();
    void ended_through(std::uint64_t serial);
    void blame(const verbs::Completion& completion);
    void look_at_the_clock();
    void cut(std::string why);

    std::deque<Job> waiting_;
    std::deque<Posted> posted_;
    std::uint64_t first_serial_ = 1;     ///< of posted_'s front
    std::uint64_t confirmed_up_to_ = 0;  ///< the last one that a Read was posted at or behind
    std::uint32_t confirmations_ = 0;    ///< empty Reads under way
    bool confirming_ = false;            ///< at the end of this turn
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
    bool clock_set_ = false;
    bool hung_ = false;
};

}  // namespace weft::node
