// SPDX-License-Identifier: Apache-2.0
// Boxes that are there, and answer slowly, have no room or do not reach somebody. None of that is a
// reason to count one out: requests wait, or go around. People are told when it begins and when it
// ends, and not of what passes by itself at once.
#include <algorithm>

#include "raid/volume_life.hpp"

namespace weft::raid {
namespace {

using namespace std::chrono_literals;
using wire::ArrayOutcome;

constexpr Duration first_look = 250ms;  ///< at a box that has no room
constexpr Duration look_again = 1s;
constexpr unsigned refusals_at_first = 3;  ///< those who wait ask again: fewer, and it has passed

}  // namespace

void VolumeManager::Life::no_room(BoxIndex box, ArrayOutcome why) {
    retry_after_ = std::clamp<Duration>(retry_after_ * 2, 1ms, 200ms);
    retry_timer_.ask(retry_after_);
    calm_timer_.stop();
    calm_timer_.ask(10s);
    Place& place = places_[number(box)];
    ++place.refused;
    place.refused_for = why;
    place.full.ask(first_look);
}

/// What it knows, or to end what was left open there when it was lost.
void VolumeManager::Life::ask_again_who_had_none(std::uint8_t index) {
    const auto& identity = volume_.members[index].box;
    BoxState* box = state_of(index);
    if (!box || !box->has_session || !box->facts.has_part || !has_journal()) return;
    if (!box->recalled) return ask_for_recall(identity);
    if (!box->greeted && !box->must_end) end_what_is_open(identity, *box);
}

void VolumeManager::Life::look_for_room(std::uint8_t index, Instant now) {
    Place& place = places_[index];
    if (!place.full.passed(now)) return;
    const unsigned refused = std::exchange(place.refused, 0);
    const bool is_lasting = place.said_full || place.refused_for == ArrayOutcome::no_space;
    if (refused > 0) ask_again_who_had_none(index);
    if (refused >= (is_lasting ? 1 : refusals_at_first)) {
        place.full.ask(look_again);
        if (std::exchange(place.said_full, true)) return;
        const auto kind = place.refused_for == ArrayOutcome::no_space ? VolumeEventKind::disk_full
                          : has_journal() ? VolumeEventKind::journal_full
                                          : VolumeEventKind::windows_full;
        say_of(kind, index, {}, engine_.writes_waiting());
    } else if (std::exchange(place.said_full, false)) {
        say_of(VolumeEventKind::has_room, index);
    }
}

void VolumeManager::Life::box_slow(BoxIndex box, Duration waited, Duration others) {
    const auto place = number(box);
    say({.kind = VolumeEventKind::box_slow,
         .place = place,
         .box = applied_.members[place].box,
         .why = {},
         .number = 0,
         .took = waited,
         .others = others});
}

void VolumeManager::Life::box_quick(BoxIndex box) {
    say_of(VolumeEventKind::box_quick, number(box));
}

/// A minute has passed: links may be there again.
void VolumeManager::Life::try_links_again() {
    constexpr unsigned forgiven_after = 64;
    engine_.retry_links();
    if (!engine_.links().empty()) link_timer_.ask(links_rest);
    for (auto& [identity, box] : boxes_) {
        if (box.minutes_left == 0) continue;
        link_timer_.ask(links_rest);
        if (--box.minutes_left > 0) continue;
        if (!box.facts.failed) box.fallen_out = 0;
        if (!std::exchange(box.out_for_links, false)) continue;
        box.facts.failed = false;
        box.cut_off_since.reset();
        box.minutes_left = forgiven_after;
        if (box.has_session && !box.greeted) greet(identity, box);
    }
}

void VolumeManager::Life::link_changed(LinkReport what, BoxIndex box, BoxIndex other) {
    say({.kind = what == LinkReport::broken ? VolumeEventKind::link_broken
                                            : VolumeEventKind::link_mended,
         .place = number(box),
         .box = volume_.members[number(box)].box,
         .why = {},
         .number = number(other),
         .other = volume_.members[number(other)].box});
}

void VolumeManager::Life::host_link_changed(LinkReport what, BoxIndex box) {
    say_of(
        what == LinkReport::broken ? VolumeEventKind::host_cut_off : VolumeEventKind::host_reached,
        number(box));
}

}  // namespace weft::raid
