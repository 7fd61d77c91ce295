// SPDX-License-Identifier: Apache-2.0
#include "block/copier.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace weft::block {

struct Copier::Piece final : BlockRequest {
    Copier* owner = nullptr;
    Buffer buffer;  ///< empty while the piece is a run of zeroes
    Buffer place;   ///< the part of it that is used
    void completed(Result<void> outcome) override { owner->piece_done(*this, outcome); }
};

struct Copier::StatusQuestion final : BlockRequest {
    Copier* owner = nullptr;
    void completed(Result<void> outcome) override { owner->learned(outcome); }
};

struct Copier::FinalFlush final : BlockRequest {
    Copier* owner = nullptr;
    void completed(Result<void> outcome) override {
        owner->flushing_ = false;
        if (!outcome) owner->fail(outcome.error());
        owner->finished_(owner->fault_ ? Result<void>(*owner->fault_) : Result<void>());
    }
};

Copier::Copier(BlockDevice& source, BlockDevice& target, Options options)
    : source_(source),
      target_(target),
      options_(options),
      size_(source.traits().size),
      pool_({.bytes = ~std::size_t{0},  // what is lent at a time is bounded by our pieces
             .reserve_bytes = 0,
             .idle_bytes = options.pieces_in_flight * options.piece_bytes}),
      share_(pool_, [] {}),
      extents_(extents_at_a_time),
      question_(std::make_unique<StatusQuestion>()),
      flush_(std::make_unique<FinalFlush>()),
      pieces_(options.pieces_in_flight) {
    WEFT_CHECK(target.traits().size >= size_);
    options_.piece_bytes = std::min(
        {options.piece_bytes, source.traits().maximum_transfer, target.traits().maximum_transfer});
    question_->owner = flush_->owner = this;
    extents_.clear();
    for (auto& piece : pieces_) {
        piece.owner = this;
        free_.push_back(&piece);
    }
}

Copier::~Copier() {
    WEFT_CHECK(free_.size() == pieces_.size() && !asking_ && !flushing_);
}

void Copier::start(std::function<void(Result<void>)> finished) {
    finished_ = std::move(finished);
    go_on();
}

/// Begins as many pieces as there is room for.
void Copier::go_on() {
    if (going_on_) return;
    going_on_ = true;
    while (!fault_ && !asking_ && next_ < size_ && !free_.empty())
        if (know_more()) begin(*free_.back());
    going_on_ = false;
    finish_if_idle();
}

/// True if the allocation at next_ is known; otherwise the source is being asked.
bool Copier::know_more() {
    if (extent_ < extents_.size()) return true;
    auto length = std::min(stretch_bytes, size_ - next_);
    extent_ = 0;
    if (!source_.traits().can_report_status) {
        extents_.assign(1, Extent{.length = length});
        return true;
    }
    extents_.assign(extents_at_a_time, Extent{});
    question_->operation = BlockOperation::status;
    question_->offset = next_;
    question_->length = length;
    question_->extents = extents_;
    asking_ = true;
    source_.submit(*question_);
    return !asking_ && !fault_;
}

void Copier::learned(Result<void> outcome) {
    asking_ = false;
    if (!outcome) {
        extents_.clear();
        fail(outcome.error());
    } else {
        extents_.resize(question_->extent_count);
        if (extents_.empty()) fail({.code = Code::io_failed});
    }
    go_on();
}

void Copier::begin(Piece& piece) {
    free_.pop_back();
    Extent& extent = extents_[extent_];
    bool as_zeroes = extent.zero && target_.traits().can_write_zeroes;
    auto length =
        as_zeroes ? extent.length : std::min<std::uint64_t>(extent.length, options_.piece_bytes);
    piece.offset = next_;
    piece.length = length;
    next_ += length;
    extent.length -= length;
    if (extent.length == 0) ++extent_;
    if (as_zeroes) {
        piece.operation = BlockOperation::write_zeroes;
        piece.memory = {};
        target_.submit(piece);
        return;
    }
    piece.operation = BlockOperation::read;
    piece.place = piece.buffer = share_.take(length);
    if (piece.buffer.empty()) {
        free_.push_back(&piece);
        return fail({.code = Code::exhausted});
    }
    piece.memory = {&piece.place, 1};
    source_.submit(piece);
}

void Copier::piece_done(Piece& piece, Result<void> outcome) {
    if (!outcome) fail(outcome.error());
    if (outcome && !fault_ && piece.operation == BlockOperation::read) {
        piece.operation = BlockOperation::write;
        target_.submit(piece);
        return;
    }
    if (outcome && piece.operation != BlockOperation::read) {
        done_ += piece.length;
        if (piece.operation == BlockOperation::write) moved_ += piece.length;
    }
    if (!piece.buffer.empty()) share_.give_back(piece.buffer);
    piece.buffer = {};
    free_.push_back(&piece);
    go_on();
}

void Copier::fail(Error why) {
    if (!fault_) fault_ = why;
}

void Copier::finish_if_idle() {
    if (asking_ || flushing_ || free_.size() != pieces_.size()) return;
    if (!fault_ && next_ < size_) return;
    if (fault_) return finished_(*fault_);
    flush_->operation = BlockOperation::flush;
    flushing_ = true;
    target_.submit(*flush_);
}

}  // namespace weft::block
