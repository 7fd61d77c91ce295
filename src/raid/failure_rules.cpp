// SPDX-License-Identifier: Apache-2.0
#include "raid/failure_rules.hpp"

#include <algorithm>

namespace weft::raid {

using wire::ArrayOutcome;

void FailureRules::order_failed(Attempt& attempt, const SentCommand& command,
                                const CommandAnswer& answer) {
    if (!answer) return wait_for(attempt, {.reporter = command.to.box, .peer = {}, .answer = {}});
    if (answer->outcome == ArrayOutcome::corrupt) return corrupt_.found(attempt, command, *answer);
    if (is_about_peer(answer->outcome)) return transfer_failed(attempt, command, *answer);
    if (!command.goes_to_box()) return attempt.fail(Then::refuse, Error{Code::io_failed});
    if (is_outdated(attempt))
        return attempt.fail(Then::plan_again);  // planned for a volume that has changed since
    if (lacks_room(answer->outcome)) {
        attempt.fail(Then::wait);
        return owner_.no_room(command.to.box, answer->outcome);
    }
    if (answer->outcome == ArrayOutcome::malformed)
        attempt.fail(Then::refuse, Error{Code::io_failed});
    wait_for(attempt, {.reporter = command.to.box, .peer = {}, .answer = answer});
}

/// Refused: the peer knows of another end of the transaction, or of the request. Timed out: it is
/// connected, and something between is slow. Unreachable: the link is gone around.
void FailureRules::transfer_failed(Attempt& attempt, const SentCommand& command,
                                   const wire::ArrayAnswer& answer) {
    counters_.transfers_refused += answer.outcome == ArrayOutcome::peer_refused ? 1 : 0;
    counters_.transfers_timed_out += answer.outcome == ArrayOutcome::peer_timed_out ? 1 : 0;
    counters_.peers_unreachable += answer.outcome == ArrayOutcome::peer_unreachable ? 1 : 0;
    const auto parties = parties_of(attempt.order(command));
    if (answer.party >= parties.size())
        return wait_for(attempt, {.reporter = command.to.box, .peer = {}, .answer = answer});
    const Party peer = parties[answer.party];
    if (peer == the_host) return host_not_reached(attempt, command, answer.outcome);
    if (is_outdated(attempt)) return attempt.fail(Then::plan_again);
    if (peer == the_controller)  // a box does not reach us
        return wait_for(attempt, {.reporter = command.to.box, .peer = {}, .answer = answer});
    const bool goes_around = answer.outcome == ArrayOutcome::peer_unreachable &&
                             command.goes_to_box() && planner_.can_detour() &&
                             links_.suspect(command.place(), number(peer.box));
    if (goes_around) {
        owner_.link_suspected();
        return attempt.fail(Then::plan_again);
    }
    const BoxIndex reporter = command.goes_to_box() ? command.to.box : peer.box;
    wait_for(attempt, {.reporter = reporter, .peer = peer.box, .answer = answer});
}

/// A host that has no such memory, or is gone, has nobody to be answered to, and nobody else has
/// failed. One that is there is reached by another way, or tried again.
void FailureRules::host_not_reached(Attempt& attempt, const SentCommand& command,
                                    wire::ArrayOutcome why) {
    const Request& request = attempt.request();
    const auto reporter =
        command.goes_to_box() ? std::optional(command.to.box) : std::optional<BoxIndex>();
    const Trouble trouble{
        .reporter = reporter, .peer = {}, .answer = wire::ArrayAnswer{.outcome = why}};
    // The host is ourselves: a box that does not reach us cannot bring us anything another way.
    const bool is_us = own_identity_ != wire::BoxIdentity{} && request.host &&
                       request.host->memory.identity == own_identity_;
    if (is_us && reporter) return wait_for(attempt, trouble);
    if (why == ArrayOutcome::peer_refused || !owner_.is_host_here(request.session))
        return attempt.fail(Then::refuse, Error{Code::disconnected});
    const bool goes_around = why == ArrayOutcome::peer_unreachable && !attempt.terms().in_band &&
                             reporter && planner_.can_detour() &&
                             links_.suspect(request.session, command.place());
    if (!goes_around)
        return wait_for(attempt, {.reporter = {}, .peer = {}, .answer = trouble.answer});
    owner_.link_suspected();
    attempt.fail(Then::plan_again);
}

void FailureRules::wait_for(Attempt& attempt, const Trouble& trouble) {
    if (is_outdated(attempt)) return attempt.fail(Then::plan_again);
    attempt.fail(Then::wait);
    owner_.in_trouble(trouble);
}

/// Unless another has its place by now, which is not to blame, or it was removed from the
/// membership: then nothing is to come that would be worth waiting for.
bool FailureRules::waits_to_tell_again(const Attempt& attempt, const SentCommand& command,
                                       const CommandAnswer& answer) {
    const bool is_there = command.box == view_.box_at(command.to.box) &&
                          still_counts(attempt, attempt.order(command));
    if (!is_there) return false;
    if (answer && lacks_room(answer->outcome))
        owner_.no_room(command.to.box, answer->outcome);
    else
        owner_.in_trouble({.reporter = command.to.box, .peer = {}, .answer = answer});
    return true;
}

/// A box that has become absent need not commit: those that are left have the same.
bool FailureRules::still_counts(const Attempt& attempt, const Order& order) const {
    const auto place = number(order.to.box);
    if (attempt.is_decided())  // and it has not become absent and come back meanwhile
        return view_.volume.members[place].state != wire::ArrayMemberState::absent;
    return std::ranges::any_of(attempt.request().bands, [&](const Band& band) {
        return !contains(view_.health.absent_at(band.stripe), place);
    });
}

/// What was ordered is done: the links it went over are well.
void FailureRules::order_done(const Attempt& attempt, const SentCommand& command) {
    if (links_.empty() && !attempt.terms().in_band) return;
    const std::uint8_t place = command.place();
    for (const Party& party : parties_of(attempt.order(command))) {
        if (party == the_host)
            report(links_.carried(attempt.request().session, place), command.to.box);
        if (party == the_controller) owner_.reaches_controller(command.to.box);
        if (party.kind == PartyKind::box)
            report(links_.carried(place, number(party.box)), command.to.box, party.box);
    }
}

/// The way around has led there: both ends are there, and the link between them is broken.
void FailureRules::detour_done(const Attempt& attempt) {
    const auto& detour = attempt.terms().detour;
    for (const auto& [one, other] : detour.boxes)
        report(links_.detoured(one, other), BoxIndex{one}, BoxIndex{other});
    for (std::uint8_t place = 0; place < limits::boxes; ++place)
        if (contains(detour.to_host, place))
            report(links_.detoured(attempt.request().session, place), BoxIndex{place});
}

void FailureRules::report(LinkReport what, BoxIndex one, BoxIndex other) {
    if (what != LinkReport::nothing) owner_.link_changed(what, one, other);
}

void FailureRules::report(LinkReport what, BoxIndex box) {
    if (what != LinkReport::nothing) owner_.host_link_changed(what, box);
}

}  // namespace weft::raid
