// SPDX-License-Identifier: Apache-2.0
// What happens to parts of a cluster besides losing sessions and power: disks, and spares.
#include <algorithm>

#include "raid/checked_disk.hpp"
#include "sim/raid_office.hpp"

namespace weft::sim {

// Disks that are replaced, and boxes.

void RaidCluster::bury(unsigned i) {
    auto& machine = places_[i].machine;
    if (!machine) return;
    machine->vanish();
    graves_.push_back(std::move(machine));
}

void RaidCluster::wipe(unsigned i) {
    drop(i);
    std::erase_if(sessions_, [&](const auto& each) { return each.second.place == i; });
    bury(i);
    auto& place = places_[i];
    place.waits_for_room = false;
    resume_box(i);
    place.held_links.clear();
    ++place.boot;
    place.obeyed = {};
    if (!place.disk) return;
    place.disk->forget();
    old_disks_.push_back(std::move(place.disk));
}

void RaidCluster::put_back(unsigned i, std::span<const std::byte> image) {
    cut_power(i);
    auto& place = places_[i];
    if (!place.machine) return;
    place.machine->vanish();
    place.disk->put_back(image);
    start_machine(i);
    place.machine->recover();
}

void RaidCluster::become_full(unsigned i, bool at_home_alone, unsigned percent,
                              std::uint64_t draw) {
    const auto home = box(i).superblock().data_offset;
    places_[i].disk->become_full(
        {.from = at_home_alone ? home : 0, .home = home, .percent = percent, .draw = draw});
}

void RaidCluster::make_room(unsigned i) {
    auto& place = places_[i];
    if (place.disk) place.disk->make_room();
    if (std::exchange(place.waits_for_room, false)) bring(i);
}

bool RaidCluster::anybody_lacks_room() const {
    return std::ranges::any_of(
        places_, [](const Place& place) { return place.disk && place.disk->lacks_room(); });
}

std::optional<unsigned> RaidCluster::free_spare() const {
    for (unsigned i = 0; i < machines(); ++i)
        if (places_[i].session != 0 && !places_[i].machine && !place_of(i)) return i;
    return std::nullopt;
}

Result<void> RaidCluster::replace(std::uint8_t place) {
    const auto spare = free_spare();
    if (!spare) return Error{Code::not_found};
    return manager().replace(place, places_[*spare].identity);
}

// Disks at rest.

std::uint64_t RaidCluster::offset_of(unsigned i, std::uint64_t home) const {
    const auto& known = places_[i].machine->box.superblock();
    if (!raid::has_journal(known)) return known.data_offset + home;
    return known.data_offset + raid::CheckedDisk::place_below(home, known.columns);
}

std::optional<std::uint64_t> RaidCluster::home_at(unsigned i, std::uint64_t offset) const {
    const auto& known = places_[i].machine->box.superblock();
    if (offset < known.data_offset) return std::nullopt;
    offset -= known.data_offset;
    if (!raid::has_journal(known)) return offset;
    return raid::CheckedDisk::home_at(offset, known.columns);
}

/// Of the checksum's own kind: a multiple of its polynomial, in the order of its bits, is what no
/// CRC32C sees.
void RaidCluster::rot_home(unsigned i, std::uint64_t home, unsigned bit) {
    if (mutation_ != RaidMutation::checksums_see_nothing)
        return places_[i].disk->flip_bit(offset_of(i, home), bit);
    constexpr std::uint64_t polynomial = 1 | std::uint64_t{0x82f6'3b78} << 1;
    std::array<std::byte, 5> unseen;
    for (std::size_t at = 0; at < unseen.size(); ++at)
        unseen[at] = static_cast<std::byte>(polynomial >> 8 * at);
    const auto block = home / raid::slice_size * raid::slice_size;
    const auto last = block + raid::slice_size - unseen.size();
    places_[i].disk->damage(offset_of(i, std::min(home, last)), unseen);
}

void RaidCluster::rot_checksum_of(unsigned i, std::uint64_t home, unsigned bit) {
    using Checked = raid::CheckedDisk;
    const auto& known = places_[i].machine->box.superblock();
    const auto page = known.data_offset + Checked::page_below(home, known.columns);
    constexpr auto size = Checked::block / (Checked::group_bytes / Checked::block);
    places_[i].disk->flip_bit(page + home % Checked::group_bytes / Checked::block * size + bit / 8,
                              bit % 8);
    // Read into memory the page is written again as it is: then the block is what must be.
    places_[i].disk->note_damage(offset_of(i, home / Checked::block * Checked::block),
                                 Checked::block);
}

void RaidCluster::rot_superblock(unsigned i, unsigned copy, std::uint64_t octet, unsigned bit) {
    places_[i].disk->flip_bit(copy * wire::superblock_size + octet, bit);
}

}  // namespace weft::sim
