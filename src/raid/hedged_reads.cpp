// SPDX-License-Identifier: Apache-2.0
#include "raid/hedged_reads.hpp"

#include <algorithm>

namespace weft::raid {

bool HedgedReads::applies_to(const Request& request) const {
    return paces_.is_on() && request.is_host_read() && !request.repairs.needed();
}

Mask HedgedReads::to_avoid(const Request& request, Instant now) const {
    return applies_to(request) ? request.late | paces_.to_avoid(now) : 0;
}

void HedgedReads::order_sent(const Attempt& attempt, const Order& order, Instant now) {
    if (!applies_to(attempt.request()) || order.phase != Phase::read) return;
    paces_.tried(number(order.to.box), now);
    look_in(paces_.at_least(), now);
}

/// Only what a box does by itself tells how quick it is: later turns have it wait for others.
bool HedgedReads::is_awaited(const Attempt& attempt, const SentCommand& command) const {
    return command.purpose == SentCommand::Purpose::order && command.goes_to_box() &&
           attempt.is_working() && attempt.terms().purpose == Attempt::Purpose::serve &&
           applies_to(attempt.request()) && attempt.order(command).phase == Phase::read;
}

void HedgedReads::answered(const Attempt& attempt, const SentCommand& command,
                           const CommandAnswer& answer, Instant now) {
    if (is_done(answer) && is_awaited(attempt, command)) note_pace(command, now);
}

void HedgedReads::late_box_answered(const SentCommand& command, Instant now) {
    note_pace(command, now);
}

void HedgedReads::note_pace(const SentCommand& command, Instant now) {
    if (paces_.answered(command.place(), now - command.since, now))
        owner_.box_quick(command.to.box);
}

void HedgedReads::look_in(Duration span, Instant now) {
    const Instant at = now + span;
    if (!look_at_ || at < *look_at_) look_at_ = at;
}

std::optional<Instant> HedgedReads::deadline() const {
    const auto rest = paces_.deadline();
    if (!look_at_ || (rest && *rest < *look_at_)) return rest;
    return look_at_;
}

void HedgedReads::tick(Instant now) {
    if (const auto rest = paces_.deadline(); rest && *rest <= now) {
        const Mask quick = paces_.rested(superseded_.boxes(), now);
        for (std::uint8_t place = 0; place < limits::boxes; ++place)
            if (contains(quick, place)) owner_.box_quick(BoxIndex{place});
    }
    if (!look_at_ || now < *look_at_) return;
    look_at_.reset();
    hedge_what_is_late(now);
}

void HedgedReads::hedge_what_is_late(Instant now) {
    struct Late {
        Attempt* attempt = nullptr;
        Mask boxes = 0;
        std::size_t commands = 0;
    };
    std::vector<Late> all;
    for (const auto& [ticket, command] : book_.all()) {
        Attempt* attempt = command.holder->as_attempt();
        if (!attempt || !is_awaited(*attempt, command) || attempt->request().waits_for_late)
            continue;
        const Duration left = command.since + paces_.patience_with(command.place()) - now;
        if (left > Duration{}) {
            look_in(left, now);
            continue;
        }
        auto found = std::ranges::find(all, attempt, &Late::attempt);
        if (found == all.end()) found = all.insert(found, Late{.attempt = attempt});
        found->boxes |= only(command.place());
        ++found->commands;
        Request& request = attempt->request();
        if (request.late == 0 || command.since < request.late_since)
            request.late_since = command.since;
    }
    // Of those that wait for others too, it is seen when they have waited long enough for them.
    for (const Late& late : all)
        if (late.commands == late.attempt->unanswered()) hedge(*late.attempt, late.boxes, now);
}

void HedgedReads::hedge(Attempt& attempt, Mask late, Instant now) {
    Request& request = attempt.request();
    const bool is_brought = request.brought != 0;
    if (!is_brought) {
        // Asked again in spite of it: there was no way around.
        const bool in_vain = (request.late & late) != 0;
        if (in_vain || !planner_.can_read_without(request, request.late | late)) {
            request.waits_for_late = true;
            return;
        }
        if (!pay_for(late)) return look_in(paces_.at_least(), now);
        ++counters_.hedged_reads;
    }
    request.late |= late;
    request.host->story.hedged = true;
    superseded_.supersede(attempt, late);
}

/// Of boxes that are known to be slow, tries are few already.
bool HedgedReads::pay_for(Mask late) {
    if ((late & ~paces_.slow()) == 0) return true;
    if (spent_ + reads_for_a_hedge > credit_) return false;
    spent_ += reads_for_a_hedge;
    return true;
}

void HedgedReads::served(const Request& request, const Attempt& attempt, Instant now) {
    if (!applies_to(request)) return;
    if (spent_ > 0) --spent_;
    for (std::uint8_t place = 0; request.late != 0 && place < limits::boxes; ++place) {
        if (!contains(request.late, place)) continue;
        if (now - attempt.terms().began >= paces_.patience_with(place)) continue;
        if (!paces_.fell_behind(place, now)) continue;
        owner_.box_slow(BoxIndex{place}, now - request.late_since, paces_.others(place));
    }
}

}  // namespace weft::raid
