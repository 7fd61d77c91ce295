// SPDX-License-Identifier: Apache-2.0
// What goes wrong in a simulated volume, and how much of it at once.
#include <algorithm>

#include "sim/raid_swarm_work.hpp"

namespace weft::sim {

/// Places that cannot be counted on: whose box was away, or is not whole for whatever reason, until
/// all is whole again. Of a disk whose checksums or superblock rot nothing is certain.
std::set<std::uint8_t> RaidSwarm::troubled() {
    std::set<std::uint8_t> places;
    for (unsigned box : disturbed_)
        if (const auto place = cluster_.place_of(box)) places.insert(*place);
    for (const auto& [place, box] : replacing_) places.insert(place);
    const auto status = cluster_.manager().status();
    for (const auto& member : status.members) {
        if (member.failed || member.state != wire::ArrayMemberState::current)
            places.insert(member.place);
        const auto box = cluster_.machine_at(member.place);
        if (!cluster_.has_part(box) || cluster_.disk(box).is_sound()) continue;
        for (const auto offset : cluster_.disk(box).damaged())
            if (!cluster_.home_at(box, offset)) places.insert(member.place);
    }
    return places;
}

/// With spares a box that was disturbed may have lost its place since.
bool RaidSwarm::is_troubled() {
    return !disturbed_.empty() || (options_.all_faults && !troubled().empty());
}

/// What was damaged between boxes may still be prepared somewhere, and not yet compared: until then
/// it is as good as lost there.
bool RaidSwarm::is_damage_open() const {
    const bool took_it = is_damaging_ && cluster_.damages == 0;
    const auto last =
        works_.begin() + static_cast<std::ptrdiff_t>(took_it ? works_.size() : damaged_);
    return !std::all_of(works_.begin(), last, [](const auto& work) { return work->is_over; });
}

/// So that whatever is lost can be made up for: of no row more is lost at once than the code
/// allows.
bool RaidSwarm::may_disturb(unsigned box) {
    if (is_fragile_) return false;
    const auto place = cluster_.place_of(box);
    if (habits_.beyond || !place) return true;
    auto places = troubled();
    const bool was_troubled = !places.insert(*place).second;
    const std::size_t most = cluster_.layout().spare_columns();
    if (places.size() + is_damage_open() > most) return was_troubled;
    std::map<std::uint64_t, std::set<std::uint8_t>> rows;
    for (std::uint8_t other = 0; other < cluster_.boxes(); ++other) {
        const auto machine = cluster_.machine_at(other);
        if (!cluster_.has_part(machine) || cluster_.disk(machine).is_sound()) continue;
        for (const auto offset : cluster_.disk(machine).damaged())
            if (const auto home = cluster_.home_at(machine, offset)) rows[*home].insert(other);
    }
    return std::ranges::all_of(rows, [&](auto& row) {
        row.second.insert(places.begin(), places.end());
        return row.second.size() <= most;
    });
}

bool RaidSwarm::has_damage() {
    for (unsigned i = 0; i < cluster_.machines(); ++i)
        if (cluster_.has_part(i) && !cluster_.disk(i).is_sound()) return true;
    return false;
}

/// Not while a transfer is to be damaged that a block of diagonals could be healed by: of those
/// there is no sum to compare.
bool RaidSwarm::may_damage(unsigned box, std::uint64_t home) {
    const auto place = cluster_.place_of(box);
    if (!place || is_fragile_) return false;
    if (cluster_.damages > 0 && cluster_.layout().has_diagonal()) return false;
    if (habits_.beyond) return true;
    auto places = troubled();
    places.insert(*place);
    for (std::uint8_t other = 0; other < cluster_.boxes(); ++other) {
        const auto machine = cluster_.machine_at(other);
        if (!cluster_.has_part(machine) || cluster_.disk(machine).is_sound()) continue;
        const auto at = cluster_.offset_of(machine, home / raid::slice_size * raid::slice_size);
        if (cluster_.disk(machine).damaged().contains(at)) places.insert(other);
    }
    return places.size() + is_damage_open() <= cluster_.layout().spare_columns();
}

void RaidSwarm::disturb() {
    std::erase_if(replacing_,
                  [&](const auto& each) { return cluster_.machine_at(each.first) != each.second; });
    bool waits = !away_.empty() || cluster_.is_any_paused() || !replacing_.empty();
    for (unsigned i = 0; i < cluster_.machines(); ++i)
        waits = waits || cluster_.has_lost_its_journal(i) || cluster_.lacks_room(i) ||
                (cluster_.has_part(i) && cluster_.disk(i).errors > 0);
    for (const auto& member : cluster_.manager().status().members) waits = waits || member.failed;
    // A box may have failed a request, and the controller not have heard of it yet.
    const bool has_journal = habits_.consistency == wire::ArrayConsistency::journal;
    const bool may_be_unheard = has_harmed_disk_ || (is_fragile_ && !has_journal);
    waits =
        waits || (may_be_unheard && (!all_answered() || cluster_.manager().status().scrub.running));
    if (is_healthy() && !waits) {
        disturbed_.clear();
        is_fragile_ = has_harmed_disk_ = false;
    }
    const auto box =
        cluster_.machine_at(static_cast<std::uint8_t>(agenda_.random.below(cluster_.boxes())));
    const bool may = may_disturb(box) && cluster_.has_part(box);
    if (chance(habits_.session_cuts) && may && !away_.contains(box)) lose(box, false);
    if (chance(habits_.power_cuts) && may && !away_.contains(box) && !habits_.beyond)
        lose(box, true);
    if (chance(habits_.returns)) bring_one();
    if (chance(habits_.refusals) && cluster_.has_part(box))
        cluster_.machine(box).windows.refusals = static_cast<unsigned>(agenda_.random.below(5));
    if (chance(habits_.store_errors))
        cluster_.store_errors = static_cast<unsigned>(agenda_.random.below(3));
    if (chance(habits_.slow_boxes)) pause_box(box);
    if (chance(habits_.disk_errors) && may) harm_a_disk(box);
    if (chance(habits_.takeovers)) take_over();
    if (chance(habits_.host_deaths)) kill_host();
    if (options_.all_faults) disturb_more();
    if (options_.gray) slow_down(box);
    if (options_.all_faults && options_.short_of_room) lack_room();
}

/// As a scheduler, a debugger or SIGSTOP does it: shorter than what counts as silence.
void RaidSwarm::pause_box(unsigned box) {
    const auto pause = std::chrono::milliseconds(10) * (std::uint64_t{1} << slowing_.below(10));
    if (cluster_.is_paused(box)) return;
    ++tally_.pauses;
    say("box " + std::to_string(box) + " stands still");
    cluster_.pause_box(box, slowing_.between(pause / 2, pause));
}

void RaidSwarm::resume_all() {
    for (unsigned i = 0; i < cluster_.machines(); ++i) cluster_.resume_box(i);
}

void RaidSwarm::lose(unsigned box, bool power) {
    say("box " + std::to_string(box) + (power ? " loses power" : " loses its session"));
    ++(power ? tally_.power_cuts : tally_.session_cuts);
    if (power)
        cluster_.cut_power(box);
    else
        cluster_.drop(box);
    away_.insert(box);
    disturbed_.insert(box);
}

void RaidSwarm::bring_one() {
    for (const auto& member : cluster_.manager().status().members) {
        if (!member.failed) continue;
        const auto box = cluster_.machine_at(member.place);
        if (cluster_.restart_if_failed(box)) cluster_.bring(box);
        (void)cluster_.manager().re_add(member.place);
    }
    if (away_.empty()) return;
    auto which = away_.begin();
    std::advance(which, static_cast<std::ptrdiff_t>(agenda_.random.below(away_.size())));
    say("box " + std::to_string(*which) + " is back");
    cluster_.bring(*which);
    away_.erase(which);
}

/// Without a journal nothing but the hosts' memory says what a write was to be: while a box is
/// missing too, half of one cannot be made up for. That is the write hole.
void RaidSwarm::take_over() {
    const bool has_journal = habits_.consistency == wire::ArrayConsistency::journal;
    if (!has_journal && is_troubled()) return;
    if (cluster_.is_any_paused()) return;
    // Copies the next controller compares; parity that is prepared it takes as it is, since the
    // sums of who only lent its blocks are in no journal.
    if (habits_.level != raid::Level::mirror && is_damage_open()) return;
    ++tally_.takeovers;
    const bool old_goes_on = chance(50);
    say(std::string("another controller takes office") +
        (old_goes_on ? ", the old one goes on" : ""));
    cluster_.take_over(old_goes_on);
    replacing_.clear();
    for (auto& work : works_)
        if (!work->is_over && !(options_.all_faults && faults_.chance(habits_.late_repeats)))
            ask(*work, true);
    if (has_journal) return;
    if (!run_until([&] { return all_answered(); }))
        complaints_.add("L2: requests sent again to a new controller are not answered");
}

/// Hosts take their time to find the new one.
void RaidSwarm::repeat_late(double percent) {
    for (auto& work : works_) {
        if (work->is_over || work->attempts.back()->epoch == cluster_.epoch()) continue;
        if (faults_.chance(percent)) ask(*work, true);
    }
}

/// Without a journal a box that fails amid a commit is all that may fail.
void RaidSwarm::harm_a_disk(unsigned box) {
    if (habits_.consistency == wire::ArrayConsistency::none) {
        if (is_troubled()) return;
        is_fragile_ = true;
    }
    say("disk " + std::to_string(box) + " fails a request");
    ++tally_.disk_errors;
    cluster_.disk(box).errors = 1;
    blame_rule_.note_harm(box);
    disturbed_.insert(box);
    has_harmed_disk_ = true;
}

}  // namespace weft::sim
