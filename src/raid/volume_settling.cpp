// SPDX-License-Identifier: Apache-2.0
// Changes of a volume: first in the store, then on its boxes, then for hosts. Each step begins when
// the one before is lasting, and whatever happens meanwhile is seen when it has ended.
#include <algorithm>

#include "raid/records.hpp"
#include "raid/volume_life.hpp"

namespace weft::raid {
namespace {

std::vector<std::byte> address_and(const wire::ArrayAddress& address,
                                   const wire::ArrayVolume& volume) {
    const auto head = encoded(address);
    const auto body = encoded(volume);
    std::vector<std::byte> list(head.begin(), head.end());
    list.insert(list.end(), body.begin(), body.end());
    return list;
}

}  // namespace

using namespace std::chrono_literals;
using wire::ArrayMemberState;
using wire::ArrayOutcome;

bool VolumeManager::Life::is_changing() const {
    return storing_ == Storing::volume || applied_.generation != volume_.generation ||
           std::ranges::any_of(
               told_, [](const auto& told) { return told.second.what == Told::What::volume; });
}

void VolumeManager::Life::settle() {
    if (!started_ || deposed_ || storing_ != Storing::nothing || store_timer_.asked()) return;
    if (std::ranges::any_of(
            told_, [](const auto& told) { return told.second.what == Told::What::volume; }))
        return;
    if (starting_ && !starts_yet()) return;
    if (auto next = next_volume(volume_, facts(), wishes())) return keep(*next);
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        const BoxState* box = state_of(i);
        if (volume_.members[i].state == ArrayMemberState::current && box && box->facts.up &&
            box->facts.has_part && box->facts.missed && !is_of_the_past(i)) {
            believe(i);
            back_in_time_ = true;
        }
    }
    if (tell_members()) return;
    if (!can_serve()) return stop();
    if (!resolve_what_is_in_doubt()) return;
    if (!serving_ || applied_.generation != volume_.generation) apply();
    // It was back before its loss had any consequence: what waits for it must hear of it.
    if (std::exchange(back_in_time_, false)) engine_.try_again();
}

/// All are there, or those that are not have had their time.
bool VolumeManager::Life::starts_yet() {
    const auto known = facts();
    const bool all = std::ranges::all_of(std::span(volume_.members).first(volume_.boxes),
                                         [&](const auto& member) {
                                             auto box = known.find(member.box);
                                             return member.state == ArrayMemberState::absent ||
                                                    (box != known.end() && box->second.up);
                                         });
    if (!all && !start_expired_) return false;
    starting_ = false;
    start_timer_.stop();
    return true;
}

void VolumeManager::Life::keep(wire::ArrayVolume next) {
    // Who has become whole has taken orders of the volume as it is applied: it knows at least that.
    for (std::uint8_t i = 0; i < next.boxes; ++i)
        if (volume_.members[i].state == ArrayMemberState::rebuilding &&
            next.members[i].state == ArrayMemberState::current)
            next.members[i].since = applied_.generation;
    pending_ = next;
    storing_ = Storing::volume;
    std::vector<MetadataChange> changes;
    changes.push_back({volume_record_name(next.volume), encode_record(next)});
    for (std::uint8_t i = 0; i < next.boxes; ++i) {
        const auto &was = volume_.members[i], &is = next.members[i];
        const bool rebuilt = was.state == ArrayMemberState::rebuilding;
        const bool rebuilds = is.state == ArrayMemberState::rebuilding;
        const auto name = rebuild_record_name(next.volume, i);
        if (rebuilds && !(rebuilt && was.box == is.box))
            changes.push_back({name, encode_record(wire::ArrayRebuildRecord{
                                         .volume = next.volume,
                                         .place = i,
                                         .paused = rebuild_orders_.paused,
                                         .stripes = 0,
                                         .octets_per_second = rebuild_orders_.octets_per_second})});
        else if (rebuilt && !rebuilds)
            changes.push_back({name, std::nullopt});
    }
    keep_lacks(next, changes);
    // Who becomes whole has the blocks and no notes of who wrote them, and who has them may go.
    const auto executed = engine_.executed().latest(limits::executed_kept);
    if (has_journal() && !executed.empty())
        changes.push_back({executed_record_name(next.volume),
                           encode_executed_record({.volume = next.volume, .notes = executed})});
    owner_.store(std::move(changes));
}

/// How far rebuilding has come, and what is in question.
void VolumeManager::Life::keep_records() {
    if (!started_ || deposed_ || storing_ != Storing::nothing || store_timer_.asked()) return;
    std::vector<MetadataChange> changes;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        Place& place = places_[i];
        if (is_changing()) break;  // whose rebuild it is will be seen when that has ended
        if (!std::exchange(place.keep, false) || !place.rebuild) continue;
        changes.push_back({rebuild_record_name(volume_.volume, i),
                           encode_record(wire::ArrayRebuildRecord{
                               .volume = volume_.volume,
                               .place = i,
                               .paused = rebuild_orders_.paused,
                               .stripes = place.lasting_mark,
                               .octets_per_second = rebuild_orders_.octets_per_second})});
    }
    add_dirty(changes);
    if (changes.empty()) return;
    storing_ = Storing::records;
    owner_.store(std::move(changes));
}

