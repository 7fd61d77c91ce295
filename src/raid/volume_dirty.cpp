// SPDX-License-Identifier: Apache-2.0
// What is known to be in question, kept so that it outlives us: of every absent member what it
// lacks, and of a volume without a journal what is being written. A stripe is named in the store
// before anything is written to it, and leaves it only when it was copied, or flushed everywhere.
#include <algorithm>

#include "raid/dirty_record.hpp"
#include "raid/volume_life.hpp"

namespace weft::raid {

namespace {

/// In place of a boot: the box has begun anew and nothing was made of that yet.
constexpr std::uint64_t no_boot = 1;

}  // namespace

using namespace std::chrono_literals;
using wire::ArrayMemberState;

/// With a journal, boxes know themselves what they had begun.
bool VolumeManager::Life::keeps_intent() const {
    return volume_.consistency == wire::ArrayConsistency::none;
}

/// Somebody is on the way out: what it lacks is counted once, and nothing new until it is out.
bool VolumeManager::Life::loses_somebody() const {
    const auto& next = storing_ == Storing::volume ? pending_ : volume_;
    for (std::uint8_t i = 0; i < applied_.boxes; ++i) {
        const auto &was = applied_.members[i], &is = next.members[i];
        if (was.state == ArrayMemberState::absent) continue;
        if (places_[i].missed) return true;
        if (was.box != is.box) continue;  // who comes instead gets everything
        if (is.state == ArrayMemberState::absent) return true;
        if (was.state == ArrayMemberState::current && is.state != was.state) return true;
    }
    return false;
}

bool VolumeManager::Life::may_write(std::span<const Band> bands) {
    if (loses_somebody()) {
        writes_held_ = true;
        return false;
    }
    bool may = true;
    auto ask = [&](LastingMap& map) {
        for (const Band& band : bands) {
            map.want(band.stripe);
            may = may && map.has(band.stripe);
        }
    };
    if (keeps_intent()) {
        ask(intent_);
        may = may && boots() == kept_boots_;
        for (const Band& band : bands) recent_.add(band.stripe);
    }
    for (std::uint8_t i = 0; i < applied_.boxes; ++i)
        if (applied_.members[i].state == ArrayMemberState::absent && places_[i].lasting)
            ask(*places_[i].lasting);
    if (!may) see_to_it();
    return may;
}

/// What a controller before this one has left. Where it has left no map, all is in question.
void VolumeManager::Life::recall_dirty(std::span<const DirtyRecord> records) {
    RegionMap intent(volume_.stripes);
    for (const auto& record : records) {
        if (record.volume != volume_.volume || record.stripes.stripes() > volume_.stripes) continue;
        const auto stripes = record.stripes.grown(volume_.stripes);
        if (record.place == wire::intent_place && keeps_intent()) {
            intent.add(stripes);
            intent_.recall(stripes);
            kept_boots_ = storing_boots_ = record.boots;
            for (std::uint8_t i = 0; i < volume_.boxes; ++i)
                boxes_[volume_.members[i].box].boot = record.boots[i];
        } else if (record.place < volume_.boxes) {
            places_[record.place].lasting.emplace(volume_.stripes).recall(stripes);
        }
    }
    log_.wrote(intent);
    doubtful_.add(intent);
    inherited_ = !intent.empty();
    if (inherited_)
        say({.kind = VolumeEventKind::stripes_doubtful,
             .place = {},
             .number = intent.count_before(volume_.stripes)});
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) recall_place(i);
}

void VolumeManager::Life::recall_place(std::uint8_t index) {
    Place& place = places_[index];
    const auto state = volume_.members[index].state;
    if (state == ArrayMemberState::current) return;
    const bool rebuilding = state == ArrayMemberState::rebuilding;
    place.lacks.emplace(volume_.stripes);
    if (place.lasting) {
        place.lacks->add(place.lasting->wanted());
        if (rebuilding) place.lacks->clear_before(place.lasting_mark);
    } else {
        place.lacks->add_from(rebuilding ? place.lasting_mark : 0);
        if (!rebuilding) place.lasting.emplace(volume_.stripes).want(*place.lacks);
    }
    if (rebuilding) place.rebuild.emplace(BoxIndex{index}, *place.lacks);
}

/// In which life each member is, as far as it is counted on. Whoever comes after us finds a box in
/// another one, and takes it for one that has lost what was written and not flushed: so nothing is
/// written while the store has another life of it than the one it is in.
DirtyRecord::Boots VolumeManager::Life::boots() const {
    DirtyRecord::Boots all = kept_boots_;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        const auto box = boxes_.find(volume_.members[i].box);
        if (box == boxes_.end() || volume_.members[i].state == ArrayMemberState::absent) continue;
        all[i] = box->second.lost_power ? no_boot : box->second.boot;
    }
    return all;
}

