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
    engine_.try_links();
    for (auto& [identity, box] : boxes_) {
        if (box.minutes_left == 0) continue;
        link_timer_.ask(links_rest);
        if (--box.minutes_left > 0) continue;
        if (!box.facts.failed) box.fallen_out = 0;
        if (!std::exchange(box.out_for_links, false)) continue;
        box.facts.failed = false;
        box.complaints = 0;
        box.minutes_left = forgiven_after;
        if (box.has_session && !box.greeted) greet(identity, box);
    }
}

/// Neither has fallen out with anybody else, or who has cannot be spared: it is the link, and there
/// is a way around it.
bool VolumeManager::Life::goes_around(const Complaint& complaint) {
    const auto& [suspect, reporter, why] = complaint;
    if (suspect == reporter || !is_about_peer(why)) return false;
    const bool are_alone = partners_[suspect].size() <= 1 && partners_[reporter].size() <= 1;
    if (!are_alone && can_count_out(to_blame(complaint))) return false;
    if (!engine_.can_detour()) return false;
    link_timer_.ask(links_rest);
    if (engine_.avoid(suspect, reporter))
        say({.kind = VolumeEventKind::link_broken,
             .place = suspect,
             .box = volume_.members[suspect].box,
             .why = {},
             .number = reporter,
             .other = volume_.members[reporter].box});
    return true;
}

void VolumeManager::Life::link_mended(BoxIndex box, BoxIndex other) {
    say({.kind = VolumeEventKind::link_mended,
         .place = number(box),
         .box = volume_.members[number(box)].box,
         .why = {},
         .number = number(other),
         .other = volume_.members[number(other)].box});
}

void VolumeManager::Life::host_cut_off(BoxIndex box, bool is_new) {
    link_timer_.ask(links_rest);
    if (is_new) say_of(VolumeEventKind::host_cut_off, number(box));
}

void VolumeManager::Life::host_reached(BoxIndex box) {
    say_of(VolumeEventKind::host_reached, number(box));
}

}  // namespace weft::raid
