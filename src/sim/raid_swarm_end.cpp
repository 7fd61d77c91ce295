// SPDX-License-Identifier: Apache-2.0
// The end of a run: the faults stop, all must become whole, and everything is looked at.
#include <algorithm>
#include <bit>

#include "raid/tally.hpp"
#include "sim/raid_swarm_work.hpp"

namespace weft::sim {

/// S9 and S15, whenever everything stands still: all that was begun has ended, and nobody who
/// counts is away.
void RaidSwarm::check_rest() {
    if (habits_.beyond || !agenda_.is_empty() || !all_answered()) return;
    if (cluster_.anybody_lacks_room()) return;  // it stands still amid something
    const auto status = cluster_.manager().status();
    if (status.requests != 0 || status.state == raid::VolumeState::stopped ||
        status.state == raid::VolumeState::starting)
        return;
    for (const auto& member : status.members)
        if (member.state != wire::ArrayMemberState::absent && (!member.up || member.failed)) return;
    cluster_.check_dirty();
}

void RaidSwarm::wind_up() {
    say("faults stop");
    end_gray();
    resume_all();
    cluster_.store_errors = cluster_.parts_refused = cluster_.damages = 0;
    to_lose_ = to_stray_ = 0;
    for (unsigned i = 0; i < cluster_.machines(); ++i) cluster_.make_room(i);
    repeat_late(100);
    let_go(100);
    cluster_.mend_links();
    for (unsigned i = 0; i < cluster_.machines(); ++i) {
        if (!cluster_.has_part(i)) continue;
        cluster_.disk(i).errors = 0;
        cluster_.machine(i).windows.refusals = 0;
    }
    if (options_.all_faults && !habits_.beyond) {
        if (!run_until([&] { return all_answered(); }))
            return complaints_.add("L1: requests are not answered though enough boxes are there");
        while (agenda_.step()) continue;
        check_rest();
    }
    while (!away_.empty()) bring_one();
    let_go(100);
    if (!run_until([&] { return all_answered(); }))
        return complaints_.add("L1: requests are not answered though all boxes are there");
    if (!mend_everything()) return;
    look_at_everything();
}

bool RaidSwarm::become_healthy() {
    return run_until([&] {
        if (!is_whole_enough()) bring_one();
        return is_whole_enough();
    });
}

/// Where more was lost than the level survives, blocks stay beyond repair until somebody writes
/// them anew, and who is to have them stays behind in these alone.
bool RaidSwarm::is_whole_enough() {
    const auto status = cluster_.manager().status();
    if (status.state == raid::VolumeState::healthy) return true;
    if (!may_stay_broken() || status.state != raid::VolumeState::rebuilding) return false;
    return std::ranges::all_of(status.rebuilds, &raid::RebuildStatus::is_stuck) &&
           std::ranges::all_of(status.members, [](const raid::MemberStatus& member) {
               return member.state != wire::ArrayMemberState::absent && member.up && !member.failed;
           });
}

/// One that is under way may have passed by what was damaged since, so it is waited for and another
/// one follows.
void RaidSwarm::scrub_everything() {
    auto has_ended = [&] { return !cluster_.manager().status().scrub.running; };
    const bool ended = run_until(has_ended);
    if (!ended || (cluster_.manager().scrub(true) && !run_until(has_ended)))
        complaints_.add("L4: a scrub that repairs does not end");
}

/// False: it cannot be, or it has been complained of.
bool RaidSwarm::mend_everything() {
    const bool is_whole = become_healthy();
    if (!is_whole)
        complaints_.add("L3: the volume does not become whole, though all boxes are there");
    if (!options_.all_faults) return is_whole;
    // Rot is found by who looks; a restart shows what only was in memory.
    for (int round = 0; round < 2 && complaints_.all().empty(); ++round) {
        scrub_everything();
        if (round == 1 || habits_.consistency != wire::ArrayConsistency::journal) break;
        // All at once; unless some still have to show what they have lost.
        const bool at_once = !has_damage();
        bool is_back = true;
        for (unsigned i = 0; i < cluster_.machines(); ++i) {
            cluster_.cut_power(i);
            if (at_once) continue;
            cluster_.bring(i);
            is_back = is_back && become_healthy();
        }
        for (unsigned i = 0; i < cluster_.machines(); ++i) cluster_.bring(i);
        is_back = is_back && become_healthy();
        if (!is_back)
            complaints_.add("L3: the volume does not become whole after a restart of all boxes");
    }
    return complaints_.all().empty();
}

void RaidSwarm::read_everything() {
    std::vector<std::byte> final(size_);
    final_ = final;
    const auto step = (options_.all_faults && habits_.beyond ? 1 : 8) * raid::slice_size;
    for (std::uint64_t at = 0; at < size_; at += step)
        submit(HostOperation::read, {at, std::min<std::uint64_t>(step, size_ - at)}, 0);
    if (!run_until([&] { return all_answered(); }))
        complaints_.add("L1: the last reads are not answered");
    final_ = {};
    if (complaints_.all().empty())
        ledger_.check(final, unreadable_, habits_.consistency == wire::ArrayConsistency::journal);
}

void RaidSwarm::look_at_everything() {
    if (!complaints_.all().empty()) return;
    read_everything();
    if (!complaints_.all().empty()) return;
    if (!cluster_.manager().scrub(false)) return complaints_.add("S5: no scrub can begin");
    if (!run_until([&] { return !cluster_.manager().status().scrub.running; }))
        return complaints_.add("L4: a scrub does not end");
    const bool may_differ = may_stay_broken();
    if (cluster_.manager().status().scrub.mismatches != 0 && !may_differ)
        complaints_.add("S5: a scrub finds a mismatch");
    while (agenda_.step()) continue;  // what old controllers still have on their way
    if (!may_differ) cluster_.check_parity();
    cluster_.check_quiet();
    cluster_.check_assembly();
    if (habits_.in_band == 0 && !detours_ &&
        cluster_.manager().status().counters.payload_octets != 0)
        complaints_.add("S12: data went by way of the controller");
    if (options_.all_faults && !may_differ) probe();
    if (std::ranges::any_of(works_, [](const auto& work) { return work->was_touched(); }))
        complaints_.add("S11: a host's memory was written to after its request had ended");
}

// What a request costs.

/// S13: some more requests, each alone.
void RaidSwarm::probe() {
    if (detours_ || options_.gray || !complaints_.all().empty()) return;
    if (habits_.journal_blocks < RaidHabits::usual_ring) return;  // where they may wait for room
    const auto status = cluster_.manager().status();
    if (std::ranges::any_of(status.members, &raid::MemberStatus::slow)) return;  // gone around
    for (int i = 0; i < 2; ++i) {
        const bool writes = i == 0, in_band = chance(habits_.in_band);
        check_cost(draw_range(), writes, in_band);
    }
}

void RaidSwarm::check_cost(raid::Range range, bool writes, bool in_band) {
    auto options = habits_.plan;
    options.journal = habits_.consistency == wire::ArrayConsistency::journal;
    options.preparing = raid::Preparing::beside_others;  // as for everybody who waits
    if (in_band) options.path = raid::DataPath::in_band;
    const auto plan = writes ? plan_write(cluster_.layout(), {}, range, options)
                             : plan_read(cluster_.layout(), {}, range, options);
    if (!plan) return complaints_.add("S13: a request cannot be planned");
    std::uint64_t orders = 0;
    raid::Mask open = 0;  // each of these gets a command more, that ends it
    for (const auto& order : plan->orders) {
        if (order.to.kind != raid::PartyKind::box) continue;
        ++orders;
        const auto box = raid::only(number(order.to.box));
        open = order.closes ? open & ~box : open | box;
    }
    orders += static_cast<std::uint64_t>(std::popcount(open));
    const auto before = cluster_.manager().status().counters;
    const auto due = cluster_.manager().deadline();
    const auto moved = cluster_.transferred(), refused = cluster_.windows_refused();
    const auto in_band_rate = std::exchange(habits_.in_band, in_band ? 100 : 0);
    submit(writes ? HostOperation::write : HostOperation::read, range, 0);
    habits_.in_band = in_band_rate;
    // Time passes only where a store that refused is to be asked again.
    if (!run_until([&] { return all_answered(); }))
        complaints_.add("L1: a request alone is not answered");
    while (agenda_.step()) continue;
    const auto after = cluster_.manager().status().counters;
    // A peer that has not acknowledged the last octets of a window keeps it: then it is tried
    // again.
    if (cluster_.windows_refused() != refused) return;
    if (due && *due <= agenda_.now()) return;  // boxes may have been told to flush besides
    const auto expected = tally_of_request(*plan);
    ++tally_.probes;
    auto expect = [&](const char* what, std::uint64_t is, std::uint64_t should) {
        if (is != should)
            complaints_.add(std::string("S13: a ") + (writes ? "write" : "read") + " took " +
                            std::to_string(is) + " " + what + " instead of " +
                            std::to_string(should));
    };
    expect("commands", after.orders - before.orders, orders);
    expect("octets between machines", cluster_.transferred() - moved, expected.wire_octets);
    expect("octets by way of the controller", after.payload_octets - before.payload_octets,
           expected.controller.octets);
}

}  // namespace weft::sim
