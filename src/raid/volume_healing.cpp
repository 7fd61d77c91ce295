// SPDX-License-Identifier: Apache-2.0
// Upkeep: stripes made whole, compared, mended. Few at a time, fewer while hosts ask for something,
// none while the volume itself is being changed.
#include <algorithm>

#include "raid/volume_life.hpp"

namespace weft::raid {

using namespace std::chrono_literals;
using wire::ArrayMemberState;

std::size_t VolumeManager::Life::busy_works() const {
    return static_cast<std::size_t>(std::ranges::count(works_, true, &Work::busy));
}

VolumeManager::Life::Work* VolumeManager::Life::idle_work() {
    auto found = std::ranges::find(works_, false, &Work::busy);
    return found != works_.end() ? &*found : &works_.emplace_back(*this);
}

void VolumeManager::Life::begin(Work& work, Work::Purpose purpose, UpkeepKind kind,
                                std::uint64_t stripe, std::uint8_t place) {
    work.purpose = purpose;
    work.kind = kind;
    work.stripe = stripe;
    work.place = place;
    const bool scrubs = purpose == Work::Purpose::scrub || purpose == Work::Purpose::repair;
    work.round = scrubs ? scrubs_ : places_[place].rebuilds;
    work.targets = only(place);
    work.checked = work.agrees = true;
    work.healed = 0;
    work.beyond_repair = false;
    work.mends = scrub_.repairs;
    work.busy = true;
    engine_.submit(work);
}

void VolumeManager::Life::work_on() {
    if (!serving_ || is_changing() || rest_timer_.asked()) return;
    if (!log_.empty() && !flushing_) flush_timer_.ask(options_.flush_interval);
    if (!intent_.wanted().empty()) intent_timer_.ask(options_.intent_rest);
    // What was found to be beyond repair is tried again when nothing else is left to do: nobody
    // must wait for it, neither another place nor a scrub.
    while (!rest_timer_.asked() &&
           (rebuild_more(false) || mend_more() || scrub_more() || rebuild_more(true)))
        ;
}

bool VolumeManager::Life::is_whole() const {
    return std::ranges::all_of(
        std::span(applied_.members).first(applied_.boxes),
        [](const wire::ArrayMember& member) { return member.state == ArrayMemberState::current; });
}

/// Of those rebuilds that are stuck, or of the others.
bool VolumeManager::Life::rebuild_more(bool stuck) {
    for (std::uint8_t i = 0; i < applied_.boxes; ++i) {
        Place& place = places_[i];
        if (!place.rebuild || applied_.members[i].state != ArrayMemberState::rebuilding) continue;
        if (place.rebuild->is_stuck() != stuck) continue;
        if (save_mark(i)) return true;
        if (rebuild_orders_.paused || rate_timer_.asked() || busy_works() >= options_.upkeep_depth)
            return false;
        const auto stripe = place.rebuild->take();
        if (!stripe) continue;
        if (rebuild_orders_.octets_per_second > 0) {
            // Waited for in spans that timers can tell apart.
            rate_debt_ += applied_.chunk_bytes;
            const auto span = Duration(
                static_cast<std::int64_t>(static_cast<double>(rate_debt_) * 1e9 /
                                          static_cast<double>(rebuild_orders_.octets_per_second)));
            if (span >= 10ms) {
                rate_timer_.ask(span);
                rate_debt_ = 0;
            }
        }
        begin(*idle_work(), Work::Purpose::rebuild, UpkeepKind::rebuild, *stripe, i);
        return true;
    }
    return false;
}

/// Flushes, so that what was rebuilt is lasting: now and then, and at the end.
bool VolumeManager::Life::save_mark(std::uint8_t index) {
    Place& place = places_[index];
    if (place.flushing || contains(wishes_.whole, index)) return false;
    const bool due = place.rebuild->mark() >= place.lasting_mark + options_.rebuild_save_stripes;
    if (!due && !place.rebuild->finished()) return false;
    place.flushing = true;
    place.flushing_mark = place.rebuild->mark();
    begin(*idle_work(), Work::Purpose::save, UpkeepKind::flush, 0, index);
    return true;
}

/// Without a column its parity is all that is known of it: it is made anew when all are there.
bool VolumeManager::Life::mend_more() {
    if (busy_works() >= options_.upkeep_depth || !is_whole()) return false;
    if (to_mend_.empty()) to_mend_ = doubtful_.take_first();
    if (to_mend_.empty()) return false;
    begin(*idle_work(), Work::Purpose::mend, UpkeepKind::repair, to_mend_.back(), 0);
    to_mend_.pop_back();
    return true;
}

bool VolumeManager::Life::scrub_more() {
    if (!scrub_.running || busy_works() >= options_.upkeep_depth) return false;
    if (std::ranges::any_of(places_, [](const Place& place) {
            return place.rebuild.has_value() && !place.rebuild->is_stuck();
        }))
        return false;  // first things first
    if (!to_repair_.empty()) {
        begin(*idle_work(), Work::Purpose::repair, UpkeepKind::repair, to_repair_.back(), 0);
        to_repair_.pop_back();
    } else if (!scrub_again_.empty()) {
        begin(*idle_work(), Work::Purpose::scrub, UpkeepKind::scrub, scrub_again_.back(), 0);
        scrub_again_.pop_back();
    } else if (scrub_next_ < scrub_.to_do) {
        begin(*idle_work(), Work::Purpose::scrub, UpkeepKind::scrub, scrub_next_++, 0);
    } else {
        return false;
    }
    return true;
}

void VolumeManager::Life::work_ended(Work& work, Result<void> outcome) {
    work.busy = false;
    changed_ = true;
    const bool good = outcome.has_value();
    if (!good) rest_timer_.ask(work.beyond_repair ? 1s : 20ms);
    switch (work.purpose) {
        case Work::Purpose::rebuild:
        case Work::Purpose::save:
            return rebuilt(work, good);
        case Work::Purpose::scrub:
            return scrubbed(work, good);
        case Work::Purpose::repair:
            say({.kind = good ? VolumeEventKind::scrub_repaired : VolumeEventKind::scrub_unrepaired,
                 .place = {},
                 .number = work.stripe});
            if (!is_of_this_scrub(work)) return;
            if (good) ++scrub_.repaired;
            ++scrub_.done;
            return end_scrub_if_done();
        case Work::Purpose::mend:
            if (!good) doubtful_.add(work.stripe);
            return;
        case Work::Purpose::flush:
            flushing_ = false;
            log_.flush_ended(good);
            if (!log_.empty()) return;
            writers_.clear();
            inherited_ = false;
            return;
    }
}

/// Of a stripe that is known to be lost it was said.
void VolumeManager::Life::block_corrupt(BoxIndex box, std::uint64_t stripe) {
    if (lost_.contains(stripe)) return;
    say_of(VolumeEventKind::block_corrupt, number(box), wire::ArrayOutcome::corrupt, stripe);
}

void VolumeManager::Life::block_healed(BoxIndex box, std::uint64_t stripe) {
    lost_.erase(stripe);
    say_of(VolumeEventKind::block_healed, number(box), {}, stripe);
}

void VolumeManager::Life::block_stale(BoxIndex box, std::uint64_t home) {
    say_of(VolumeEventKind::block_stale, number(box), {}, home);
}

/// Said once: who rebuilds asks again and again.
void VolumeManager::Life::block_lost(BoxIndex box, std::uint64_t stripe) {
    if (lost_.size() < limits::requests && lost_.insert(stripe).second)
        say_of(VolumeEventKind::block_lost, number(box), wire::ArrayOutcome::corrupt, stripe);
}

void VolumeManager::Life::rebuilt(Work& work, bool good) {
    Place& place = places_[work.place];
    if (!place.rebuild || place.rebuilds != work.round) return;  // it has begun again since
    if (work.purpose == Work::Purpose::rebuild) {
        if (!good && !work.beyond_repair) return place.rebuild->failed(work.stripe);
        if (good) {
            place.rebuild->done(work.stripe);
            place.octets += applied_.chunk_bytes;
        } else {
            place.rebuild->pass_over(work.stripe);
        }
        engine_.set_health(health());
        return;
    }
    place.flushing = false;
    // The box may have been counted out meanwhile, and let in again, before the engine heard of it:
    // then this is of a rebuild that is over. If it is not, it is flushed once more.
    if (!good || is_changing()) return;
    place.lasting_mark = place.flushing_mark;
    if (place.lasting_mark >= applied_.stripes)
        wishes_.whole |= only(work.place);
    else
        place.keep = true;
}

/// One that was stopped may have left work under way, which says nothing of the next.
bool VolumeManager::Life::is_of_this_scrub(const Work& work) const {
    return scrub_.running && work.round == scrubs_;
}

void VolumeManager::Life::scrubbed(Work& work, bool good) {
    if (!is_of_this_scrub(work)) return;
    if (!good && !work.beyond_repair) {
        scrub_again_.push_back(work.stripe);
        return;
    }
    if (work.healed > 0 || work.beyond_repair) ++scrub_.mismatches;
    if (work.beyond_repair) {
        ++scrub_.done;
        return end_scrub_if_done();
    }
    if (work.healed > 0) ++scrub_.repaired;
    if (!work.checked) ++scrub_.unchecked;
    if (work.agrees) {
        ++scrub_.done;
        return end_scrub_if_done();
    }
    ++scrub_.mismatches;
    say({.kind = VolumeEventKind::scrub_mismatch, .place = {}, .number = work.stripe});
    if (scrub_.repairs) {
        to_repair_.push_back(work.stripe);
        return;
    }
    ++scrub_.done;
    end_scrub_if_done();
}

void VolumeManager::Life::end_scrub_if_done() {
    if (!scrub_.running || scrub_.done < scrub_.to_do) return;
    scrub_.running = false;
    say({.kind = VolumeEventKind::scrub_ended, .place = {}, .number = scrub_.mismatches});
}

}  // namespace weft::raid
