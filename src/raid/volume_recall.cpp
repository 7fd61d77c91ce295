// SPDX-License-Identifier: Apache-2.0
// What boxes' journals know, and what becomes of it. A controller that takes office finds writes
// that nobody has seen to their end: it asks all members, decides by the rule (raid/in_doubt.hpp),
// tells them, and serves when all have kept it. A member that comes back while it serves has
// prepared what was decided meanwhile: that is the engine's to tell it. Whoever was counted out
// drops what it was not told the end of, and lacks it.
//
// Two things keep that rule true. The place of a box that was counted out stays empty until
// everything begun with it has ended at the others: whoever takes it, the same box that has dropped
// what it had, or one with an empty part, or another, would count as one who takes part in a write
// that it does not have, and the next controller would undo what was answered. And what a box that
// may return has not ended is not settled: see VolumeEngine::settled().
#include <algorithm>

#include "raid/volume_life.hpp"

namespace weft::raid {

using wire::ArrayAction;
using wire::ArrayMemberState;
using wire::ArrayOutcome;
using wire::ArrayTransactionState;

/// A member, as the store has it, with a voice and a share in what is written.
bool VolumeManager::Life::is_counted_on(const wire::BoxIdentity& box) const {
    const auto place = place_of(box);
    return place && volume_.members[*place].state != ArrayMemberState::absent;
}

void VolumeManager::Life::ask_for_recall(const wire::BoxIdentity& identity) {
    boxes_[identity].recalled.reset();
    std::erase_if(told_, [&](const auto& told) {  // an older question: its answer may be, too
        return told.second.box == identity && told.second.what == Told::What::recall;
    });
    tell_end(identity, ArrayAction::recall, {.box = identity, .what = Told::What::recall});
}

void VolumeManager::Life::recalled(const Told& what, const wire::ArrayAnswer& answer,
                                   ConstBuffer data_in) {
    BoxState& box = boxes_[what.box];
    const auto place = place_of(what.box);
    if (answer.outcome == ArrayOutcome::other_epoch && answer.epoch > epoch_) return depose();
    auto known = parse_recall(data_in);
    if (place && answer.outcome == ArrayOutcome::no_space)  // it is asked again: look_for_room()
        return no_room(BoxIndex{*place}, answer.outcome);
    if (answer.outcome != ArrayOutcome::done || !known) {
        // Without its journal nobody knows what it has: it is not ours to use.
        if (!std::exchange(box.facts.failed, true) && place)
            say_of(VolumeEventKind::box_failed, *place, answer.outcome);
        return;
    }
    if (place && has_forgotten(what.box, *known) && !take_as_put_back(*place)) return;
    note_executed(*known);
    for (const auto& record : known->transactions) {
        if (record.state != ArrayTransactionState::prepared) continue;  // it has ended there
        if (!is_counted_on(what.box)) {
            if (place) note_missed(*place, record.home, record.home + record.length);
            box.left_open.insert(record.transaction);
        } else if (resolved_ && !engine_.is_decided(record.transaction))
            box.left_open.insert(record.transaction);
    }
    box.recalled = std::move(*known);
    box.must_end = true;
    end_what_may_be();
}

/// Its journal has a record of it, or had one and has seen all of its time settled: one of the two
/// is so on every disk on which it once was lasting.
bool VolumeManager::Life::knows(const Recalled& recalled, wire::TransactionNumber transaction) {
    return transaction < recalled.settled ||
           std::ranges::find(recalled.transactions, transaction,
                             &wire::ArrayRecalled::transaction) != recalled.transactions.end();
}

/// What it once had lasting it does not know: that it has prepared something, or how that ended.
/// Whatever a member has open is under way here, or its end is owed to it: see engine_.settled().
bool VolumeManager::Life::has_forgotten(const wire::BoxIdentity& identity,
                                        const Recalled& recalled) const {
    const auto last = engine_.prepared_by(identity);
    if (last && !knows(recalled, *last)) return true;
    const auto& left_open = boxes_.at(identity).left_open;
    return resolved_ && is_counted_on(identity) &&
           std::ranges::any_of(recalled.transactions, [&](const auto& record) {
               return record.state == ArrayTransactionState::prepared &&
                      !left_open.contains(record.transaction) &&
                      !engine_.is_under_way(record.transaction);
           });
}

/// A box that does not know what it once had lasting: its folder was put back from an older copy,
/// or its disk loses what it has flushed. What it lacks nobody can say, so it gets everything.
/// False: nothing can be made of it, and nothing without it.
bool VolumeManager::Life::take_as_put_back(std::uint8_t index) {
    const auto& member = volume_.members[index];
    say_of(VolumeEventKind::box_put_back, index);
    if (member.state == ArrayMemberState::current && !can_lose(volume_, index)) return false;
    engine_.forget_prepared(member.box);
    disbelieved_ |= only(index);
    boxes_[member.box].facts.put_back =
        true;  // whatever becomes of the others until it is counted out
    places_[index].blank = true;
    // Where it has been counted out already, or is about to be, it is on its way into the store
    // that it lacks less. Whoever takes office next knows no more than that.
    if (auto& lasting = places_[index].lasting) {
        RegionMap everything(volume_.stripes);
        everything.add_from(0);
        lasting->want(everything);
    }
    if (member.state != ArrayMemberState::absent)
        boxes_[member.box].facts.missed = places_[index].missed = true;
    return true;
}

/// Whoever does not know what another has seen committed with it, as the members are now: for that
/// it had to be lasting with all of them.
std::optional<std::uint8_t> VolumeManager::Life::put_back_before_us(
    const std::map<std::uint8_t, Recalled>& known) const {
    for (const auto& [teller, told] : known)
        for (const auto& record : told.transactions)
            for (const auto& [index, recalled] : known)
                if (record.state == ArrayTransactionState::committed &&
                    record.generation == volume_.generation &&
                    contains(record.participants, index) && !places_[index].blank &&
                    !knows(recalled, record.transaction))
                    return index;
    return std::nullopt;
}

/// What a box that was counted out has prepared is dropped when it is known, lastingly, to lack it.
void VolumeManager::Life::end_what_may_be() {
    for (auto& [identity, box] : boxes_) {
        if (!box.must_end || (!is_counted_on(identity) && lacks_are_due())) continue;
        box.must_end = false;
        end_what_is_open(identity, box);
    }
}

/// All that may be left of it there is a window.
bool VolumeManager::Life::has_committed(const BoxState& box, wire::TransactionNumber transaction) {
    return box.recalled && std::ranges::any_of(box.recalled->transactions, [&](const auto& record) {
               return record.transaction == transaction &&
                      record.state == ArrayTransactionState::committed;
           });
}

void VolumeManager::Life::note_executed(const Recalled& recalled) {
    for (const auto& note : recalled.notes)
        engine_.executed().note(note.host_identity, note.host_command);
    for (const auto& record : recalled.transactions)
        if (record.state == ArrayTransactionState::committed)
            engine_.executed().note(record.host_identity, record.host_command);
}

/// The home of a stripe is the same on every box. Of one that has just been counted out it is not
/// yet known what it lacks: that will begin with what is logged.
void VolumeManager::Life::note_missed(std::uint8_t index, std::uint64_t home,
                                      std::uint64_t home_end) {
    if (home >= home_end) return;
    RegionMap missed(volume_.stripes);
    const std::uint64_t last = std::min((home_end - 1) / volume_.chunk_bytes, volume_.stripes - 1);
    for (std::uint64_t stripe = home / volume_.chunk_bytes; stripe <= last; ++stripe)
        missed.add(stripe);
    Place& place = places_[index];
    log_.wrote(missed);
    if (place.lacks) place.lacks->add(missed);
    if (place.lasting) place.lasting->want(missed);
}

/// Whether what was noted so is not yet lasting. Until it is, nobody may forget the transactions
/// that say it.
bool VolumeManager::Life::lacks_are_due() const {
    for (std::uint8_t i = 0; i < volume_.boxes; ++i)
        if (volume_.members[i].state != ArrayMemberState::current && places_[i].lasting &&
            places_[i].lasting->is_due())
            return true;
    return false;
}

/// Once, before anything is served. True: nothing is in doubt any more.
bool VolumeManager::Life::resolve_what_is_in_doubt() {
    if (resolved_ || !has_journal()) return true;
    if (std::ranges::any_of(
            told_, [](const auto& told) { return told.second.what == Told::What::outcome; }))
        return false;
    const bool is_mirror = layout_of(volume_)->level() == Level::mirror;
    Mask members = 0, copies = 0, owing = 0;
    std::map<std::uint8_t, Recalled> known;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        // What a part of the past does not know says nothing of what was prepared, also once it is
        // a member again that is being rebuilt.
        if (volume_.members[i].state == ArrayMemberState::absent || contains(disbelieved_, i))
            continue;
        const BoxState* box = state_of(i);
        members |= only(i);
        if (is_mirror && volume_.members[i].state == ArrayMemberState::current) copies |= only(i);
        if (box && box->recalled) known[i] = *box->recalled;
        if (!box) return false;
        if (!box->recalled && box->facts.has_part) owing |= only(i);
    }
    if (owing != 0) return do_without(owing), false;
    if (const auto index = put_back_before_us(known)) {
        if (!take_as_put_back(*index)) state_of(*index)->recalled.reset();  // it is not used
        changed_ = true;
        return false;
    }
    bool all_told = true;
    const auto resolutions = resolve(members, known, copies);
    for (const auto& resolution : resolutions) {
        if (resolution.commits) {
            engine_.executed().note(resolution.host_identity, resolution.host_command);
            // Of who was away the old controller knew this; its memory is gone.
            for (std::uint8_t i = 0; i < volume_.boxes; ++i)
                if (contains(resolution.participants & ~members, i))
                    note_missed(i, resolution.home, resolution.home_end);
        }
    }
    if (lacks_are_due()) return false;
    for (const auto& resolution : resolutions) all_told = tell_outcome(resolution) && all_told;
    resolved_ = all_told;
    changed_ = changed_ || resolved_;
    return resolved_;
}