void VolumeManager::Life::stored(Result<void> outcome) {
    Visit visit(*this);
    const Storing what = std::exchange(storing_, Storing::nothing);
    if (!outcome) {
        if (outcome.error().code == Code::access_denied) return depose();
        lacks_stored(volume_, false);
        if (what == Storing::records)
            for (Place& place : places_) place.keep = place.rebuild.has_value();
        store_timer_.ask(1s);
        return say(VolumeEventKind::store_failed);
    }
    if (what != Storing::volume) return lacks_stored(volume_, true);
    const auto before = std::exchange(volume_, pending_);
    lacks_stored(before, true);
    Mask rebuilding = 0;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        const auto& member = volume_.members[i];
        // What was rebuilt for the box before it says nothing of who has the place now.
        if (member.state == ArrayMemberState::rebuilding && member.box == before.members[i].box)
            rebuilding |= only(i);
        if (member.state == ArrayMemberState::absent) {
            BoxState& box = boxes_[member.box];
            box.facts.missed = box.lost_power = false;
        }
        auto wished = wishes_.replacements.find(i);
        if (wished != wishes_.replacements.end() && wished->second == member.box)
            wishes_.replacements.erase(wished);
    }
    wishes_.whole &= rebuilding;
    if (wishes_.stripes == volume_.stripes) wishes_.stripes.reset();
}

/// Those whose superblock is of an older volume. True: some are told, and must answer first.
bool VolumeManager::Life::tell_members() {
    bool some = false;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        const auto& member = volume_.members[i];
        if (member.state == ArrayMemberState::absent) continue;
        const BoxState* box = state_of(i);
        if (!box || !box->facts.up || box->facts.failed) continue;
        if (box->facts.has_part && box->generation == volume_.generation) continue;
        // Zeroes are not what a member has that all others count on, nor is what was put back.
        if (!box->facts.has_part && member.state == ArrayMemberState::current) continue;
        if (is_of_the_past(i)) continue;
        tell(member.box, i);
        some = true;
    }
    return some;
}

void VolumeManager::Life::tell(const wire::BoxIdentity& identity, std::uint8_t place) {
    BoxState& box = boxes_[identity];
    const auto ticket = remember({.box = identity,
                                  .what = Told::What::volume,
                                  .generation = volume_.generation,
                                  .stripes = volume_.stripes});
    if (!box.facts.has_part) {
        places_[place].blank = true;
        engine_.forget_prepared(identity);
        box.data_length = volume_.stripes * volume_.chunk_bytes;
        return owner_.create_part(
            identity, ticket, part_superblock(cluster_, epoch_, volume_, place, box.data_length));
    }
    auto parameters = address_and({.cluster = cluster_,
                                   .volume = volume_.volume,
                                   .box = identity,
                                   .generation = box.generation,
                                   .epoch = epoch_},
                                  volume_);
    owner_.carry(identity, ticket,
                 {{.action = wire::ArrayAction::store_volume,
                   .transaction = {},
                   .parameter_length = static_cast<std::uint32_t>(parameters.size()),
                   .control = {}},
                  std::move(parameters)});
}

void VolumeManager::Life::told(const Told& what, const wire::ArrayAnswer& answer) {
    BoxState& box = boxes_[what.box];
    const auto place = place_of(what.box);
    const bool is_told =
        answer.outcome == ArrayOutcome::done ||
        (answer.outcome == ArrayOutcome::other_generation && answer.generation == what.generation);
    if (is_told) {
        box.generation = what.generation;
        box.refusals = 0;
        if (!std::exchange(box.facts.has_part, true)) {
            box.recalled.emplace();  // an empty journal, in which nothing is open
            box.left_open.clear();
        }
        return;
    }
    // Told again, under what it knows: something newer came in between, or we know it by an older
    // generation than it has.
    if (answer.outcome == ArrayOutcome::other_generation && answer.generation < what.generation &&
        (answer.generation != box.generation || ++box.refusals < limits::refusals)) {
        box.generation = answer.generation;
        return;
    }
    if (answer.outcome == ArrayOutcome::other_epoch && answer.epoch > epoch_) return depose();
    if (what.stripes > applied_.stripes) {
        // Nobody has used the new stripes yet: as if it had never been asked for.
        wishes_.stripes = applied_.stripes;
        if (place) say_of(VolumeEventKind::grow_refused, *place, answer.outcome);
        return;
    }
    box.facts.failed = true;
    if (place) say_of(VolumeEventKind::box_failed, *place, answer.outcome);
}

/// Every box that plans would count on is there and knows what volume this is.
bool VolumeManager::Life::can_serve() const {
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        const auto& member = volume_.members[i];
        if (member.state == ArrayMemberState::absent) continue;
        auto box = boxes_.find(member.box);
        if (box == boxes_.end() || !box->second.facts.up || !box->second.facts.has_part ||
            box->second.generation != volume_.generation || is_of_the_past(i))
            return false;
    }
    return true;
}

