// SPDX-License-Identifier: Apache-2.0
// What must be true of a cluster: looked at on its disks and in its store, past all that is tested.
#include <algorithm>

#include "raid/code.hpp"
#include "sim/raid_office.hpp"

namespace weft::sim {

using wire::ArrayMemberState;

void RaidCluster::check_quiet() {
    // Of a box that has lost its place the part is of no use, and goes with all that is open there.
    for (unsigned i = 0; i < machines(); ++i) {
        if (!places_[i].machine || !place_of(i)) continue;
        if (box(i).open_windows() != 0 || machine(i).windows.any_open())
            complaints_.add("S14: box " + std::to_string(i) + " has an open window left");
    }
    if (offices_.back()->windows.any_open())
        complaints_.add("S14: the controller has an open window left");
    for (const auto& [number, guest] : guests_)
        if (guest.host->sinks() != 0)
            complaints_.add("S14: host " + std::to_string(number) +
                            " keeps memory for boxes that no longer write");
}

// Rows.

Buffer RaidCluster::chunk_of(std::uint8_t place, std::uint64_t stripe) const {
    const auto i = machine_at(place);
    return places_[i].disk->octets().subspan(offset_of(i, layout_.home_of(stripe)),
                                             layout_.chunk_bytes());
}

std::optional<raid::Column> RaidCluster::odd_column(std::uint64_t stripe) const {
    const auto columns = layout_.boxes();
    auto chunk = [&](raid::Column column) {
        return chunk_of(raid::number(layout_.box_of(stripe, column)), stripe);
    };
    if (layout_.level() == raid::Level::mirror) {
        for (raid::Column column = 1; column < columns; ++column)
            if (!std::ranges::equal(chunk(0), chunk(column))) return column;
        return std::nullopt;
    }
    std::vector<RaidMemory> made;
    std::vector<ConstBuffer> data;
    for (raid::Column column = 0; column < columns; ++column) {
        made.emplace_back(layout_.chunk_bytes());
        if (column >= layout_.data_columns()) continue;
        std::ranges::copy(chunk(column), made[column].all().begin());
        data.push_back(made[column].all());
    }
    raid::encode_parity(data, made[layout_.row_parity()].all(),
                        layout_.has_diagonal() ? made[layout_.diagonal_parity()].all() : Buffer{});
    for (raid::Column column = layout_.data_columns(); column < columns; ++column)
        if (!std::ranges::equal(chunk(column), made[column].all())) return column;
    return std::nullopt;
}

/// S5, and with it S15 and S16: however it came to be written, rebuilt or healed, it is octet by
/// octet what the code says.
void RaidCluster::check_parity() {
    for (std::uint64_t stripe = 0; stripe < habits_.stripes; ++stripe)
        if (const auto column = odd_column(stripe))
            complaints_.add("S5: column " + std::to_string(*column) + " of stripe " +
                            std::to_string(stripe) + " is not what the code says");
}

bool RaidCluster::is_damaged(std::uint64_t stripe) const {
    const auto first = layout_.home_of(stripe);
    for (unsigned i = 0; i < machines(); ++i) {
        if (!places_[i].machine || places_[i].disk->is_sound()) continue;
        for (const auto offset : places_[i].disk->damaged()) {
            const auto home = home_at(i, offset);
            if (home && *home >= first && *home < first + layout_.chunk_bytes()) return true;
        }
    }
    return false;
}

// Controllers.

void RaidCluster::check_epochs() {
    for (auto& place : places_) {
        if (!place.machine) continue;
        const auto epoch = place.machine->box.superblock().epoch;
        if (epoch < place.obeyed) complaints_.add("S7: a box obeys a lower epoch than before");
        place.obeyed = epoch;
    }
}

void RaidCluster::check_membership() {
    const auto stored = stored_volume();
    if (!stored || stored->generation < carried_generation_)
        return complaints_.add("S8: a request is answered under a membership not in the store");
    unsigned know = 0;
    for (std::uint8_t place = 0; place < layout_.boxes(); ++place) {
        const auto i = machine_at(place);
        if (i == machines() || !places_[i].disk) continue;
        const auto octets = places_[i].disk->stable();
        const auto known =
            raid::newest_superblock(octets.first(wire::superblock_size),
                                    octets.subspan(wire::superblock_size, wire::superblock_size));
        if (known && known->volume.generation >= carried_generation_) ++know;
    }
    if (know + layout_.spare_columns() < layout_.boxes())
        complaints_.add("S8: a request is answered under a membership that " +
                        std::to_string(know) + " boxes know");
}

/// What the store has noted of stripes.
struct RaidCluster::Noted {
    std::map<std::uint8_t, raid::RegionMap> dirty;
    std::map<std::uint8_t, std::uint64_t> marks;

