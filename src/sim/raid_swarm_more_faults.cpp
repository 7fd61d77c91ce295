// SPDX-License-Identifier: Apache-2.0
// What goes wrong besides, see RaidHabits::draw_more(): links, disks at rest, boxes that are
// replaced, and everything at once.
#include <algorithm>

#include "sim/raid_swarm_work.hpp"

namespace weft::sim {

void RaidSwarm::disturb_more() {
    if (is_damaging_) damaged_ = works_.size();
    is_damaging_ = cluster_.damages > 0;
    repeat_late(25);
    let_go(30);
    const auto place = static_cast<std::uint8_t>(faults_.below(cluster_.boxes()));
    const auto box = cluster_.machine_at(place);
    if (faults_.chance(habits_.scrubs) && cluster_.manager().scrub(true)) {
        ++tally_.scrubs;
        say("a scrub begins");
    }
    cut_links(box);
    change_boxes(box);
    if (cluster_.has_part(box)) spoil(box);
    if (faults_.chance(habits_.disasters)) strike();
    strike_all();
    put_back(box);
    if (faults_.chance(habits_.late_transfers) && may_disturb(box) && cluster_.is_up(box) &&
        cluster_.has_part(box)) {
        say("what box " + std::to_string(box) + " is sending does not arrive");
        cluster_.hold_transfers(box, true);
        go_on(faults_.between(20, 80));
        if (!away_.contains(box) && may_disturb(box)) lose(box, false);
    }
}

/// What was given up long ago comes to its end.
void RaidSwarm::let_go(double percent) {
    for (unsigned i = 0; i < cluster_.machines(); ++i)
        if (cluster_.is_up(i) && cluster_.holds_transfers(i) && faults_.chance(percent))
            cluster_.hold_transfers(i, false);
}

// Links. One between two boxes at a time, also as the controller knows it: then neither is to
// blame.

void RaidSwarm::cut_links(unsigned box) {
    const auto other =
        cluster_.machine_at(static_cast<std::uint8_t>(faults_.below(cluster_.boxes())));
    if (cluster_.has_cut_links() && faults_.chance(15)) {
        say("links are mended");
        cluster_.mend_links();
        has_cut_box_link_ = false;
    }
    const auto status = cluster_.manager().status();
    const bool knows_one = std::ranges::any_of(
        status.members, [](const raid::MemberStatus& member) { return member.unreached != 0; });
    if (faults_.chance(habits_.box_links) && other != box && !has_cut_box_link_ && !knows_one) {
        const auto ways = faults_.below(3);
        say("box " + std::to_string(box) + (ways == 0 ? " and " : " no longer reaches box ") +
            std::to_string(other) + (ways == 0 ? " no longer reach each other" : ""));
        cluster_.cut_link(box, other);
        if (ways == 0) cluster_.cut_link(other, box);
        has_cut_box_link_ = detours_ = true;
        ++tally_.links_cut;
    }
    if (!faults_.chance(habits_.host_links)) return;
    const auto host = static_cast<unsigned>(faults_.below(hosts_.size()));
    say("box " + std::to_string(box) + " no longer reaches host " + std::to_string(host));
    cluster_.cut_host_link(box, host);
    detours_ = true;
    ++tally_.links_cut;
}

// Disks at rest, and data on its way.

void RaidSwarm::spoil(unsigned box) {
    const auto octet = faults_.below(cluster_.home_bytes());
    const auto bit = static_cast<unsigned>(faults_.below(8));
    if (faults_.chance(habits_.rot) && may_damage(box, octet)) {
        say("disk " + std::to_string(box) + " rots at home " + std::to_string(octet));
        cluster_.rot_home(box, octet, bit);
        has_rotten_ = true;
        blame_rule_.note_harm(box);
        ++tally_.rotten_blocks;
    }
    if (faults_.chance(habits_.checksum_rot) && may_disturb(box) && cluster_.damages == 0) {
        say("disk " + std::to_string(box) + " rots: the checksum of " + std::to_string(octet));
        cluster_.rot_checksum_of(box, octet, static_cast<unsigned>(faults_.below(64)));
        has_rotten_ = true;
        blame_rule_.note_harm(box);
        ++tally_.rotten_blocks;
    }
    if (faults_.chance(habits_.superblock_rot) && may_disturb(box) &&
        cluster_.disk(box).is_sound()) {
        const auto copy = static_cast<unsigned>(faults_.below(2));
        say("disk " + std::to_string(box) + " rots: superblock " + std::to_string(copy));
        blame_rule_.note_harm(box);
        cluster_.rot_superblock(box, copy, faults_.below(wire::superblock_size), bit);
        ++tally_.rotten_blocks;
    }
    if (faults_.chance(habits_.lost_writes)) to_lose_ = 1;
    if (faults_.chance(habits_.misdirected_writes)) to_stray_ = 1;
    // A request that suffers from it twice nobody need make up for, nor one that is not compared.
    if (!faults_.chance(habits_.damage) || cluster_.damages > 0) return;
    if (is_damage_open() || !is_healthy() || is_troubled() || has_damage()) return;
    say("what box " + std::to_string(box) + " or another fetches next is damaged");
    cluster_.damages = 1;
    is_damaging_ = true;
    ++tally_.damaged_transfers;
}

/// Only of what goes home: the journal and the superblocks are believed when they are flushed.
RaidDisk::Fate RaidSwarm::fate_of(unsigned box, std::uint64_t offset, std::size_t size) {
    if (to_lose_ == 0 && to_stray_ == 0) return {};
    const auto home = cluster_.home_at(box, offset);
    if (!home || size > raid::slice_size * 4) return {};
    auto may = [&](std::uint64_t first) {
        for (std::uint64_t at = 0; at < size; at += raid::slice_size)
            if (first + at >= cluster_.home_bytes() || !may_damage(box, first + at)) return false;
        return true;
    };
    if (!may(*home)) return {};
    if (to_lose_ > 0) {
        --to_lose_;
        ++tally_.lost_writes;
        has_rotten_ = true;
        blame_rule_.note_harm(box);
        say("disk " + std::to_string(box) + " loses a write to home " + std::to_string(*home));
        return {.is_lost = true, .strays_to = {}};
    }
    const auto slices = cluster_.home_bytes() / raid::slice_size;
    const auto stray = faults_.below(slices) * raid::slice_size;
    if (stray == *home || !may(stray)) return {};
    --to_stray_;
    ++tally_.strayed_writes;
    has_rotten_ = true;
    say("disk " + std::to_string(box) + " writes to home " + std::to_string(stray) +
        " what is of " + std::to_string(*home));
    return {.is_lost = false, .strays_to = cluster_.offset_of(box, stray)};
}

// Boxes that are replaced.

void RaidSwarm::change_boxes(unsigned box) {
    if (faults_.chance(habits_.full_disks)) {
        cluster_.parts_refused = 1;
        for (unsigned i = 0; i < cluster_.machines(); ++i)
            if (!cluster_.has_part(i)) blame_rule_.note_harm(i);
    }
    // Whoever has lost its place becomes a spare.
    for (unsigned i = 0; i < cluster_.machines(); ++i) {
        if (cluster_.place_of(i) || !cluster_.has_part(i) || !faults_.chance(30)) continue;
        cluster_.wipe(i);
        away_.erase(i);
        disturbed_.erase(i);
        cluster_.bring(i);
    }
    // Without a journal whoever is taken away amid a commit is all that may be missing.
    const auto place = cluster_.place_of(box);
    const bool has_journal = habits_.consistency == wire::ArrayConsistency::journal;
    const bool may_replace = place && may_disturb(box) && (has_journal || !is_troubled());
    if (faults_.chance(habits_.replacements) && may_replace && cluster_.replace(*place)) {
        blame_rule_.note_harm(box);
        say("place " + std::to_string(*place) + " is given to another box");
        ++tally_.replacements;
        disturbed_.insert(box);
        replacing_[*place] = box;
        is_fragile_ = !has_journal;
    }
    if (faults_.chance(habits_.wipes) && may_disturb(box) && !away_.contains(box)) {
        blame_rule_.note_harm(box);
        say("box " + std::to_string(box) + " gets an empty disk");
        ++tally_.wiped_disks;
        cluster_.wipe(box);
        away_.insert(box);
        disturbed_.insert(box);
    }
}

/// Only the controller that saw it last knows more than the copy: until it has looked at it, and
/// what it found is lasting, nobody else takes office (docs/failures.md says what is not survived).
void RaidSwarm::put_back(unsigned box) {
    if (habits_.put_backs == 0) return;
    if (!copy_ || copy_->epoch != cluster_.epoch() || !cluster_.has_part(copy_->box)) {
        copy_.reset();
        if (!copying_.chance(30) || !is_healthy() || cluster_.is_any_paused() || !all_are_up() ||
            cluster_.anybody_lacks_room())
            return;
        // Of two writes that are being prepared a copy may have the later one alone, and the later
        // one is all that is looked for.
        run_until([&] { return all_answered() && !cluster_.manager().status().scrub.running; });
        if (is_healthy() && cluster_.has_part(box) && cluster_.disk(box).is_sound())
            copy_ = {box, cluster_.epoch(), cluster_.disk(box).image()};
        return;
    }
    if (!copying_.chance(habits_.put_backs) || cluster_.is_any_paused()) return;
    const auto copy = *std::exchange(copy_, std::nullopt);
    const auto place = cluster_.place_of(copy.box);
    if (!place || !may_disturb(copy.box) || !is_healthy() || !all_are_up() || is_damaging_) return;
    say("box " + std::to_string(copy.box) + " is put back from a copy");
    ++tally_.put_backs;
    blame_rule_.note_harm(copy.box);
    const auto noticed_before = tally_.noticed_put_backs;
    disturbed_.insert(copy.box);
    cluster_.put_back(copy.box, copy.image);
    cluster_.bring(copy.box);
    auto was_looked_at = [&] {
        if (tally_.noticed_put_backs == noticed_before) return agenda_.is_empty();
        return cluster_.is_noted_to_lack_all(*place);
    };
    if (!run_until(was_looked_at)) complaints_.add("L3: a box that was put back stays a member");
}

bool RaidSwarm::all_are_up() {
    return std::ranges::all_of(cluster_.manager().status().members, &raid::MemberStatus::up);
}

// File systems that are full.

/// Whose is full counts as disturbed: a controller that begins may have to do so without it.
/// Without a journal a write that not all have room for is one given up amid its commit.
void RaidSwarm::lack_room() {
    for (unsigned i = 0; i < cluster_.machines(); ++i) {
        if (!cluster_.lacks_room(i) || !room_.chance(20)) continue;
        say("there is room again for disk " + std::to_string(i));
        cluster_.make_room(i);
    }
    const auto box = cluster_.machine_at(static_cast<std::uint8_t>(room_.below(cluster_.boxes())));
    if (!room_.chance(habits_.full_file_systems) || !cluster_.has_part(box)) return;
    if (cluster_.lacks_room(box) || !may_disturb(box)) return;
    const bool has_journal = habits_.consistency == wire::ArrayConsistency::journal;
    if (!has_journal && is_troubled()) return;
    is_fragile_ = is_fragile_ || !has_journal;
    const bool at_home_alone = room_.chance(70), for_none = room_.chance(50);
    say("the file system of disk " + std::to_string(box) + " is full" +
        (at_home_alone ? ", but for what lies before the data" : ""));
    ++tally_.full_file_systems;
    blame_rule_.note_harm(box);
    disturbed_.insert(box);
    cluster_.become_full(box, at_home_alone, for_none ? 100 : 50, room_.next());
}

/// L5: lack of room is no reason to count anybody out, but one that has none for a part at all.
void RaidSwarm::check_failed(std::uint8_t place, wire::ArrayOutcome why) {
    const auto box = cluster_.machine_at(place);
    if (box >= cluster_.machines() || !cluster_.has_part(box)) return;
    const bool is_well =
        options_.short_of_room && cluster_.disk(box).failures == 0 && !raid::is_about_peer(why);
    if (is_well || raid::lacks_room(why))
        complaints_.add("L5: a box counts as failed for lack of room, and of nothing else");
}

// Everything at once.

/// The controller, and a box with it if that may be: just then a write may be decided that not all
/// have heard of.
void RaidSwarm::strike() {
    if (cluster_.is_any_paused()) return;
    const auto place = static_cast<std::uint8_t>(faults_.below(cluster_.boxes()));
    const auto box = cluster_.machine_at(place);
    if (may_disturb(box) && !away_.contains(box)) lose(box, true);
    take_over();
    // The new one does not wait for ever.
    auto has_begun = [&] {
        return cluster_.manager().status().state != raid::VolumeState::starting;
    };
    if (!run_until(has_begun)) complaints_.add("L2: a new controller does not begin to serve");
}

void RaidSwarm::strike_all() {
    if (!faults_.chance(habits_.blackouts) || has_damage() || is_troubled()) return;
    say("all boxes restart");
    ++tally_.blackouts;
    // Those that are seen to go first are counted out, if they are back at once or not: as many as
    // may be lost at all. Who they are is not known before the store has kept it.
    is_fragile_ = true;
    resume_all();
    std::vector<unsigned> there;
    for (unsigned i = 0; i < cluster_.machines(); ++i)
        if (cluster_.is_up(i)) there.push_back(i);
    for (unsigned i : there) cluster_.cut_power(i);
    for (unsigned i : there) cluster_.bring(i);
}

}  // namespace weft::sim
