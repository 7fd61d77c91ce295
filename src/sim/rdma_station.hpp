// SPDX-License-Identifier: Apache-2.0
// One machine of an RDMA run: its device, its memory and the regions cut out of it, with strips
// that belong to nobody between them.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "sim/rdma_habits.hpp"
#include "sim/rdma_memory_model.hpp"
#include "sim/world.hpp"
#include "weft/rdma.hpp"

namespace weft::sim {

/// Memory that a tag opens, as far as the application knows.
struct Grant {
    SteeringTag tag{};
    std::uint64_t first = 0;  ///< the address of its first byte
    Stretches stretches;
    std::size_t size = 0;
    Rights rights{};
    bool usable = false;
    bool changing = false;            ///< work is under way that opens or closes it
    bool can_be_invalidated = false;  ///< by work, as windows of the second kind can
    unsigned uses = 0;                ///< by work under way

    verbs::LocalMemory local(std::size_t offset, std::size_t count) const {
        return {first + offset, static_cast<std::uint32_t>(count), tag};
    }
    verbs::RemoteMemory remote(std::size_t offset) const { return {first + offset, tag}; }
};

/// As long as it lives its grant is in use.
class GrantUse {
public:
    explicit GrantUse(std::shared_ptr<Grant> grant) : grant_(std::move(grant)) { ++grant_->uses; }
    ~GrantUse() { --grant_->uses; }
    GrantUse(const GrantUse&) = delete;
    GrantUse& operator=(const GrantUse&) = delete;

private:
    std::shared_ptr<Grant> grant_;
};

/// A tag that opens nothing, though its index is in use.
inline SteeringTag with_other_key(SteeringTag tag) {
    return static_cast<SteeringTag>(static_cast<std::uint32_t>(tag) ^ 0x80);
}

/// Part of a grant.
struct Place {
    std::shared_ptr<Grant> grant;
    std::size_t offset = 0;
    Stretches stretches;
};

struct PostedReceive {
    std::uint64_t id = 0;  ///< counts up on each machine
    std::shared_ptr<Lease> lease;
    bool is_bad = false;  ///< a tag of it opens nothing
};

class Station {
public:
    Station(World& world, const std::string& name, const RdmaHabits& all_habits,
            const RdmaHabits::Machine& habits, Buffer memory, Complaints& complaints);

    World& world;
    Complaints& complaints;
    const RdmaHabits::Machine& habits;
    std::string name;
    MemoryModel memory;
    std::unique_ptr<verbs::Device> device;
    std::shared_ptr<verbs::ProtectionDomain> domain;
    std::shared_ptr<verbs::ProtectionDomain> other_domain;
    std::shared_ptr<verbs::SharedReceiveQueue> shared_receives;
    std::deque<PostedReceive> shared_posted;  ///< in order, those not completed
    std::uint64_t receives_posted = 0;
    std::vector<std::shared_ptr<Grant>> regions;
    std::shared_ptr<Grant>
        receiving;  ///< a region for receives alone, so that there is always room
    std::size_t receive_size;
    std::shared_ptr<Grant> foreign;  ///< of the other domain
    std::function<void(const verbs::AsyncEvent&)> on_event;
    std::function<void(const verbs::Completion&)> on_completion;

    Random& random() { return world.chance(); }
    /// Bytes nobody else has, to be given to a fast registration.
    Stretches carve(std::size_t size, std::size_t pieces);
    std::vector<Buffer> buffers(const Stretches& stretches) const;

    /// The machine's only one, or another.
    std::shared_ptr<verbs::CompletionQueue> completion_queue();
    /// Takes completions from all queues, so many from each; returns how many.
    std::size_t poll(std::size_t most);

    /// Room for a whole receive that nobody else has.
    std::optional<Place> choose_for_receive(unsigned pair);
    /// Memory with such rights, in one of the regions or in `also`.
    std::optional<Place> choose(Rights rights, std::size_t size,
                                std::span<const std::shared_ptr<Grant>> also = {});
    /// Takes back a region at random; `done` hears of it when its memory may be reused.
    bool revoke_region();
    void drop_regions();

private:
    std::shared_ptr<Grant> add_region(verbs::ProtectionDomain& its_domain, Rights rights,
                                      std::size_t size, std::size_t pieces);
    void open(Grant& grant, verbs::ProtectionDomain& its_domain);

    void told(std::size_t queue);
    std::size_t poll_one(verbs::CompletionQueue& queue, std::size_t most);

    std::size_t carved_ = 0;
    std::vector<std::shared_ptr<verbs::CompletionQueue>> completion_queues_;
    std::vector<std::pair<Grant*, std::unique_ptr<verbs::MemoryRegion>>> registered_;
};

}  // namespace weft::sim
