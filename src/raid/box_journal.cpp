// SPDX-License-Identifier: Apache-2.0
// What a box with a journal does besides: what is prepared outlives its window, its epoch and the
// power, and is ended by whoever then knows how.
#include <algorithm>

#include "raid/box.hpp"
#include "raid/stale_blocks.hpp"

namespace weft::raid {

using wire::ArrayOutcome;

namespace {

bool has_piece(const Order& order, Verb verb) {
    return std::ranges::find(order.pieces, verb, &Piece::verb) != order.pieces.end();
}

std::uint32_t octets_to_prepare(const ReceivedOrder& order) {
    std::uint64_t octets = 0;
    for (const Piece& piece : order.order.pieces)
        if (piece.verb == Verb::prepare) octets += piece.length;
    const std::uint64_t most = ~std::uint32_t{0};
    return static_cast<std::uint32_t>(
        std::min(most, std::max<std::uint64_t>(octets, order.envelope.to_prepare)));
}

/// The journal has had its room: what is lacking then is room on the disk.
ArrayOutcome outcome_of_commit(const Result<void>& committed) {
    const auto outcome = outcome_of(committed);
    return outcome == ArrayOutcome::no_room ? ArrayOutcome::no_space : outcome;
}

}  // namespace

/// With a journal everything goes through it: what went home past it could be undone by it.
ArrayOutcome Box::check_journaling(const ReceivedOrder& order) const {
    const bool prepares = has_piece(order.order, Verb::prepare);
    if (journaled_ == nullptr)
        return prepares || order.order.pieces.empty() ? ArrayOutcome::malformed
                                                      : ArrayOutcome::done;
    if (journaled_->has_failed()) return ArrayOutcome::disk_failed;
    return has_piece(order.order, Verb::commit) ? ArrayOutcome::malformed : ArrayOutcome::done;
}

/// Whoever says how long it is in office is believed; who does not, only while the last word holds.
ArrayOutcome Box::check_lease(const ReceivedOrder& order) {
    const auto lease = std::chrono::milliseconds(order.envelope.lease_ms);
    if (order.envelope.lease_ms != 0) lease_end_ = now_ + lease;
    return lease_end_ && now_ > *lease_end_ ? ArrayOutcome::lease_over : ArrayOutcome::done;
}

ArrayOutcome Box::keep_room(const ReceivedOrder& order) {
    if (journaled_ == nullptr) return ArrayOutcome::done;
    const auto transaction = order.envelope.transaction;
    journaled_->settle(order.envelope.settled);
    if (order.order.pieces.empty() && !journaled_->state_of(transaction))
        return ArrayOutcome::unknown_transaction;  // it commits, and there is nothing
    if (order.order.phase == Phase::commit) return ArrayOutcome::done;
    // One that was ended while this was on its way must not begin again, not even where it only
    // lends its blocks: nobody would close that window.
    if (order.envelope.participants != 0 && !is_open(transaction) &&
        journaled_->is_over(transaction))
        return ArrayOutcome::unknown_transaction;
    const std::uint32_t octets = octets_to_prepare(order);
    if (octets == 0) return ArrayOutcome::done;
    if (owner_.disk_is_full() && !is_open(transaction)) {
        // What there was no room for may be a checksum, of writes that have long ended.
        journaled_->checkpoint();
        return ArrayOutcome::no_space;
    }
    return journaled_->keep_room(transaction, octets) ? ArrayOutcome::done : ArrayOutcome::no_room;
}

/// It commits what was prepared, in this window or before a restart.
bool Box::is_in_journal(const ReceivedOrder& order) const {
    return journaled_ != nullptr && order.order.phase == Phase::commit &&
           journaled_->state_of(order.envelope.transaction).has_value();
}

/// Whether the order ends only when the journal has done its part.
bool Box::journals(Window& window, const OrderResult& result) {
    if (journaled_ == nullptr) return false;
    const auto& received = window.work->received();
    const auto transaction = received.envelope.transaction;
    if (has_piece(received.order, Verb::prepare)) {
        window.preparing = std::make_unique<PrepareWork>(
            *journaled_, received, window.memory, staging_.landing(received.envelope.window),
            result, [this, &window](const OrderResult& ended) {
                const auto done = std::move(window.preparing);
                if (ended.outcome == ArrayOutcome::done)
                    for (const Piece& piece : window.work->received().order.pieces)
                        if (piece.verb == Verb::prepare)
                            window.prepared.push_back(
                                window.memory.subspan(piece.slot, piece.length));
                order_answered(window, ended);
            });
        window.preparing->start();
        return true;
    }
    if (has_piece(received.order, Verb::versions)) {
        tell_versions(window, result);
        return true;
    }
    if (received.order.phase != Phase::commit || !journaled_->state_of(transaction)) return false;
    journaled_->commit(transaction, window.prepared, [this, &window, result](Result<void> outcome) {
        OrderResult ended = result;
        ended.outcome = outcome_of_commit(outcome);
        order_answered(window, ended);
    });
    return true;
}

void Box::tell_versions(Window& window, const OrderResult& result) {
    const auto& pieces = window.work->received().order.pieces;
    const Piece& piece = *std::ranges::find(pieces, Verb::versions, &Piece::verb);
    journaled_->home().read_versions(
        piece.home, [this, &window, result, first = piece.column](Result<Versions> versions) {
            OrderResult ended = result;
            if (versions)
                ended.digest = digest_with(*versions, first);
            else
                ended.outcome = outcome_of(versions.error());
            order_answered(window, ended);
        });
}

void Box::commit_from_journal(CommandTicket ticket, wire::TransactionNumber transaction) {
    if (journaled_ == nullptr)
        return say(ticket, transaction, {.outcome = ArrayOutcome::unknown_transaction});
    journaled_->commit(transaction, {}, [this, ticket, transaction](Result<void> outcome) {
        say(ticket, transaction, {.outcome = outcome_of_commit(outcome)});
        answer_recalls();
    });
}

void Box::abort_in_journal(std::vector<CommandTicket> tickets,
                           wire::TransactionNumber transaction) {
    journaled_->abort(transaction,
                      [this, tickets = std::move(tickets), transaction](Result<void> outcome) {
                          for (auto ticket : tickets)
                              say(ticket, transaction, {.outcome = outcome_of(outcome)});
                          answer_recalls();
                      });
}

void Box::take_recall(CommandTicket ticket) {
    recalls_.push_back(ticket);
    answer_recalls();
}

/// Not while something is under way: what is not listed must never be prepared later. Nor while
/// something is committed that the disk has not taken home: whoever hears that it is committed
/// counts on it, and nobody would say so again.
void Box::answer_recalls() {
    if (recalls_.empty()) return;
    const bool waits = std::ranges::any_of(
        windows_, [](const Window& window) { return window.work || !window.waiting.empty(); });
    if (waits || (journaled_ != nullptr && !journaled_->is_quiet())) return;
    if (journaled_ == nullptr) return end_recalls(ArrayOutcome::done, {});
    if (journaled_->has_failed()) return end_recalls(ArrayOutcome::disk_failed, {});
    const auto owed = journaled_->not_home();
    if (!owed) return end_recalls(ArrayOutcome::done, journaled_->recall());
    journaled_->commit(*owed, {}, [this](Result<void> outcome) {
        if (!outcome) return end_recalls(outcome_of_commit(outcome), {});
        answer_recalls();
    });
}

void Box::end_recalls(ArrayOutcome outcome, const Recalled& recalled) {
    const auto data = encode_recall(recalled);
    for (auto ticket : std::exchange(recalls_, {}))
        owner_.answer_with_data(ticket,
                                {.outcome = outcome,
                                 .generation = keeper_.current().volume.generation,
                                 .epoch = keeper_.current().epoch},
                                data);
}

}  // namespace weft::raid