/// These have no room on their disks for what they have committed. The others go on without them if
/// they can; if not, all wait, and nobody is counted out for it.
void VolumeManager::Life::do_without(Mask owing) {
    wire::ArrayVolume left = volume_;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        if (!contains(owing, i)) continue;
        if (left.members[i].state == ArrayMemberState::current && !can_lose(left, i)) return;
        left.members[i].state = ArrayMemberState::absent;
    }
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        if (!contains(owing, i)) continue;
        BoxState& box = *state_of(i);
        box.greeted = box.must_end = box.facts.up = false;  // until it has recalled
        changed_ = true;
    }
}

/// True: all who must hear it have.
bool VolumeManager::Life::tell_outcome(const Resolution& resolution) {
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        const auto& identity = volume_.members[i].box;
        // One that refused to is not asked in vain: it is counted out, or the volume stands still.
        if (!contains(resolution.to_tell, i) || boxes_[identity].facts.failed) continue;
        tell_end(identity, resolution.commits ? ArrayAction::resolve : ArrayAction::abort,
                 {.box = identity,
                  .what = Told::What::outcome,
                  .transaction = resolution.transaction,
                  .outcome = resolution.commits ? ArrayTransactionState::committed
                                                : ArrayTransactionState::aborted});
    }
    return resolution.to_tell == 0;
}

