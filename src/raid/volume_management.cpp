// SPDX-License-Identifier: Apache-2.0
// What people ask of a volume, and what they are told of it.
#include <algorithm>

#include "raid/volume_life.hpp"

namespace weft::raid {

using wire::ArrayMemberState;

Result<void> VolumeManager::Life::check_place(std::uint8_t place) const {
    if (!started_ || place >= volume_.boxes) return Error{Code::not_found};
    return {};
}

Result<void> VolumeManager::Life::fail(std::uint8_t place) {
    if (auto good = check_place(place); !good) return good;
    if (volume_.members[place].state == ArrayMemberState::current && !can_count_out(place))
        return Error{Code::io_failed};
    Visit visit(*this);
    BoxState& box = boxes_[volume_.members[place].box];
    box.facts.failed = true;
    box.out_for_links = false;  // whoever says so will say when it is over
    return {};
}

Result<void> VolumeManager::Life::re_add(std::uint8_t place) {
    if (auto good = check_place(place); !good) return good;
    BoxState* box = state_of(place);
    if (!box || !(box->facts.failed || box->needs_repair)) return Error{Code::unsupported};
    Visit visit(*this);
    box->facts.failed = box->needs_repair = false;
    box->cut_off_since.reset();
    box->fallen_out = box->minutes_left = box->refusals = 0;
    box->out_for_links = false;
    // It may be for what it was asked first that it had failed.
    if (box->has_session && !box->greeted) greet(volume_.members[place].box, *box);
    return {};
}

Result<void> VolumeManager::Life::replace(std::uint8_t place, const wire::BoxIdentity& box) {
    if (auto good = check_place(place); !good) return good;
    auto newcomer = boxes_.find(box);
    if (newcomer == boxes_.end() || !newcomer->second.facts.up) return Error{Code::not_found};
    if (place_of(box) || newcomer->second.facts.has_part) return Error{Code::unsupported};
    for (const auto& [other, wished] : wishes_.replacements)
        if (other != place && wished == box) return Error{Code::unsupported};
    if (volume_.members[place].state == ArrayMemberState::current && !can_count_out(place))
        return Error{Code::io_failed};
    Visit visit(*this);
    newcomer->second.facts.failed = false;
    newcomer->second.refusals = 0;
    wishes_.replacements[place] = box;
    return {};
}

Result<void> VolumeManager::Life::pause_rebuild(bool paused) {
    if (!started_) return Error{Code::not_found};
    Visit visit(*this);
    if (rebuild_orders_.paused == paused) return {};
    rebuild_orders_.paused = paused;
    for (Place& place : places_) place.keep = place.keep || place.rebuild;
    say(paused ? VolumeEventKind::rebuild_paused : VolumeEventKind::rebuild_resumed);
    return {};
}

Result<void> VolumeManager::Life::limit_rebuild(std::uint64_t octets_per_second) {
    if (!started_) return Error{Code::not_found};
    Visit visit(*this);
    rebuild_orders_.octets_per_second = octets_per_second;
    rate_timer_.stop();
    rate_debt_ = 0;
    for (Place& place : places_) place.keep = place.keep || place.rebuild;
    return {};
}

Result<void> VolumeManager::Life::scrub(bool repair) {
    if (!started_) return Error{Code::not_found};
    if (scrub_.running) return Error{Code::unsupported};
    Visit visit(*this);
    scrub_ = {.running = true, .repairs = repair, .done = 0, .to_do = applied_.stripes};
    ++scrubs_;
    scrub_next_ = 0;
    scrub_again_.clear();
    to_repair_.clear();
    say({.kind = VolumeEventKind::scrub_began, .place = {}, .number = scrub_.to_do});
    return {};
}

Result<void> VolumeManager::Life::stop_scrub() {
    if (!scrub_.running) return Error{Code::unsupported};
    Visit visit(*this);
    scrub_.running = false;
    say({.kind = VolumeEventKind::scrub_ended, .place = {}, .number = scrub_.mismatches});
    return {};
}

Result<void> VolumeManager::Life::grow(std::uint64_t stripes) {
    if (!started_) return Error{Code::not_found};
    if (stripes <= volume_.stripes || wishes_.stripes) return Error{Code::unsupported};
    if (!is_whole() || is_changing() || !serving_) return Error{Code::unsupported};
    Visit visit(*this);
    wishes_.stripes = stripes;
    return {};
}

VolumeStatus VolumeManager::Life::status() const {
    VolumeStatus status;
    status.size = size();
    status.volume = volume_;
    status.requests = engine_.requests();
    status.scrub = scrub_;
    status.counters = engine_.counters();
    bool degraded = false;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        const auto& member = volume_.members[i];
        // It is on its way out as soon as the store is told, and not only when it says so.
        const bool leaves =
            storing_ == Storing::volume && pending_.members[i].state != ArrayMemberState::current;
        auto box = boxes_.find(member.box);
        BoxFacts facts = box == boxes_.end() ? BoxFacts{} : box->second.facts;
        const bool needs_repair = box != boxes_.end() && box->second.needs_repair;
        status.members.push_back({.place = i,
                                  .box = member.box,
                                  .state = member.state,
                                  .up = facts.up,
                                  .failed = facts.failed,
                                  .needs_repair = needs_repair,
                                  .slow = contains(engine_.slow_boxes(), i),
                                  .full = places_[i].said_full,
                                  .unreached = engine_.links().unreached_by(i),
                                  .misses_host = engine_.links().misses_host(i)});
        degraded = degraded || leaves || member.state != ArrayMemberState::current || !facts.up ||
                   facts.missed || facts.failed || needs_repair;
        if (!places_[i].rebuild) continue;
        const Rebuild& rebuild = *places_[i].rebuild;
        status.rebuilds.push_back({.place = i,
                                   .paused = rebuild_orders_.paused,
                                   .is_stuck = rebuild.is_stuck(),
                                   .done = rebuild.stripes_done(),
                                   .to_do = rebuild.stripes_to_do(),
                                   .octets = places_[i].octets,
                                   .octets_per_second = rebuild_orders_.octets_per_second});
    }
    status.state = deposed_                   ? VolumeState::deposed
                   : !started_ || starting_   ? VolumeState::starting
                   : !serving_                ? VolumeState::stopped
                   : !status.rebuilds.empty() ? VolumeState::rebuilding
                   : degraded                 ? VolumeState::degraded
                                              : VolumeState::healthy;
    return status;
}

}  // namespace weft::raid
