// SPDX-License-Identifier: Apache-2.0
// Reads a whole stream of FPDUs the plain way, all of it at hand, and puts its messages together:
// what a sender's stream is held against. Every rule of RFC 5044 section 4 and RFC 5041 section 5
// that a stream can break on its own is checked on the way.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/golden.hpp"
#include "wire/mpa.hpp"
#include "wire/rdmap.hpp"

namespace weft::test {

struct FpduStreamOptions {
    bool checksum = true;
    bool markers = false;
    std::size_t ulpdu_max = wire::ulpdu_limit;
};

/// A message as it came, put together from its segments.
struct WireMessage {
    wire::RdmapOpcode opcode{};
    SteeringTag tag{};         ///< tagged: where to; otherwise what to invalidate
    std::uint64_t offset = 0;  ///< tagged only
    Bytes payload;

    bool operator==(const WireMessage&) const = default;
};

class FpduStream {
public:
    /// Fails the test if the stream is wrong. It may end amid a message, but not amid an FPDU.
    FpduStream(ConstBuffer octets, const FpduStreamOptions& options)
        : octets_(octets), options_(options) {
        while (position_ < octets_.size() && !testing::Test::HasFatalFailure()) read_fpdu();
    }

    const std::vector<WireMessage>& messages() const { return messages_; }
    /// What came of a message that does not end, or that a Terminate cut off.
    const std::optional<WireMessage>& unfinished() const {
        return cut_off_ ? cut_off_ : unfinished_;
    }
    /// The payload sizes of all segments.
    const std::vector<std::size_t>& segments() const { return segments_; }

private:
    void read_fpdu() {
        SCOPED_TRACE("FPDU at " + std::to_string(position_));
        auto rest = octets_.subspan(position_);
        std::uint64_t length_at = options_.markers && wire::until_marker(position_) == 0 ? 4 : 0;
        ASSERT_GE(rest.size(), length_at + 2);
        auto length = decode<wire::FpduLength>(rest.subspan(length_at));
        std::size_t ulpdu_size = length->ulpdu_size;
        ASSERT_LE(ulpdu_size, options_.ulpdu_max);
        std::size_t plain_size = wire::fpdu_size(ulpdu_size);
        auto size = options_.markers ? wire::marked_size(position_, plain_size) : plain_size;
        ASSERT_GE(rest.size(), size) << "the stream ends amid an FPDU";

        auto whole = rest.first(size);
        if (options_.checksum) {
            ASSERT_TRUE(wire::fpdu_is_intact(whole));
        } else {
            ASSERT_EQ(wire::fpdu_checksum(whole), 0u);
        }
        Bytes plain(whole.begin(), whole.end());
        if (options_.markers) {
            auto left = wire::remove_markers(whole, position_, plain);
            ASSERT_TRUE(left) << "a marker points elsewhere";
            ASSERT_EQ(*left, plain_size);
        }
        auto padding = ConstBuffer(plain).subspan(2 + ulpdu_size, wire::fpdu_padding(ulpdu_size));
        for (std::byte octet : padding) ASSERT_EQ(octet, std::byte{0});
        position_ += size;
        read_segment(ConstBuffer(plain).subspan(2, ulpdu_size), padding.size());
    }

    void read_segment(ConstBuffer ulpdu, std::size_t padding) {
        auto segment = wire::decode_segment(ulpdu);
        ASSERT_TRUE(segment);
        auto payload = ulpdu.subspan(wire::segment_header_size(ulpdu.front()));
        segments_.push_back(payload.size());
        std::visit([&](const auto& header) { add(header, payload); }, *segment);
        bool last = std::visit([](const auto& header) { return header.last; }, *segment);
        if (last) {
            messages_.push_back(*std::exchange(unfinished_, std::nullopt));
        } else {
            EXPECT_EQ(padding, 0u) << "only a message's last segment needs padding";
            EXPECT_FALSE(payload.empty());
        }
    }

    void add(const wire::TaggedSegment& header, ConstBuffer payload) {
        ASSERT_TRUE(wire::is_tagged(header.opcode));
        auto offset = static_cast<std::uint64_t>(header.offset);
        if (!unfinished_) unfinished_ = WireMessage{header.opcode, header.steering_tag, offset, {}};
        EXPECT_EQ(header.opcode, unfinished_->opcode);
        EXPECT_EQ(header.steering_tag, unfinished_->tag);
        EXPECT_EQ(offset, unfinished_->offset + unfinished_->payload.size());
        append(payload);
    }

    void add(const wire::UntaggedSegment& header, ConstBuffer payload) {
        ASSERT_FALSE(wire::is_tagged(header.opcode));
        EXPECT_EQ(header.queue, wire::queue_of(header.opcode));
        auto terminate = wire::RdmapOpcode::terminate;
        if (unfinished_ && header.opcode == terminate && unfinished_->opcode != terminate)
            cut_off_ = std::exchange(unfinished_, std::nullopt);
        if (!unfinished_) {
            unfinished_ = WireMessage{header.opcode, header.invalidate, 0, {}};
            ++message_numbers_[header.queue];
        }
        EXPECT_EQ(header.message_number, message_numbers_[header.queue]);
        EXPECT_EQ(header.opcode, unfinished_->opcode);
        EXPECT_EQ(header.invalidate, unfinished_->tag);
        EXPECT_EQ(header.message_offset, unfinished_->payload.size());
        append(payload);
    }

    void append(ConstBuffer payload) {
        auto& all = unfinished_->payload;
        all.insert(all.end(), payload.begin(), payload.end());
    }

    ConstBuffer octets_;
    FpduStreamOptions options_;
    std::uint64_t position_ = 0;
    std::vector<WireMessage> messages_;
    std::optional<WireMessage> unfinished_, cut_off_;
    std::vector<std::size_t> segments_;
    std::map<wire::QueueNumber, std::uint32_t> message_numbers_;
};

}  // namespace weft::test
