// SPDX-License-Identifier: Apache-2.0
#include "block/copier.hpp"

#include <algorithm>
#include <numeric>

#include "base/bytes.hpp"
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

namespace {

/// Whether the device said that it does not do this, rather than that it tried and failed.
bool is_refusal(const Result<void>& outcome) {
    return !outcome &&
           (outcome.error().code == Code::unsupported || outcome.error().code == Code::malformed);
}

}  // namespace

Copier::Copier(BlockDevice& source, BlockDevice& target, Options options)
    : source_(source),
      target_(target),
      size_(source.traits().size),
      block_bytes_(
          std::lcm<std::uint64_t>(source.traits().minimum_block, target.traits().minimum_block)),
      piece_bytes_(round_down(std::min({std::max<std::uint64_t>(options.piece_bytes, block_bytes_),
                                        std::uint64_t{source.traits().maximum_transfer},
                                        std::uint64_t{target.traits().maximum_transfer},
                                        std::uint64_t{BufferPool::largest}}),
                              block_bytes_)),
      pool_({.bytes = ~std::size_t{0},  // what is lent at a time is bounded by our pieces
             .reserve_bytes = 0,
             .idle_bytes = options.pieces_in_flight * piece_bytes_}),
      share_(pool_, [] {}),
      extents_(extents_at_a_time),
      question_(std::make_unique<StatusQuestion>()),
      flush_(std::make_unique<FinalFlush>()),
      pieces_(options.pieces_in_flight),
      target_zeroes_(target.traits().can_write_zeroes) {
    WEFT_CHECK(target.traits().size >= size_);
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

Result<void> Copier::start(std::function<void(Result<void>)> finished) {
    if (size_ % block_bytes_ != 0 || piece_bytes_ == 0) return Error{.code = Code::malformed};
    finished_ = std::move(finished);
    go_on();
    return {};
}

/// Begins as many pieces as there is room for.
void Copier::go_on() {
    if (going_on_) return;
    going_on_ = true;
    while (!fault_ && !free_.empty()) {
        if (!refused_zeroes_.empty())
            begin_again(*free_.back());
        else if (next_ < size_ && !asking_ && know_more())
            begin(*free_.back());
        else
            break;
    }
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
    const Extent& extent = extents_[extent_];
    auto offset = next_;
    auto whole_blocks = round_down(extent.length, block_bytes_);
    if (extent.zero && whole_blocks > 0 && target_zeroes_) {
        consume(whole_blocks);
        return zero(piece, offset, whole_blocks);
    }
    // A block that two extents share goes with the first, as data.
    auto length = std::min(round_up(extent.length, block_bytes_), piece_bytes_);
    consume(length);
    move(piece, offset, length);
}

void Copier::begin_again(Piece& piece) {
    Range& range = refused_zeroes_.back();
    auto offset = range.offset;
    auto length = std::min(range.length, piece_bytes_);
    range = {offset + length, range.length - length};
    if (range.length == 0) refused_zeroes_.pop_back();
    move(piece, offset, length);
}

void Copier::zero(Piece& piece, std::uint64_t offset, std::uint64_t length) {
    free_.pop_back();
    piece.offset = offset;
    piece.length = length;
    piece.operation = BlockOperation::write_zeroes;
    piece.memory = {};
    target_.submit(piece);
}

void Copier::move(Piece& piece, std::uint64_t offset, std::uint64_t length) {
    free_.pop_back();
    piece.offset = offset;
    piece.length = length;
    piece.operation = BlockOperation::read;
    piece.place = piece.buffer = share_.take(length);
    if (piece.buffer.empty()) {
        free_.push_back(&piece);
        return fail({.code = Code::exhausted});
    }
    piece.memory = {&piece.place, 1};
    source_.submit(piece);
}

void Copier::consume(std::uint64_t length) {
    next_ += length;
    while (length > 0 && extent_ < extents_.size()) {
        auto part = std::min(length, extents_[extent_].length);
        extents_[extent_].length -= part;
        length -= part;
        if (extents_[extent_].length == 0) ++extent_;
    }
}

void Copier::piece_done(Piece& piece, Result<void> outcome) {
    bool refused = piece.operation == BlockOperation::write_zeroes && is_refusal(outcome);
    if (refused) {
        // Not asked again, so no more come here than are under way now.
        target_zeroes_ = false;
        refused_zeroes_.push_back({piece.offset, piece.length});
    }
    if (!outcome && !refused) fail(outcome.error());
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