void VolumeManager::Life::outcome_told(const Told& what, const wire::ArrayAnswer& answer) {
    BoxState& box = boxes_[what.box];
    if (answer.outcome == ArrayOutcome::done) {
        if (!box.recalled) return;
        auto record = std::ranges::find(box.recalled->transactions, what.transaction,
                                        &wire::ArrayRecalled::transaction);
        if (record != box.recalled->transactions.end()) record->state = what.outcome;
        return;
    }
    if (answer.outcome == ArrayOutcome::other_epoch && answer.epoch > epoch_) return depose();
    const auto place = place_of(what.box);
    if (place && lacks_room(answer.outcome)) {
        // Committed, it is owed to the disk: who is asked again brings that home first. Aborted, it
        // is still prepared.
        box.recalled.reset();
        return no_room(BoxIndex{*place}, answer.outcome);
    }
    if (std::exchange(box.facts.failed, true)) return;
    if (place) say_of(VolumeEventKind::box_failed, *place, answer.outcome);
}

/// Greeted, a box is up. Whether one that was counted out becomes a member again is asked then.
void VolumeManager::Life::let_in_who_may() {
    end_what_may_be();
    for (auto& [identity, box] : boxes_) {
        if (!box.greeted || box.facts.up) continue;
        box.facts.up = true;
        engine_.has_ended_all(identity);
        changed_ = true;
    }
}

/// The engine knows that nobody is there, and what it had begun when somebody was has ended: see
/// above.
bool VolumeManager::Life::is_closed(std::uint8_t place) const {
    if (applied_.members[place].state != ArrayMemberState::absent) return true;
    return has_journal() && (!resolved_ || engine_.settled() <= places_[place].left_at);
}

MembershipWishes VolumeManager::Life::wishes() const {
    MembershipWishes wishes = wishes_;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i)
        if (is_closed(i)) wishes.closed |= only(i);
    return wishes;
}

void VolumeManager::Life::end_is_pending(const wire::BoxIdentity& box,
                                         wire::TransactionNumber transaction) {
    BoxState& state = boxes_[box];
    state.left_open.insert(transaction);
    // One that is back already, and was told what was known then, is told this too.
    if (state.has_session && (state.recalled || !has_journal())) state.must_end = true;
}

std::optional<wire::TransactionNumber> VolumeManager::Life::lowest_pending_end() const {
    std::optional<wire::TransactionNumber> lowest;
    for (const auto& [identity, box] : boxes_) {
        if (box.left_open.empty() || !is_counted_on(identity)) continue;
        if (!lowest || *box.left_open.begin() < *lowest) lowest = *box.left_open.begin();
    }
    return lowest;
}

}  // namespace weft::raid
