// SPDX-License-Identifier: Apache-2.0
// An order being carried out: its pieces, against a disk, a window and peers. What has to be
// blended, digested or passed on from the disk goes through the landing, a part at a time;
// everything else goes straight to its place.
//
// Pieces that have nothing to do with each other are under way together: a round trip for each
// block would cost more than the block. They are begun in their order and have their effect in
// their order, so that the outcome is that of one after another. Nothing here runs inside itself,
// however soon a disk or a peer answers.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "raid/digest.hpp"
#include "raid/staging.hpp"
#include "weft/block_device.hpp"

namespace weft::raid {

class OrderWork;

struct OrderResult {
    wire::ArrayOutcome outcome{};
    std::uint8_t party = wire::no_array_party;  ///< of the order's, if it was one that failed
    std::uint16_t piece = 0;                    ///< where, from 1
    Digest digest{};
};

class OrderWorkOwner {
public:
    /// May destroy the work.
    virtual void order_ended(OrderWork& work, const OrderResult& result) = 0;

protected:
    ~OrderWorkOwner() = default;
};

class OrderWork final {
public:
    struct Place {
        BlockDevice& disk;
        std::uint64_t data_offset;  ///< where home 0 is on the disk
        PeerTransfers& peers;
        Buffer window, landing;
    };

    OrderWork(OrderWorkOwner& owner, ReceivedOrder received, const Place& place)
        : owner_(owner), received_(std::move(received)), place_(place) {}
    OrderWork(const OrderWork&) = delete;
    OrderWork& operator=(const OrderWork&) = delete;

    const ReceivedOrder& received() const { return received_; }
    void start() { advance(); }
    /// It ends with the pieces it is at.
    void stop() { stopping_ = true; }

private:
    enum class At : std::uint8_t { disk, peer };

    /// A disk request or a transfer under way: a part of a piece, or pieces that adjoin at home.
    struct Step final : BlockRequest, PeerTransfer {
        Step(OrderWork& made_by, std::size_t first, std::uint32_t from)
            : work(made_by), piece(first), begin(from) {}
        // Two bases, each with its own completed(): told apart by where the step is.
        void completed(Result<void> outcome) override { work.step_ended(*this, outcome); }

        OrderWork& work;
        std::size_t piece;
        std::size_t pieces = 1;
        std::uint32_t begin;     ///< of the part, within the piece
        std::uint32_t size = 0;  ///< of the part
        Buffer landed{};         ///< where it lands; empty: it goes straight
        std::vector<Buffer> home_memory{};
        At at{};
        bool ended = false;
        Result<void> result{};
    };

    const std::vector<Piece>& pieces() const { return received_.order.pieces; }
    Buffer slot_of(const Piece& piece) const {
        return place_.window.subspan(piece.slot, piece.length);
    }
    Buffer other_slot_of(const Piece& piece) const {
        return place_.window.subspan(piece.at, piece.length);
    }

    void advance();
    void retire_what_ended();
    void retire(const Step& step);
    bool begin_next();
    bool must_wait(const Piece& piece) const;
    std::optional<Buffer> room_to_land(std::size_t size);
    void begin_straight(const Piece& piece);
    bool begin_by_landing(const Piece& piece);
    void take_adjoining(Step& step);
    void compute(const Piece& piece);
    void ask_disk(Step& step, BlockOperation wanted);
    void ask_peer(Step& step, Buffer memory);
    void step_ended(Step& step, Result<void> outcome);
    void failed(const Step& step, Error error);
    void name_block(const Step& step, std::uint64_t at);
    void end();

    OrderWorkOwner& owner_;
    ReceivedOrder received_;
    Place place_;
    std::size_t next_ = 0;     ///< the piece to begin next
    std::uint32_t begun_ = 0;  ///< octets of it that are
    std::deque<Step> steps_;   ///< under way, in the order they were begun
    std::size_t landing_end_ = 0;
    bool advancing_ = false;
    bool stopping_ = false;
    bool unsent_ = false;  ///< something that was read is not sent any more
    bool failed_ = false;
    OrderResult result_{};
};

}  // namespace weft::raid
