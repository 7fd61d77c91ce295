// SPDX-License-Identifier: Apache-2.0
#include "raid/attempt.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"

namespace weft::raid {

using wire::ArrayAction;

void Attempt::step(AttemptEvent event) {
    const auto next = next_stage(stage_, event);
    WEFT_CHECK(next.has_value());
    stage_ = *next;
}

void Attempt::begin() {
    if (!has_turns_left()) return complete();  // no box is left to ask
    send_turn();
}

/// Of a journal's plan what is written was said when it was prepared.
bool Attempt::commits(const Order& order) const {
    if (order.phase != Phase::commit) return false;
    return terms_.journaled ||
           std::ranges::find(order.pieces, Verb::commit, &Piece::verb) != order.pieces.end();
}

bool Attempt::repeats(const SentCommand& command) const {
    return command.purpose == SentCommand::Purpose::commit && (decided_ || terms_.repeats_commits);
}

void Attempt::send_turn() {
    const auto& orders = terms_.plan.orders;
    const std::size_t first = next_;
    while (has_turns_left() && orders[next_].phase == orders[first].phase &&
           orders[next_].round == orders[first].round)
        ++next_;
    const std::size_t end = next_;
    if (std::any_of(orders.begin() + static_cast<std::ptrdiff_t>(first),
                    orders.begin() + static_cast<std::ptrdiff_t>(end),
                    [&](const Order& order) { return commits(order); }))
        step(AttemptEvent::commits_sent);
    for (std::size_t i = first; i < end; ++i)
        if (orders[i].to.kind == PartyKind::box) open_ |= only(number(orders[i].to.box));
    unanswered_ = end - first;
    // The last may be answered at once and end all of this: nothing of it is touched behind it.
    for (std::size_t i = first; i < end; ++i)
        owner_.send_order(
            *this, i,
            commits(orders[i]) ? SentCommand::Purpose::commit : SentCommand::Purpose::order);
}

void Attempt::command_ended(const SentCommand& command, const CommandAnswer& answer) {
    owner_.command_answered(*this, command, answer);
    const bool ends = command.purpose == SentCommand::Purpose::end;
    if (is_working() && repeats(command) && (!answer || (decided_ && !is_done(answer)))) {
        unheard_.push_back(command.order);
        waits_to_tell_again_ =
            owner_.waits_to_tell_again(*this, command, answer) || waits_to_tell_again_;
    } else if (is_working() && !is_done(answer)) {
        if (command.purpose == SentCommand::Purpose::commit) uncommitted_ |= only(command.place());
        owner_.order_failed(*this, command, answer);
    } else if (ends || command.closes) {
        open_ &= ~only(command.place());
        // It still has it, then: when it is asked what it knows, that is no surprise.
        if (ends && terms_.journaled && !is_done(answer))
            owner_.end_is_pending(command.box, terms_.transaction);
    }
    if (--unanswered_ > 0) return;
    switch (stage_) {
        case AttemptStage::staging:
            return turn_ended();
        case AttemptStage::committing:
            return commits_ended();
        case AttemptStage::closing:
            return finish();
        case AttemptStage::unheard:
        case AttemptStage::over:
            WEFT_CHECK(false);
    }
}

void Attempt::turn_ended() {
    if (!failure_ && has_turns_left()) owner_.turn_ended(*this);
    if (failure_) return close();
    if (!has_turns_left()) return complete();
    if (terms_.journaled && next_phase() == Phase::commit) {
        if (!owner_.agrees(*this)) return close();
        decided_ = true;
        owner_.decided(*this);
    }
    send_turn();
}

void Attempt::commits_ended() {
    if (failure_) return close();
    if (unheard_.empty()) return has_turns_left() ? send_turn() : complete();
    step(AttemptEvent::answers_lost);
    if (!waits_to_tell_again_) tell_again();  // what was to be waited for has come already
}

void Attempt::try_again() {
    waits_to_tell_again_ = false;
    if (failure_ && failure_->then == Then::wait) failure_->then = Then::plan_again;
    if (stage_ == AttemptStage::unheard) tell_again();
}

void Attempt::tell_again() {
    std::vector<std::size_t> orders;
    for (auto index : std::exchange(unheard_, {})) {
        const Order& order = terms_.plan.orders[index];
        if (owner_.still_counts(*this, order)) {
            orders.push_back(index);
        } else if (decided_) {  // what it has of it is dropped when it returns
            open_ &= ~only(number(order.to.box));
            owner_.end_is_pending(owner_.identity_at(order.to.box), terms_.transaction);
        }
    }
    step(AttemptEvent::told_again);
    unanswered_ = orders.size();
    if (orders.empty()) return commits_ended();
    for (auto index : orders) {
        if (!decided_) {
            owner_.send_order(*this, index, SentCommand::Purpose::commit);
            continue;
        }
        // The box may have restarted: it has no window any more, but a journal. If it has one, that
        // is released at the end.
        const Party to = terms_.plan.orders[index].to;
        owner_.send_end(*this, to.box, ArrayAction::resolve,
                        {.purpose = SentCommand::Purpose::commit, .to = to, .order = index});
    }
}

void Attempt::fail(Then then, Error error) {
    WEFT_CHECK(!decided_);
    if (!failure_ || failure_->then < then) failure_ = AttemptFailure{then, error};
}

void Attempt::give_up(Error why) {
    if (decided_) return;
    if (stage_ == AttemptStage::unheard) {
        fail(Then::refuse, why);
        return close();
    }
    if (failure_ && failure_->then == Then::wait) fail(Then::refuse, why);
}

void Attempt::box_lost(Mask places, bool commits_are_repeated) {
    const bool unheard = std::ranges::any_of(unheard_, [&](std::size_t index) {
        return contains(places, number(terms_.plan.orders[index].to.box));
    });
    if (unheard || commits_are_repeated || (open_ & places) == 0) return;
    open_ &= ~places;
    // Nobody must commit without it.
    if (stage_ == AttemptStage::staging) fail(Then::wait);
}

void Attempt::stop_unneeded() {
    undone_ = false;
    fail(Then::plan_again);
}

void Attempt::superseded(Mask late) {
    open_ &= ~late;
    unanswered_ = 0;
    stop_unneeded();
    close();
}

void Attempt::complete() {
    decided_ = false;  // all have committed
    owner_.carried_out(*this);
    close();
}

void Attempt::close() {
    for (auto index : std::exchange(unheard_, {}))
        uncommitted_ |= only(number(terms_.plan.orders[index].to.box));
    step(failure_ ? AttemptEvent::failed : AttemptEvent::turns_over);
    const Mask boxes = open_;
    if (boxes == 0) return finish();
    const auto action = failure_ && undone_ ? ArrayAction::abort : ArrayAction::release;
    unanswered_ = static_cast<std::size_t>(std::popcount(boxes));
    for (std::uint8_t box = 0; box < limits::boxes; ++box)
        if (contains(boxes, box))
            owner_.send_end(*this, BoxIndex{box}, action,
                            {.purpose = SentCommand::Purpose::end, .to = party(BoxIndex{box})});
}

void Attempt::finish() {
    step(AttemptEvent::windows_closed);
    owner_.over(*this);
}

}  // namespace weft::raid
