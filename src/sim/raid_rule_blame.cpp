// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_rule_blame.hpp"

#include <algorithm>

#include "raid/volume_engine.hpp"

namespace weft::sim {

namespace {

/// After it is over it may still be found out, by what had begun before.
constexpr Duration aftermath = std::chrono::seconds(60);

}  // namespace

bool RaidBlameRule::is_recent(std::optional<Instant> when, Instant now) const {
    return when && now < *when + aftermath;
}

bool RaidBlameRule::is_covered(const raid::VolumeEvent& event, unsigned box, Instant now) {
    using Kind = raid::VolumeEventKind;
    const bool was_gone = is_recent(cluster_.gone_at(box, now), now);
    switch (event.kind) {
        case Kind::box_lost:
            return was_gone;
        case Kind::box_failed:
            if (raid::is_about_peer(event.why)) return is_recent(cluster_.cut_at(box, now), now);
            return was_gone || harmed_.contains(box);
        case Kind::member_absent:
            return was_gone || harmed_.contains(box) || failed_.contains(box);
        case Kind::link_broken: {
            const auto other = cluster_.machine_at(static_cast<std::uint8_t>(event.number));
            return was_gone || is_recent(cluster_.gone_at(other, now), now) ||
                   is_recent(cluster_.cut_between(box, other, now), now);
        }
        case Kind::host_cut_off:
            return was_gone || is_recent(cluster_.host_cut_at(box, now), now);
        default:
            return true;
    }
}

void RaidBlameRule::look_at(const raid::VolumeEvent& event, Instant now) {
    if (!event.place) return;
    const auto found = cluster_.index_of(event.box);
    const auto box = found == cluster_.machines() ? cluster_.machine_at(*event.place) : found;
    if (box == cluster_.machines()) return;
    if (!is_covered(event, box, now))
        return complaints_.add("S18: " + raid::to_text(event.kind) + " is said of box " +
                               std::to_string(box) + " (" + raid::to_text(event.why) +
                               "), and nothing was done to it");
    if (event.kind == raid::VolumeEventKind::box_failed) failed_.insert(box);
}

}  // namespace weft::sim
