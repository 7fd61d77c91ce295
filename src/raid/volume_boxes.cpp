// SPDX-License-Identifier: Apache-2.0
// Which boxes are there, and which have failed: a box says so of itself, or is silent. What boxes
// say of each other makes requests wait or go another way, and never removes a member.
#include <algorithm>

#include "raid/volume_life.hpp"

namespace weft::raid {
namespace {

/// The manager's own tickets; the engine counts from 1.
constexpr std::uint64_t own_tickets = std::uint64_t{1} << 63;

/// A box that falls out with others again and again is tried after so many doublings at the latest.
constexpr unsigned fallen_out_most = 6;

}  // namespace

using namespace std::chrono_literals;
using wire::ArrayMemberState;
using wire::ArrayOutcome;

VolumeManager::Life::BoxState* VolumeManager::Life::state_of(std::uint8_t place) {
    auto found = boxes_.find(volume_.members[place].box);
    return found == boxes_.end() ? nullptr : &found->second;
}

std::optional<std::uint8_t> VolumeManager::Life::place_of(const wire::BoxIdentity& box) const {
    for (std::uint8_t i = 0; i < volume_.boxes; ++i)
        if (volume_.members[i].box == box) return i;
    return std::nullopt;
}

std::map<wire::BoxIdentity, BoxFacts> VolumeManager::Life::facts() const {
    std::map<wire::BoxIdentity, BoxFacts> all;
    for (const auto& [identity, box] : boxes_) all.emplace(identity, box.facts);
    return all;
}

CommandTicket VolumeManager::Life::remember(const Told& what) {
    const CommandTicket ticket{own_tickets + ++tickets_};
    told_.emplace(ticket, what);
    return ticket;
}

void VolumeManager::Life::box_up(const wire::BoxIdentity& identity, const BoxStanding& standing) {
    Visit visit(*this);
    BoxState& box = boxes_[identity];
    const auto place = place_of(identity);
    if (place && standing.has_part && standing.generation > volume_.generation) {
        // The store is older than the boxes: to go on from it would lose what they know.
        say_of(VolumeEventKind::box_refused, *place, ArrayOutcome::other_generation);
        return depose();
    }
    const bool needed = place && !can_lose(volume_, *place) &&
                        volume_.members[*place].state == ArrayMemberState::current;
    // Whoever knows of less than when it last became whole has another disk than it had then,
    // whichever controller it was that saw to it.
    const auto least =
        std::max(box.generation, place ? volume_.members[*place].since : wire::Generation{});
    const bool was_put_back = standing.has_part && standing.generation < least;
    if (place && (was_put_back || (needed && !standing.has_part)))
        say_of(VolumeEventKind::box_refused, *place,
               was_put_back ? ArrayOutcome::other_generation : ArrayOutcome::wrong_volume);
    if (needed && was_put_back) return;  // nothing can be made of it, and nothing without it
    // Once it is known it stays so until it is rebuilt, however often its session begins anew.
    box.facts.put_back = was_put_back || (box.facts.put_back && standing.has_part);
    if (place && was_put_back) {
        disbelieved_ |= only(*place);
        places_[*place].blank = true;
        if (volume_.members[*place].state != ArrayMemberState::absent)
            box.facts.missed = places_[*place].missed = true;
    }
    // Whatever it had been given is gone, so it is counted out first: its rebuild begins again.
    if (place && !standing.has_part &&
        volume_.members[*place].state == ArrayMemberState::rebuilding)
        box.facts.missed = places_[*place].missed = true;
    box.has_session = true;
    box.needs_repair = false;
    box.cut_off_since.reset();
    box.facts.has_part = standing.has_part;
    box.generation = standing.generation;
    box.data_length = standing.data_length;
    const bool begun_anew = box.boot != 0 && box.boot != standing.boot;
    box.boot = standing.boot;
    if (begun_anew) has_begun_anew(place, box);
    greet(identity, box);
    if (place && !starting_) say_of(VolumeEventKind::box_returned, *place);
}

/// Its disk was put back, and nobody is left who could do without it: it is not believed.
bool VolumeManager::Life::is_of_the_past(std::uint8_t place) const {
    const auto& member = volume_.members[place];
    const auto box = boxes_.find(member.box);
    return member.state == ArrayMemberState::current && box != boxes_.end() &&
           box->second.facts.put_back;
}

/// What it was doing when it was lost must have ended before it is used again; and a journal is
/// asked what it knows of that, and of what nobody here has heard of.
void VolumeManager::Life::greet(const wire::BoxIdentity& identity, BoxState& box) {
    box.greeted = box.must_end = false;
    if (!box.facts.has_part) box.left_open.clear();
    if (has_journal() && box.facts.has_part && place_of(identity)) return ask_for_recall(identity);
    end_what_is_open(identity, box);
}

void VolumeManager::Life::end_what_is_open(const wire::BoxIdentity& identity, BoxState& box) {
    for (auto transaction : box.left_open)
        tell_end(
            identity,
            has_committed(box, transaction) ? wire::ArrayAction::release : wire::ArrayAction::abort,
            {.box = identity, .what = Told::What::greeting, .transaction = transaction});
    box.greeted = box.left_open.empty();
}

void VolumeManager::Life::tell_end(const wire::BoxIdentity& identity, wire::ArrayAction action,
                                   const Told& what) {
    const auto address = encoded(wire::ArrayAddress{.cluster = cluster_,
                                                    .volume = volume_.volume,
                                                    .box = identity,
                                                    .generation = boxes_[identity].generation,
                                                    .epoch = epoch_});
    std::vector<std::byte> parameters(address.begin(), address.end());
    // Who takes no orders hears by none what is settled, and what its journal is full of stays
    // there until it does.
    if (action == wire::ArrayAction::abort && resolved_) {
        const auto settled = encoded(wire::ArraySettled{engine_.settled()});
        parameters.insert(parameters.end(), settled.begin(), settled.end());
    }
    owner_.carry(identity, remember(what),
                 {{.action = action,
                   .transaction = what.transaction,
                   .parameter_length = static_cast<std::uint32_t>(parameters.size()),
                   .control = {}},
                  std::move(parameters)});
}

void VolumeManager::Life::greeted(const Told& what, const wire::ArrayAnswer& answer) {
    BoxState& box = boxes_[what.box];
    if (answer.outcome == ArrayOutcome::done) {
        box.left_open.erase(what.transaction);
        box.greeted = box.left_open.empty();
        return;
    }
    const auto place = place_of(what.box);
    if (place && lacks_room(answer.outcome))  // it is told again: look_for_room()
        return no_room(BoxIndex{*place}, answer.outcome);
    // It does not end what it must: whatever it is, it is not ours to use.
    if (std::exchange(box.facts.failed, true)) return;
    if (place) say_of(VolumeEventKind::box_failed, *place, answer.outcome);
}

void VolumeManager::Life::box_down(const wire::BoxIdentity& identity) {
    Visit visit(*this);
    auto found = boxes_.find(identity);
    if (found == boxes_.end()) return;
    BoxState& box = found->second;
    std::erase_if(told_, [&](const auto& told) { return told.second.box == identity; });
    box.has_session = box.greeted = box.must_end = false;
    box.recalled.reset();
    const bool was_up = std::exchange(box.facts.up, false);
    if (!started_) return;
    const auto place = place_of(identity);
    // Known before the engine hears of it: what it begins again at once waits for what becomes of
    // the box.
    if (place && was_up && volume_.members[*place].state != ArrayMemberState::absent)
        box.facts.missed = places_[*place].missed = true;
    // Whatever its place is now: it may owe answers from when it had one, and owes_end() hears it.
    engine_.lost(identity);
    if (place && was_up) say_of(VolumeEventKind::box_lost, *place);
}

void VolumeManager::Life::answered(CommandTicket ticket, const wire::ArrayAnswer& answer,
                                   ConstBuffer data_in) {
    Visit visit(*this);
    if (static_cast<std::uint64_t>(ticket) < own_tickets) return engine_.answered(ticket, answer);
    auto found = told_.find(ticket);
    if (found == told_.end()) return;
    const Told what = found->second;
    told_.erase(found);
    switch (what.what) {
        case Told::What::volume:
            return told(what, answer);
        case Told::What::greeting:
            return greeted(what, answer);
        case Told::What::recall:
            return recalled(what, answer, data_in);
        case Told::What::outcome:
            return outcome_told(what, answer);
    }
}

void VolumeManager::Life::lost(CommandTicket ticket) {
    Visit visit(*this);
    if (static_cast<std::uint64_t>(ticket) < own_tickets) return engine_.lost(ticket);
    // Nobody knows whether it has heard what the volume is: it is told again, if it is still there.
    auto found = told_.find(ticket);
    if (found != told_.end() && found->second.what == Told::What::volume &&
        ++boxes_[found->second.box].refusals < limits::refusals) {
        told_.erase(found);
        return;
    }
    answered(ticket, {.outcome = ArrayOutcome::unknown_transaction}, {});
}

void VolumeManager::Life::carry(BoxIndex place, CommandTicket ticket, const EncodedOrder& order) {
    const auto& identity = applied_.members[number(place)].box;
    BoxState& box = boxes_[identity];
    const auto action = order.command_block.action;
    const bool ends = action == wire::ArrayAction::release || action == wire::ArrayAction::abort;
    if (is_trusted(number(place)) || (ends && box.has_session))
        return owner_.carry(identity, ticket, order);
    undeliverable_.push_back(ticket);
    // What should have ended there is to be ended when it returns.
    if (ends) box.left_open.insert(order.command_block.transaction);
}

/// It is there, and was not away since the engine last heard of it: else it may have forgotten what
/// plans count on, and a flush it took part in would say nothing of that.
bool VolumeManager::Life::is_trusted(std::uint8_t place) const {
    auto box = boxes_.find(applied_.members[place].box);
    return box != boxes_.end() && box->second.facts.up && !places_[place].missed;
}

SteeringTag VolumeManager::Life::window_tag(BoxIndex place, std::uint32_t window,
                                            wire::TransactionNumber transaction) {
    return owner_.window_tag(applied_.members[number(place)].box, window, transaction);
}

SteeringTag VolumeManager::Life::own_window_tag(std::uint32_t window,
                                                wire::TransactionNumber transaction) {
    return owner_.window_tag(options_.own.identity, window, transaction);
}

/// Requests wait. Of a box that is away it is known already, and what to do about it.
void VolumeManager::Life::in_trouble(const Trouble& trouble) {
    const auto& answer = trouble.answer;
    if (!trouble.reporter) {
        retry_wanted_ = true;
        return see_to_it();
    }
    const auto place = number(*trouble.reporter);
    if (answer && answer->outcome == ArrayOutcome::other_epoch && answer->epoch > epoch_)
        deposing_ = true;  // not from inside the engine
    if (answer && answer->outcome == ArrayOutcome::malformed)
        say_of(VolumeEventKind::malformed_request, place, answer->outcome);
    if (!is_trusted(place)) return;
    if (answer && !trouble.peer) {
        const auto why = answer->outcome;
        if (why == ArrayOutcome::disk_failed || why == ArrayOutcome::out_of_range)
            failures_.push_back({place, why});
        if (why == ArrayOutcome::peer_unreachable) note_cut_off(place, why);
    }
    retry_wanted_ = true;
    see_to_it();
}

/// It answers us, and its transfers do not reach our memory. For as long as silence it is waited
/// for, as if it were silent.
void VolumeManager::Life::note_cut_off(std::uint8_t place, ArrayOutcome why) {
    BoxState& box = *state_of(place);
    if (!box.cut_off_since) box.cut_off_since = now_;
    if (now_ - *box.cut_off_since >= options_.box_silence) failures_.push_back({place, why});
}

void VolumeManager::Life::reaches_controller(BoxIndex place) {
    if (BoxState* box = state_of(number(place))) box->cut_off_since.reset();
}

/// Whether the volume could do without it too, besides those that are on their way out.
bool VolumeManager::Life::can_count_out(std::uint8_t place) const {
    const auto layout = layout_of(volume_);
    unsigned lost = 1;
    for (std::uint8_t i = 0; i < volume_.boxes; ++i) {
        if (i == place) continue;
        auto box = boxes_.find(volume_.members[i].box);
        const bool there = box != boxes_.end() && box->second.facts.up && !box->second.facts.failed;
        if (volume_.members[i].state != ArrayMemberState::current || !there) ++lost;
    }
    return layout && lost <= layout->spare_columns();
}

/// One that cannot be spared is asked again and again. But people are told: it may be a box that
/// refuses everything until somebody starts it anew.
void VolumeManager::Life::count_out(std::uint8_t place, ArrayOutcome why) {
    BoxState* box = state_of(place);
    if (!box || box->facts.failed) return;
    const bool can = can_count_out(place);
    const bool is_told = std::exchange(box->needs_repair, !can);
    box->facts.failed = can;
    if (can || !is_told) say_of(VolumeEventKind::box_failed, place, why);
    if (!can || !is_about_peer(why)) return;
    // Nothing is wrong with it but the way to it, which may be mended. A rebuild for every try is
    // dear, so there are fewer and fewer.
    box->out_for_links = true;
    box->minutes_left = 1u << std::min(box->fallen_out++, fallen_out_most);
    link_timer_.ask(links_rest);
}

/// What boxes have said of themselves is a reason to do without them; what they say of others is
/// not. Requests that wait are tried again, less and less often.
void VolumeManager::Life::judge_failures() {
    if (deposing_) depose();
    for (const auto& [place, why] : std::exchange(failures_, {})) count_out(place, why);
    if (!std::exchange(retry_wanted_, false)) return;
    if (is_changing() || next_volume(volume_, facts(), wishes())) {
        // set_volume() follows, and all is tried again. If the change is called off nothing
        // follows.
        retry_timer_.ask(1s);
        return;
    }
    calm_timer_.stop();
    calm_timer_.ask(10s);
    retry_after_ = std::clamp<Duration>(retry_after_ * 2, 5ms, 500ms);
    retry_timer_.ask(retry_after_);
}

void VolumeManager::Life::writing(std::span<const Band> bands) {
    log_.wrote(bands);
    for (std::uint8_t i = 0; i < applied_.boxes; ++i) {
        if (applied_.members[i].state != ArrayMemberState::absent || !places_[i].lacks) continue;
        for (const Band& band : bands) places_[i].lacks->add(band.stripe);
    }
}

void VolumeManager::Life::audit_failed(std::span<const Band> bands) {
    say({.kind = VolumeEventKind::audit_failed, .place = {}, .number = bands.front().stripe});
}

void VolumeManager::Life::doubtful(std::span<const Band> bands) {
    for (const Band& band : bands) {
        doubtful_.add(band.stripe);
        if (!is_whole())
            say({.kind = VolumeEventKind::scrub_unrepaired, .place = {}, .number = band.stripe});
    }
}

}  // namespace weft::raid