/// Nothing is done any more, and those who wait are told: their next controller is another.
void VolumeManager::Life::depose() {
    if (std::exchange(deposed_, true)) return;
    engine_.halt();
    say(VolumeEventKind::deposed);
    engine_.give_up(Error{Code::disconnected});
}

void VolumeManager::Life::stop() {
    if (stop_timer_.asked() || given_up_) return;
    serving_ = false;
    engine_.halt();
    stop_timer_.ask(options_.request_patience);
    say(VolumeEventKind::stopped);
}

void VolumeManager::Life::apply() {
    const bool was_serving = std::exchange(serving_, true);
    const auto before = std::exchange(applied_, volume_);
    if (before.stripes != volume_.stripes) {
        log_.grow(volume_.stripes);
        doubtful_ = doubtful_.grown(volume_.stripes);
        recent_ = recent_.grown(volume_.stripes);
        intent_.grow(volume_.stripes);
        say({.kind = VolumeEventKind::grown, .place = {}, .number = volume_.stripes});
    }
    take_places(before);
    given_up_ = false;
    stop_timer_.stop();
    retry_timer_.stop();
    failures_.clear();
    retry_wanted_ = false;
    changed_ = true;
    if (!was_serving) say(VolumeEventKind::started);
    (void)engine_.set_volume(cluster_, epoch_, volume_, health());
}

/// Its part is empty, or is about to be made, or says nothing of what it lacks.
bool VolumeManager::Life::is_blank(std::uint8_t index) const {
    const auto box = boxes_.find(volume_.members[index].box);
    return places_[index].blank ||
           (box != boxes_.end() && box->second.facts.up && !box->second.facts.has_part);
}

/// From here on the engine leaves out who has become absent: what it will lack is counted from now,
/// and begins with all that it may not have kept.
RegionMap VolumeManager::Life::lacks_of(std::uint8_t index, const wire::ArrayMember& was) const {
    const Place& place = places_[index];
    RegionMap lacks(volume_.stripes);
    if (was.box != volume_.members[index].box || is_blank(index)) {
        lacks.add_from(0);
        return lacks;
    }
    if (was.state == ArrayMemberState::absent) return place.lacks ? *place.lacks : lacks;
    if (place.lasting && !place.rebuild) lacks.add(place.lasting->wanted());
    lacks.add(log_.unflushed());
    if (place.rebuild) lacks.add(place.rebuild->left_from(place.lasting_mark));
    return lacks;
}

/// A volume may have changed more than once since the engine last heard of it: a box that was away
/// for a moment is counted out and in again, and must not be taken for one that never was.
void VolumeManager::Life::take_places(const wire::ArrayVolume& before) {
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        const auto &was = before.members[i], &is = volume_.members[i];
        Place& place = places_[i];
        if (was == is && !place.missed) continue;
        if (is.state == ArrayMemberState::current) {
            if (was.state != is.state) say_of(VolumeEventKind::member_current, i);
            place.rebuild.reset();
            place.lacks.reset();
        } else if (was != is || is.state == ArrayMemberState::rebuilding) {
            place.lacks = lacks_of(i, was);
            if (place.lasting) place.lasting->want(*place.lacks);
            place.rebuild.reset();
            if (is.state == ArrayMemberState::absent)
                leave_place(i);
            else
                begin_rebuild(i, was);
        }
        place.missed = false;
    }
}

void VolumeManager::Life::leave_place(std::uint8_t index) {
    const auto& identity = volume_.members[index].box;
    BoxState& box = boxes_[identity];
    places_[index].left_at = engine_.last_transaction();
    // What it has prepared and not heard of again it must drop before it is a member once more.
    if (has_journal() && box.has_session) {
        box.facts.up = false;
        greet(identity, box);
    }
    places_[index].spare.ask(box.facts.failed ? Duration{} : options_.spare_patience);
    say_of(VolumeEventKind::member_absent, index);
}

void VolumeManager::Life::begin_rebuild(std::uint8_t index, const wire::ArrayMember& was) {
    Place& place = places_[index];
    if (was.box != volume_.members[index].box) say_of(VolumeEventKind::box_placed, index);
    place.rebuild.emplace(BoxIndex{index}, *place.lacks);
    ++place.rebuilds;
    place.lasting_mark = place.octets = 0;
    place.flushing = place.blank = false;
    boxes_[volume_.members[index].box].facts.put_back = false;
    place.spare.stop();
    say_of(VolumeEventKind::rebuild_began, index, {}, place.rebuild->stripes_to_do());
}

Health VolumeManager::Life::health() const {
    Health health;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        if (volume_.members[i].state == ArrayMemberState::current) continue;
        if (places_[i].rebuild)
            health.lose(places_[i].rebuild->absence());
        else
            health.lose(BoxIndex{i});
    }
    return health;
}

}  // namespace weft::raid
