// SPDX-License-Identifier: Apache-2.0
// An order being carried out: its pieces, one after another, against a disk, a window and peers.
// What has to be blended, digested or passed on from the disk goes through the landing, a part at a
// time; everything else goes straight to its place. Nothing here runs inside itself, however soon a
// disk or a peer answers.
#pragma once

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

class OrderWork final : private BlockRequest, private PeerTransfer {
public:
    struct Place {
        BlockDevice& disk;
        std::uint64_t data_offset;  ///< where home 0 is on the disk
        PeerTransfers& peers;
        Buffer window, landing;
    };

    OrderWork(OrderWorkOwner& owner, ReceivedOrder received, const Place& place)
        : owner_(owner), received_(std::move(received)), place_(place) {}

    const ReceivedOrder& received() const { return received_; }
    void start() { advance(); }
    /// It ends with the piece it is at.
    void stop() { stopping_ = true; }

private:
    /// What a piece waits for.
    enum class Waits : std::uint8_t { nothing, disk, peer };

    const Piece& piece() const { return received_.order.pieces[next_]; }
    Buffer slot() const { return place_.window.subspan(piece().slot, piece().length); }
    Buffer other_slot() const { return place_.window.subspan(piece().at, piece().length); }
    /// The part of the piece that is under way, where it goes through the landing.
    std::size_t part_size() const;
    Buffer landed() const { return place_.landing.first(part_size()); }

    void advance();
    void begin();
    void compute();
    void ask_disk(BlockOperation operation, Buffer memory);
    void ask_peer(bool fetches, Buffer memory);
    void arrived();
    void part_ended(std::size_t size);
    void failed(Error error, Waits on);
    void end();

    // Two bases, each with its own completed(): told apart by what is waited for.
    void completed(Result<void> outcome) override;

    OrderWorkOwner& owner_;
    ReceivedOrder received_;
    Place place_;
    std::size_t next_ = 0;    ///< the piece under way
    std::uint32_t done_ = 0;  ///< octets of it that are done
    Waits waits_ = Waits::nothing;
    bool from_disk_ = false;  ///< send_home: the part is read, and on its way to the peer
    bool advancing_ = false;
    bool stopping_ = false;
    Buffer disk_memory_{};
    OrderResult result_{};
};

}  // namespace weft::raid