DirtyRecord VolumeManager::Life::dirty_record(std::uint8_t place, LastingMap& map) {
    DirtyRecord record{
        .volume = volume_.volume, .place = place, .stripes = map.begin(), .boots = {}};
    if (place == wire::intent_place) record.boots = storing_boots_ = boots();
    return record;
}

/// With a change of membership: a map for who leaves, and none any more for who has everything. Who
/// comes back with an empty part lacks more than it did when it left, and that must be lasting
/// before the part is made: afterwards nothing tells it from one that only missed something.
void VolumeManager::Life::keep_lacks(const wire::ArrayVolume& next,
                                     std::vector<MetadataChange>& changes) {
    for (std::uint8_t i = 0; i < next.boxes; ++i) {
        const auto &was = volume_.members[i], &is = next.members[i];
        Place& place = places_[i];
        const auto name = dirty_record_name(next.volume, i);
        if (is.state == ArrayMemberState::current || was.box != is.box) {
            if (place.lasting) changes.push_back({name, std::nullopt});
        } else if (was.state != is.state) {
            if (!place.lasting) place.lasting.emplace(volume_.stripes);
            place.lasting->want(lacks_of(i, applied_.members[i]));
            changes.push_back({name, encode_dirty_record(dirty_record(i, *place.lasting))});
        }
    }
}

/// What was kept along with it, or was not.
void VolumeManager::Life::lacks_stored(const wire::ArrayVolume& before, bool good) {
    intent_.stored(good);
    if (good) kept_boots_ = storing_boots_;
    storing_boots_ = kept_boots_;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        Place& place = places_[i];
        if (!place.lasting) continue;
        place.lasting->stored(good);
        const auto& is = volume_.members[i];
        const bool changed = before.generation != volume_.generation;
        if (changed && (is.state == ArrayMemberState::current || before.members[i].box != is.box))
            place.lasting.reset();
    }
    if (good) engine_.go_on();
}

void VolumeManager::Life::add_dirty(std::vector<MetadataChange>& changes) {
    const bool boots_are_due = !intent_.wanted().empty() && boots() != kept_boots_;
    if (keeps_intent() && (intent_.is_due() || boots_are_due))
        changes.push_back({dirty_record_name(volume_.volume, wire::intent_place),
                           encode_dirty_record(dirty_record(wire::intent_place, intent_))});
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        auto& lasting = places_[i].lasting;
        if (volume_.members[i].state == ArrayMemberState::current || !lasting) continue;
        if (lasting->is_due())
            changes.push_back({dirty_record_name(volume_.volume, i),
                               encode_dirty_record(dirty_record(i, *lasting))});
    }
}

/// Where nothing was written for a while, and all of it was flushed, nothing is in question.
void VolumeManager::Life::forget_intent() {
    RegionMap needed = log_.unflushed();
    needed.add(doubtful_);
    needed.add(recent_);
    for (auto stripe : to_mend_) needed.add(stripe);
    for (const Work& work : works_)
        if (work.busy) needed.add(work.stripe);
    intent_.want_only(needed);
    recent_.clear();
}

/// It may lack anything that was not flushed, and is to be given it as if it had been away; also
/// where it was not we who saw it go. Of one that was counted out it is known what it lacks.
void VolumeManager::Life::has_begun_anew(std::optional<std::uint8_t> place, BoxState& box) {
    if (!place || volume_.members[*place].state == ArrayMemberState::absent) return;
    if (!keeps_intent() || log_.empty()) return;
    box.lost_power = box.facts.missed = places_[*place].missed = true;
}

/// A box that cannot be spared is believed, whatever it missed: nothing was answered without it.
/// What it had answered for and not flushed it may have lost with its power.
void VolumeManager::Life::believe(std::uint8_t index) {
    BoxState& box = boxes_[volume_.members[index].box];
    box.facts.missed = places_[index].missed = false;
    if (!std::exchange(box.lost_power, false) || !keeps_intent() || log_.empty()) return;
    const auto unflushed = log_.unflushed();
    doubtful_.add(unflushed);
    owed_.insert(writers_.begin(), writers_.end());
    if (inherited_) loss_timer_.ask(120s);
    say_of(VolumeEventKind::writes_lost, index, {}, unflushed.count_before(volume_.stripes));
}

/// Once to everyone who may have written what was lost; who that was before us is not known.
bool VolumeManager::Life::owes_a_loss(wire::HostSession session) {
    if (owed_.erase(session) > 0) return true;
    if (!loss_timer_.asked() || owed_told_.size() >= limits::requests) return false;
    return owed_told_.insert(session).second;
}

}  // namespace weft::raid
