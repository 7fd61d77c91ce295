// SPDX-License-Identifier: Apache-2.0
// What is slow or crowded in a simulated volume: machines that stand still, disks that take their
// time, lines that are narrow or lose some, connections that end. Nothing of it is broken, and the
// rules say that nothing may be taken for it: raid_rule_*.
#include <algorithm>

#include "sim/raid_swarm_work.hpp"

namespace weft::sim {

using namespace std::chrono_literals;

namespace {

/// From 10 ms to 5 s, as often short as long.
Duration draw_pause(Random& random) {
    const auto longest = 10ms * (std::int64_t{1} << random.between(1, 9));
    return std::min<Duration>(random.between(longest / 2, longest), 5s);
}

}  // namespace

void RaidSwarm::slow_down(unsigned box) {
    if (slowing_.chance(habits_.pauses)) pause_box(box);
    if (slowing_.chance(habits_.long_pauses) && !cluster_.is_paused(box) && cluster_.is_up(box) &&
        may_disturb(box) && (habits_.consistency == wire::ArrayConsistency::journal)) {
        say("box " + std::to_string(box) + " is silent");
        ++tally_.pauses;
        disturbed_.insert(box);
        cluster_.pause_box(box, slowing_.between(12s, 20s));
    }
    if (slowing_.chance(habits_.controller_pauses)) {
        say("the controller stands still");
        ++tally_.pauses;
        cluster_.pause_controller(draw_pause(slowing_));
    }
    if (slowing_.chance(habits_.host_pauses)) {
        const auto host = static_cast<unsigned>(slowing_.below(hosts_.size()));
        say("host " + std::to_string(host) + " stands still");
        ++tally_.pauses;
        cluster_.pause_host(host, draw_pause(slowing_));
    }
    if (slowing_.chance(habits_.slow_disks) && cluster_.has_part(box)) {
        auto& slowness = cluster_.disk(box).slowness;
        slowness = slowness > 1 ? 1 : 10u << slowing_.below(6);
        say("disk " + std::to_string(box) + " takes " + std::to_string(slowness) +
            " times as long");
        ++tally_.gray_faults;
    }
    crowd(box);
    reset_connections();
    if (slowing_.chance(habits_.bursts)) burst();
    if (slowing_.chance(50)) go_on_for(draw_pause(slowing_));
}

/// The line of a box, or of a host, is narrow for a while, and loses some.
void RaidSwarm::crowd(unsigned box) {
    if (!slowing_.chance(habits_.crowded_lines)) return;
    const auto host = static_cast<unsigned>(slowing_.below(hosts_.size()));
    const std::string machine =
        slowing_.chance(60) ? cluster_.machine_name(box) : cluster_.host(host).machine().name();
    LineOptions line;
    if (slowing_.chance(70)) line.bytes_per_second = 2'000'000u << slowing_.below(6);
    line.queue_bytes = 65'536u << slowing_.below(3);
    if (slowing_.chance(50)) line.loss_percent = 0.2 * static_cast<double>(slowing_.between(1, 25));
    say("the lines of " + machine + ": " + std::to_string(line.bytes_per_second) +
        " bytes a second, a queue of " + std::to_string(line.queue_bytes) + ", " +
        std::to_string(line.loss_percent) + " % are lost");
    ++tally_.gray_faults;
    agenda_.world.network().set_lines(machine, line);
    agenda_.at_last(slowing_.between(100ms, 10s),
                    [this, machine] { agenda_.world.network().set_lines(machine, {}); });
}

void RaidSwarm::reset_connections() {
    auto& network = agenda_.world.network();
    const bool resets = slowing_.chance(habits_.resets), clogs = slowing_.chance(habits_.clogs);
    if (!resets && !clogs) return;
    const auto links = network.links();
    if (links.empty()) return;
    const auto link = links[slowing_.below(links.size())];
    if (resets) {
        say("a connection of " + network.connector_of(link) + " is reset");
        ++tally_.connections_reset;
        network.reset(link);
    }
    if (!clogs) return;
    ++tally_.gray_faults;
    const auto clogged = links[slowing_.below(links.size())];
    network.clog(clogged, slowing_.between(1ms, 1s));
    agenda_.at_last(slowing_.between(10ms, 5s),
                    [this, clogged] { agenda_.world.network().clog(clogged, {}); });
}

void RaidSwarm::end_gray() {
    auto& network = agenda_.world.network();
    for (unsigned i = 0; i < cluster_.machines(); ++i) {
        network.set_lines(cluster_.machine_name(i), {});
        if (cluster_.has_part(i)) cluster_.disk(i).slowness = 1;
    }
    for (unsigned i = 0; i < hosts_.size(); ++i)
        network.set_lines(cluster_.host(i).machine().name(), {});
}

/// A queue as deep as a volume takes.
void RaidSwarm::burst() {
    const auto count = 8u << slowing_.below(5);
    say("a burst of " + std::to_string(count));
    for (unsigned i = 0; i < count; ++i) work_a_little();
}

void RaidSwarm::go_on_for(Duration duration) {
    const auto until = agenda_.now() + duration;
    while (agenda_.now() < until && complaints_.all().empty()) agenda_.wait_until(until);
}

bool RaidSwarm::can_serve() {
    const auto state = cluster_.manager().status().state;
    const bool serves = state == raid::VolumeState::healthy ||
                        state == raid::VolumeState::degraded ||
                        state == raid::VolumeState::rebuilding;
    return serves && away_.empty() && cluster_.store_errors == 0 &&
           !cluster_.anybody_lacks_room() && !cluster_.has_cut_links();
}

/// Of one that the controller in office has been asked for: some hosts have yet to find it.
void RaidSwarm::look_at_waiting(const Work& work) {
    const auto& last = *work.attempts.back();
    if (last.epoch == cluster_.epoch() && !work.is_answered)
        time_rule_.look_at_waiting(work.name(), last.asked_at, agenda_.now());
}

void RaidSwarm::look_at_rules() {
    const auto now = agenda_.now();
    const bool serves = can_serve();
    if (!serves) time_rule_.note_trouble(now);
    if (!serves || !is_calm_) fairness_rule_.excuse_all();
    if (!all_answered() && !habits_.beyond)
        for (const Work* work : open_) look_at_waiting(*work);
    const auto status = cluster_.manager().status();
    const bool is_stuck = std::ranges::any_of(status.rebuilds, &raid::RebuildStatus::is_stuck);
    const bool all_there =
        std::ranges::all_of(status.members, [](const raid::MemberStatus& member) {
            return member.up && !member.failed && member.state != wire::ArrayMemberState::absent;
        });
    rebuild_rule_.look_at(status.state == raid::VolumeState::healthy,
                          is_calm_ && serves && all_there && !is_stuck, habits_.stripes, now);
}

}  // namespace weft::sim
