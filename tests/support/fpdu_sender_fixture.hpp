// SPDX-License-Identifier: Apache-2.0
// A sender of FPDUs with somebody to take messages from and somebody to take its bytes, who hold it
// to its promises: holds are balanced, messages end in order, lent bytes stay as they are.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "iwarp/fpdu_sender.hpp"
#include "support/fpdu_stream.hpp"

namespace weft::test {

class CountedHolds final : public iwarp::MemoryHolds {
public:
    ~CountedHolds() { EXPECT_TRUE(held_.empty()) << "a hold was not released"; }

    SteeringTag hold(SteeringTag tag) override {
        EXPECT_NE(tag, SteeringTag{});
        ++held_[tag];
        return tag;
    }
    void release(SteeringTag tag) override {
        ASSERT_TRUE(is_held(tag));
        if (--held_[tag] == 0) held_.erase(tag);
    }
    bool is_held(SteeringTag tag) const { return held_.count(tag) > 0; }

private:
    std::map<SteeringTag, int> held_;
};

/// A message with its bytes and where they lie: each range has a region of its own, in pieces.
class OutgoingMessage {
public:
    OutgoingMessage(WireMessage message, const std::vector<std::vector<std::size_t>>& pieces)
        : message_(std::move(message)) {
        auto bytes = Buffer(message_.payload);
        for (const auto& sizes : pieces) {
            auto& region = regions_.emplace_back();
            for (auto size : sizes) {
                auto part = bytes.first(size);
                bytes = bytes.subspan(size);
                region.memory.emplace_back(part.begin(), part.end());
                if (size > 0) region.pieces.emplace_back(region.memory.back());
                region.size += size;
            }
        }
        EXPECT_TRUE(bytes.empty()) << "every byte lies in some piece";
        for (auto& region : regions_)
            sources_.push_back({iwarp::MemoryRange(region.pieces, 0, region.size), region.tag});
    }
    /// In one piece.
    explicit OutgoingMessage(const WireMessage& message)
        : OutgoingMessage(message, {{message.payload.size()}}) {}
    OutgoingMessage(OutgoingMessage&&) = default;  // no copies: they would share the bytes

    const WireMessage& expected() const { return message_; }
    iwarp::Message message() const {
        return {.opcode = message_.opcode,
                .tag = message_.tag,
                .offset = message_.offset,
                .payload = sources_};
    }
    /// From now on the i-th range is held under this tag.
    void hold_under(std::size_t i, SteeringTag tag) { sources_[i].tag = tag; }
    Buffer memory(std::size_t region, std::size_t piece) { return regions_[region].pieces[piece]; }

private:
    struct Region {
        std::deque<Bytes> memory;
        std::vector<Buffer> pieces;
        std::size_t size = 0;
        SteeringTag tag{};
    };
    WireMessage message_;
    std::deque<Region> regions_;
    std::vector<iwarp::Message::Source> sources_;
};

struct CountedWaiter final : iwarp::FpduBufferWaiter {
    void buffer_available() override { ++told; }
    int told = 0;
};

class QueuedMessages final : public iwarp::MessageSource {
public:
    std::deque<OutgoingMessage> waiting;  ///< stays: what was sent is behind `begun`
    std::size_t begun = 0;
    std::size_t ended = 0;
    std::function<void()> when_asked = [] {};
    std::function<void()> when_sent = [] {};

    OutgoingMessage& add(OutgoingMessage message) {
        return waiting.emplace_back(std::move(message));
    }
    std::optional<iwarp::Message> next_message() override {
        when_asked();
        if (begun == waiting.size()) return std::nullopt;
        return waiting[begun++].message();
    }
    void message_sent() override {
        ++ended;
        EXPECT_LE(ended, begun);
        when_sent();
    }
};

/// The sender's other end. What pending() gives is kept and compared with what it gave before, also
/// at the old addresses, until sent() has covered it.
class SenderFixture {
public:
    explicit SenderFixture(const iwarp::FpduSenderOptions& options)
        : options_(options), sender_(std::in_place, source, holds, buffers, waiter, options) {}

    CountedHolds holds;
    iwarp::FpduBuffers buffers{1u << 20, 0};
    CountedWaiter waiter;
    QueuedMessages source;

    iwarp::FpduSender& sender() { return *sender_; }
    void destroy_sender() { sender_.reset(); }

    /// Asks for as much as fits that many pieces; returns how many octets there are.
    std::size_t ask(std::size_t piece_count) {
        std::vector<ConstBuffer> pieces(piece_count);
        pieces.resize(sender_->pending(pieces));
        std::size_t at = sent_;
        for (ConstBuffer piece : pieces) {
            EXPECT_FALSE(piece.empty());
            auto known = piece.first(std::min(piece.size(), octets_.size() - at));
            EXPECT_TRUE(equals_octets(known, at)) << "was another when first lent";
            octets_.insert(octets_.end(), piece.begin() + std::ssize(known), piece.end());
            at += piece.size();
        }
        if (at - sent_ >= lent_bytes_) {
            lent_ = pieces;
            lent_bytes_ = at - sent_;
        }
        expect_lent_in_place();
        return at - sent_;
    }

    void send(std::size_t count) {
        expect_lent_in_place();
        sent_ += count;
        lent_.clear();
        lent_bytes_ = 0;
        sender_->sent(count);
    }

    /// Sends all there is, through pieces enough.
    const Bytes& send_all() {
        while (auto count = ask(64)) send(count);
        return octets_;
    }

    void expect_lent_in_place() const {
        std::size_t at = sent_;
        for (ConstBuffer piece : lent_) {
            ASSERT_TRUE(equals_octets(piece, at)) << "lent bytes have changed";
            at += piece.size();
        }
    }

    const std::vector<ConstBuffer>& lent() const { return lent_; }
    /// All that was sent or lent.
    const Bytes& octets() const { return octets_; }
    FpduStream decoded() const {
        return {octets_, {options_.checksum, options_.markers, options_.ulpdu_max}};
    }
    void expect_all_messages() const {
        auto stream = decoded();
        ASSERT_EQ(stream.messages().size(), source.waiting.size());
        for (std::size_t i = 0; i < source.waiting.size(); ++i)
            EXPECT_EQ(stream.messages()[i], source.waiting[i].expected()) << "message " << i;
        EXPECT_FALSE(stream.unfinished());
        EXPECT_EQ(source.ended, source.waiting.size());
    }

private:
    bool equals_octets(ConstBuffer piece, std::size_t at) const {
        auto ours = ConstBuffer(octets_).subspan(at, piece.size());
        return std::equal(piece.begin(), piece.end(), ours.begin());
    }

    iwarp::FpduSenderOptions options_;
    std::optional<iwarp::FpduSender> sender_;
    Bytes octets_;
    std::size_t sent_ = 0;
    std::vector<ConstBuffer> lent_;  ///< by the call since the last sent() that gave most
    std::size_t lent_bytes_ = 0;
};

}  // namespace weft::test
