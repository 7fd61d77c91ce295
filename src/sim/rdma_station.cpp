// SPDX-License-Identifier: Apache-2.0
#include "sim/rdma_station.hpp"

#include <algorithm>

namespace weft::sim {

namespace {
constexpr auto all_rights = Rights::local_write | Rights::remote_read | Rights::remote_write |
                            Rights::remote_atomic | Rights::bind_windows;
constexpr std::size_t shared_receives_max = 64;
constexpr std::size_t receive_places = 24;
constexpr std::size_t largest_region = 300'000;
}  // namespace

Station::Station(World& the_world, const std::string& the_name, const RdmaHabits& all_habits,
                 const RdmaHabits::Machine& the_habits, Buffer bytes, Complaints& the_complaints)
    : world(the_world),
      complaints(the_complaints),
      habits(the_habits),
      name(the_name),
      memory(bytes, the_name, the_world.chance(), the_complaints),
      receive_size(all_habits.receive_size) {
    device = verbs::make_device(world.host(name), {.on_event = [this](auto& event) {
                                    if (on_event) on_event(event);
                                }});
    domain = device->make_domain();
    other_domain = device->make_domain();
    if (habits.shares_receives)
        shared_receives =
            *device->make_shared_receive_queue(shared_receives_max, habits.queues.pieces);
    auto receive_pieces = random().between(1, habits.pieces_per_region_max);
    receiving =
        add_region(*domain, Rights::local_write, receive_size * receive_places, receive_pieces);
    foreign = add_region(*other_domain, all_rights, 4096, 1);
    for (unsigned i = 0; i < habits.regions; ++i) {
        auto rights = all_rights;
        if (i > 0) rights = static_cast<Rights>(random().below(32)) & all_rights;
        auto size =
            i == 0 ? largest_region : random().between(64, random().chance(50) ? 4096 : 100'000);
        auto pieces = random().between(1, habits.pieces_per_region_max);
        regions.push_back(add_region(*domain, rights, size, pieces));
    }
}

Stretches Station::carve(std::size_t size, std::size_t pieces) {
    Stretches stretches;
    for (; pieces > 0 && size > 0; --pieces) {
        auto part = pieces == 1 ? size : random().between(1, size);
        carved_ += random().between(1, 100);  // a strip that is nobody's
        WEFT_CHECK(carved_ + part < memory.memory().size());
        stretches.push_back({carved_, part});
        carved_ += part;
        size -= part;
    }
    for (std::size_t i = stretches.size(); i > 1; --i)
        std::swap(stretches[i - 1], stretches[random().below(i)]);
    return stretches;
}

std::vector<Buffer> Station::buffers(const Stretches& stretches) const {
    std::vector<Buffer> pieces;
    for (auto& each : stretches) pieces.push_back(memory.memory().subspan(each.at, each.size));
    return pieces;
}

std::shared_ptr<Grant> Station::add_region(verbs::ProtectionDomain& its_domain, Rights rights,
                                           std::size_t size, std::size_t pieces) {
    auto grant = std::make_shared<Grant>();
    grant->rights = rights;
    grant->stretches = carve(size, pieces);
    grant->size = size;
    open(*grant, its_domain);
    return grant;
}

void Station::open(Grant& grant, verbs::ProtectionDomain& its_domain) {
    auto pieces = buffers(grant.stretches);
    auto made = [&] {
        if (pieces.size() > 1 || random().chance(30))
            return its_domain.register_pieces(pieces, random().next() >> random().between(1, 60),
                                              grant.rights);
        auto addressing = random().chance(50) ? Addressing::from_zero : Addressing::by_address;
        return its_domain.register_memory(pieces[0], grant.rights, addressing);
    }();
    WEFT_CHECK(made);
    grant.tag = (*made)->tag();
    grant.first = (*made)->address();
    grant.usable = true;
    registered_.emplace_back(&grant, std::move(*made));
}

std::shared_ptr<verbs::CompletionQueue> Station::completion_queue() {
    if (habits.one_completion_queue && !completion_queues_.empty()) return completion_queues_[0];
    auto number = completion_queues_.size();
    auto made = device->make_completion_queue(habits.completions, [this, number] { told(number); });
    WEFT_CHECK(made);
    if (habits.polls_when_told) (*made)->arm(verbs::CompletionQueue::Wanted::any);
    completion_queues_.push_back(*made);
    return *made;
}

void Station::told(std::size_t queue) {
    auto& told_of = *completion_queues_[queue];
    told_of.arm(verbs::CompletionQueue::Wanted::any);
    poll_one(told_of, habits.completions);
}

std::size_t Station::poll(std::size_t most) {
    std::size_t count = 0;
    for (auto& queue : completion_queues_) count += poll_one(*queue, most);
    return count;
}

std::size_t Station::poll_one(verbs::CompletionQueue& queue, std::size_t most) {
    std::vector<verbs::Completion> completions(most);
    completions.resize(queue.poll(completions));
    for (auto& each : completions) on_completion(each);
    return completions.size();
}

std::optional<Place> Station::choose_for_receive(unsigned pair) {
    // Each has a share of its own, or one could starve another.
    auto share = shared_receives ? receive_places : receive_places / RdmaHabits::pairs_max;
    auto first = shared_receives ? 0 : pair * share;
    auto start = random().below(share);
    for (std::size_t i = 0; i < share; ++i) {
        auto offset = (first + (start + i) % share) * receive_size;
        auto stretches = part_of(receiving->stretches, offset, receive_size);
        if (memory.lease(stretches)) return Place{receiving, offset, stretches};
    }
    return std::nullopt;
}

std::optional<Place> Station::choose(Rights rights, std::size_t size,
                                     std::span<const std::shared_ptr<Grant>> also) {
    for (int attempt = 0; attempt < 8; ++attempt) {
        auto chosen = random().below(regions.size() + also.size());
        auto& grant = chosen < regions.size() ? regions[chosen] : also[chosen - regions.size()];
        if (!grant->usable || !allows(grant->rights, rights) || grant->size < size) continue;
        Place place{grant, random().between(0, grant->size - size), {}};
        if (allows(rights, Rights::remote_atomic)) {
            place.offset -= std::min(place.offset, (grant->first + place.offset) % 8);
            if ((grant->first + place.offset) % 8 != 0) continue;
        }
        place.stretches = part_of(grant->stretches, place.offset, size);
        return place;
    }
    return std::nullopt;
}

bool Station::revoke_region() {
    auto chosen = random().below(regions.size());
    if (chosen == 0 || !regions[chosen]->usable) return false;
    auto grant = regions[chosen];
    auto found = std::find_if(registered_.begin(), registered_.end(),
                              [&](auto& each) { return each.first == grant.get(); });
    auto done = [this, grant] {
        memory.end_leases(grant->stretches, "memory that was given back");
        memory.write(grant->stretches, memory.random_bytes(grant->size));
        if (domain && random().chance(70)) open(*grant, *domain);
    };
    if (!found->second->deregister(done)) return false;
    grant->usable = false;
    registered_.erase(found);
    return true;
}

void Station::drop_regions() {
    for (auto& region : regions) region->usable = false;
    registered_.clear();
}

}  // namespace weft::sim
