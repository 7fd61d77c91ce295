// SPDX-License-Identifier: Apache-2.0
#include "raid/prepare_work.hpp"

#include <algorithm>

namespace weft::raid {

using wire::ArrayOutcome;

ArrayOutcome outcome_of(const Result<void>& journaled) {
    if (journaled) return ArrayOutcome::done;
    if (is_mismatch(journaled.error())) return ArrayOutcome::corrupt;
    switch (journaled.error().code) {
        case Code::exhausted:
            return ArrayOutcome::no_room;
        case Code::malformed:
            return ArrayOutcome::malformed;
        case Code::out_of_range:
            return ArrayOutcome::out_of_range;
        case Code::not_found:
        case Code::access_denied:  // it was decided otherwise
            return ArrayOutcome::unknown_transaction;
        default:
            return ArrayOutcome::disk_failed;
    }
}

void PrepareWork::advance() {
    if (advancing_) return;  // an answer from inside a question: the loop below goes on
    advancing_ = true;
    while (!waiting_ && next_ < received_.order.pieces.size()) step();
    advancing_ = false;
    if (waiting_) return;
    if (result_.outcome != ArrayOutcome::done) return end(result_);
    append();
}

void PrepareWork::step() {
    if (piece().verb == Verb::prepare && counting_of(piece()) != uncounted) {
        if (done_ == 0)
            result_.digest.add(digest_of(window_.subspan(piece().slot, piece().length),
                                         piece().blend, piece().column, piece().home));
        if (counting_of(piece()) == as_change && done_ < piece().length) return read_old();
    }
    done_ = 0;
    ++next_;
}

void PrepareWork::read_old() {
    part_ = landing_.first(std::min<std::size_t>(piece().length - done_, landing_.size()));
    waiting_ = true;
    operation = BlockOperation::read;
    offset = piece().home + done_;
    length = part_.size();
    memory = {&part_, 1};
    disk_.home().submit(*this);
}

void PrepareWork::completed(Result<void> outcome) {
    waiting_ = false;
    if (outcome) {
        result_.digest.add(digest_of(part_, piece().blend, piece().column, piece().home + done_));
        done_ += static_cast<std::uint32_t>(part_.size());
    } else {
        result_ = {};
        result_.outcome = outcome_of(outcome);
        result_.piece = static_cast<std::uint16_t>(next_ + 1);
        if (is_mismatch(outcome.error()))
            result_.digest.row = static_cast<std::uint32_t>(
                std::uint64_t{outcome.error().where} * CheckedDisk::block - piece().home);
        next_ = received_.order.pieces.size();
    }
    advance();
}

void PrepareWork::append() {
    const auto& envelope = received_.envelope;
    JournaledDisk::Preparation preparation;
    preparation.record.participants = envelope.participants;
    preparation.record.transaction = envelope.transaction;
    preparation.record.generation = envelope.address.generation;
    preparation.record.host = envelope.host;
    preparation.record.host_identity = envelope.host_identity;
    preparation.record.host_command = envelope.host_command;
    for (const Piece& each : received_.order.pieces) {
        if (each.verb != Verb::prepare) continue;
        preparation.extents.push_back({.home = each.home,
                                       .columns = columns_changed(each),
                                       .restores = is_restoring(each),
                                       .compared = counting_of(each) == as_new,
                                       .length = each.length});
        preparation.blocks.push_back(window_.subspan(each.slot, each.length));
    }
    disk_.prepare(std::move(preparation), [this](Result<void> outcome) {
        OrderResult result = result_;
        result.outcome = outcome_of(outcome);
        end(result);
    });
}

void PrepareWork::end(const OrderResult& result) {
    auto ended = std::move(ended_);
    ended(OrderResult(result));
}

}  // namespace weft::raid