    bool has(std::uint8_t place, std::uint64_t stripe) const {
        const auto found = dirty.find(place);
        return found != dirty.end() && found->second.contains(stripe);
    }
};

RaidCluster::Noted RaidCluster::noted() const {
    Noted noted;
    for (const auto& [name, record] : records_) {
        if (auto found = raid::parse_dirty_record(record))
            noted.dirty.emplace(found->place, found->stripes.grown(habits_.stripes));
        if (auto found = raid::parse_record<wire::ArrayRebuildRecord>(record))
            noted.marks[found->place] = found->stripes;
    }
    return noted;
}

bool RaidCluster::is_noted_to_lack_all(std::uint8_t place) const {
    const auto stored = stored_volume();
    if (!stored || stored->members[place].state == ArrayMemberState::current) return false;
    const auto said = noted();
    if (!said.dirty.contains(place)) return true;
    for (std::uint64_t stripe = 0; stripe < habits_.stripes; ++stripe)
        if (!said.has(place, stripe)) return false;
    return true;
}

void RaidCluster::check_dirty() {
    const auto stored = stored_volume();
    if (!stored) return;
    auto said = noted();
    for (std::uint8_t place = 0; place < layout_.boxes(); ++place)
        if (machine_at(place) == machines() || !places_[machine_at(place)].machine) return;
    for (std::uint64_t stripe = 0; stripe < habits_.stripes; ++stripe) {
        if (said.has(wire::intent_place, stripe) || is_damaged(stripe)) continue;
        bool is_noted = false;
        for (std::uint8_t place = 0; place < layout_.boxes(); ++place) {
            const auto state = stored->members[place].state;
            if (state == ArrayMemberState::current) continue;
            if (state == ArrayMemberState::rebuilding && stripe < said.marks[place]) continue;
            is_noted = is_noted || !said.dirty.contains(place) || said.has(place, stripe);
        }
        if (!is_noted && odd_column(stripe))
            complaints_.add("S9: stripe " + std::to_string(stripe) +
                            " is not the same everywhere, and the store does not say so");
    }
}

/// S15, and S9 of what is being written: where nothing is noted, the power may go. Whenever
/// something is noted. With a journal nothing depends on when home is flushed.
void RaidCluster::check_checkpoints() {
    const auto stored = stored_volume();
    if (!stored || habits_.consistency == wire::ArrayConsistency::journal) return;
    auto said = noted();
    for (std::uint8_t place = 0; place < layout_.boxes(); ++place) {
        const auto i = index_of(stored->members[place].box);
        if (i == machines() || !places_[i].machine) continue;
        const auto state = stored->members[place].state;
        if (state == ArrayMemberState::current) check_stable(place, habits_.stripes, said);
        if (state == ArrayMemberState::rebuilding) check_stable(place, said.marks[place], said);
    }
}

void RaidCluster::check_stable(std::uint8_t place, std::uint64_t stripes, const Noted& said) {
    const auto i = index_of(stored_volume()->members[place].box);
    const auto& disk = *places_[i].disk;
    for (std::uint64_t stripe = 0; stripe < stripes; ++stripe) {
        if (said.has(wire::intent_place, stripe)) continue;
        const auto at = offset_of(i, layout_.home_of(stripe));
        const auto lasting = disk.stable().subspan(at, layout_.chunk_bytes());
        if (!std::ranges::equal(lasting, disk.octets().subspan(at, layout_.chunk_bytes())))
            complaints_.add("S15: stripe " + std::to_string(stripe) + " of place " +
                            std::to_string(place) + " counts as lasting and is not");
    }
}

void RaidCluster::check_assembly() {
    std::vector<wire::ArraySuperblock> found;
    for (std::uint8_t place = 0; place < layout_.boxes(); ++place) {
        const auto octets = places_[machine_at(place)].disk->octets();
        const auto known =
            raid::newest_superblock(octets.first(wire::superblock_size),
                                    octets.subspan(wire::superblock_size, wire::superblock_size));
        if (known) found.push_back(*known);
    }
    const auto assembled = raid::assemble(found);
    if (!assembled) return complaints_.add("S17: the boxes alone do not make a volume");
    if (!(assembled->volume == manager_->volume()))
        complaints_.add("S17: the boxes alone make another volume");
}

}  // namespace weft::sim
