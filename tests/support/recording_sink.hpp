// SPDX-License-Identifier: Apache-2.0
// A SegmentSink without rules: tagged payload goes where its offset says, untagged where its
// message offset says, in one memory that lies in pieces. It keeps what it was told, and holds the
// receiver to the order of calls.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "iwarp/segment_sink.hpp"
#include "support/golden.hpp"

namespace weft::test {

class RecordingSink final : public iwarp::SegmentSink {
public:
    explicit RecordingSink(std::size_t piece_size) : piece_size_(piece_size) {}

    Bytes memory = Bytes(80'000, std::byte{0xee});
    std::vector<std::string> events;
    int not_yet = 0;               ///< so many times begin() is not ready
    bool memory_is_gone = false;   ///< from now on
    std::optional<Error> refusal;  ///< of the next segment's end
    std::function<void()> at_end = [] {};

    Result<iwarp::Readiness> begin(const iwarp::InboundSegment& segment) override {
        EXPECT_FALSE(amid_) << "a segment began amid another";
        std::string name = not_yet > 0 ? "not yet " : "begin ";
        events.push_back(name + to_hex(segment.header_octets) + " " +
                         std::to_string(segment.ulpdu_size));
        EXPECT_EQ(segment.ulpdu_size, segment.header_octets.size() + segment.payload_size);
        if (not_yet > 0) return --not_yet, iwarp::Readiness::not_yet;
        amid_ = true;
        left_ = segment.payload_size;
        if (auto* tagged = std::get_if<wire::TaggedSegment>(&segment.header))
            at_ = static_cast<std::size_t>(tagged->offset);
        else
            at_ = std::get<wire::UntaggedSegment>(segment.header).message_offset;
        return iwarp::Readiness::ready;
    }
    Buffer place() override {
        if (memory_is_gone) return {};
        auto to_piece_end = piece_size_ - at_ % piece_size_;
        return Buffer(memory).subspan(at_, std::min(to_piece_end, memory.size() - at_));
    }
    Error memory_gone() override { return {.code = Code::access_denied}; }
    void placed(std::size_t count) override {
        EXPECT_TRUE(amid_);
        ASSERT_LE(count, left_);
        at_ += count;
        left_ -= count;
    }
    Result<void> end(const iwarp::InboundSegment& segment) override {
        EXPECT_TRUE(amid_);
        EXPECT_EQ(left_, 0u);
        amid_ = false;
        events.push_back("end " + to_hex(segment.header_octets));
        at_end();
        if (refusal) return *refusal;
        return {};
    }

private:
    std::size_t piece_size_;
    std::size_t at_ = 0;
    std::size_t left_ = 0;
    bool amid_ = false;
};

}  // namespace weft::test
