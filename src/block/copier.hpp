// SPDX-License-Identifier: Apache-2.0
// Copies one device onto another, many pieces at a time, and leaves holes as holes.
//
// The source is asked where it has data, a stretch at a time; data are read and written piece by
// piece, and what reads as zero is zeroed on the target without being moved. Ends with a flush.
//
// A target that announces zeroing and then refuses it gets the zeroes as data, like one that never
// announced it.
//
// All edges lie on the blocks of both devices. A block of which only a part reads as zero is data.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "block/buffer_pool.hpp"

namespace weft::block {

class Copier {
public:
    struct Options {
        std::size_t pieces_in_flight = 16;
        std::uint32_t piece_bytes = 512u << 10;
    };

    /// The target is at least as large as the source; both outlive the copier.
    Copier(BlockDevice& source, BlockDevice& target, Options options);
    Copier(const Copier&) = delete;
    Copier& operator=(const Copier&) = delete;
    ~Copier();

    /// `finished` is called once, when nothing is under way any more. After a failure no new piece
    /// is begun. Fails with malformed, and nothing is touched or called, if what is to be copied is
    /// not a number of block_bytes(), or no transfer may be that long.
    Result<void> start(std::function<void(Result<void>)> finished);

    /// What offsets and lengths must be multiples of to suit both devices.
    std::uint64_t block_bytes() const { return block_bytes_; }

    std::uint64_t bytes_total() const { return size_; }
    std::uint64_t bytes_done() const { return done_; }  ///< holes included
    std::uint64_t bytes_moved() const { return moved_; }

private:
    struct Piece;
    struct StatusQuestion;
    struct FinalFlush;
    struct Range {
        std::uint64_t offset;
        std::uint64_t length;
    };
    static constexpr std::size_t extents_at_a_time = 128;
    static constexpr std::uint64_t stretch_bytes = 1u << 30;

    void go_on();
    bool know_more();
    void learned(Result<void> outcome);
    void begin(Piece& piece);
    void begin_again(Piece& piece);
    void zero(Piece& piece, std::uint64_t offset, std::uint64_t length);
    void move(Piece& piece, std::uint64_t offset, std::uint64_t length);
    void consume(std::uint64_t length);
    void piece_done(Piece& piece, Result<void> outcome);
    void fail(Error why);
    void finish_if_idle();

    BlockDevice& source_;
    BlockDevice& target_;
    std::uint64_t size_;
    std::uint64_t block_bytes_;
    std::uint64_t piece_bytes_;
    std::uint64_t next_ = 0;  ///< the first byte no piece has taken
    std::uint64_t done_ = 0;
    std::uint64_t moved_ = 0;
    std::optional<Error> fault_;
    std::function<void(Result<void>)> finished_;
    BufferPool pool_;
    BufferShare share_;

    std::vector<Extent> extents_;  ///< what is known from next_ on
    std::size_t extent_ = 0;
    std::unique_ptr<StatusQuestion> question_;
    std::unique_ptr<FinalFlush> flush_;
    std::vector<Piece> pieces_;
    std::vector<Piece*> free_;
    std::vector<Range> refused_zeroes_;  ///< to be moved as data; one for each piece at the most
    bool target_zeroes_;
    bool asking_ = false;
    bool flushing_ = false;
    bool going_on_ = false;  ///< completions from inside submit() must not recurse
};

}  // namespace weft::block
