// SPDX-License-Identifier: Apache-2.0
#include "iwarp/segment_cutter.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/golden.hpp"

namespace weft::iwarp {
namespace {

using test::Bytes;
using test::to_hex;
using wire::RdmapOpcode;

/// Some memory in pieces, as one range.
class Memory {
public:
    explicit Memory(const std::vector<std::size_t>& sizes) {
        for (auto size : sizes) pieces_.emplace_back(memory_.emplace_back(size));
        std::size_t whole = 0;
        for (auto size : sizes) whole += size;
        source_ = {MemoryRange(pieces_, 0, whole), {}};
    }
    std::span<const Message::Source> payload() const { return {&source_, 1}; }
    const std::byte* piece(std::size_t i) const { return pieces_[i].data(); }

private:
    std::vector<Bytes> memory_;
    std::vector<Buffer> pieces_;
    Message::Source source_;
};

struct Cut {
    std::string header;
    SegmentPayload payload;
};
Cut cut(SegmentCutter& cutter) {
    std::array<std::byte, wire::segment_header_limit> header;
    Cut cut;
    auto size = cutter.cut(header, cut.payload);
    cut.header = to_hex(ConstBuffer(header).first(size));
    return cut;
}

TEST(SegmentCutter, AdvancesTheOffsetOfATaggedMessage) {
    Memory memory({100, 60});
    SegmentCutter cutter(14 + 80);
    EXPECT_TRUE(cutter.done());
    cutter.begin({.opcode = RdmapOpcode::write,
                  .tag = SteeringTag{0x11223344},
                  .offset = 0x00ff'ffff'ffff'fff0,
                  .payload = memory.payload()});
    EXPECT_FALSE(cutter.done());

    auto first = cut(cutter);
    EXPECT_EQ(first.header, "81 40 11 22 33 44 00 ff ff ff ff ff ff f0");
    ASSERT_EQ(first.payload.size(), 1u);
    EXPECT_EQ(first.payload[0].data(), memory.piece(0));
    EXPECT_EQ(first.payload[0].size(), 80u);
    EXPECT_FALSE(cutter.done());

    auto second = cut(cutter);
    EXPECT_EQ(second.header, "c1 40 11 22 33 44 01 00 00 00 00 00 00 40");
    ASSERT_EQ(second.payload.size(), 2u);
    EXPECT_EQ(second.payload[0].data(), memory.piece(0) + 80);
    EXPECT_EQ(second.payload[0].size(), 20u);
    EXPECT_EQ(second.payload[1].data(), memory.piece(1));
    EXPECT_EQ(second.payload[1].size(), 60u);
    EXPECT_TRUE(cutter.done());
}

TEST(SegmentCutter, RepeatsNumberAndTagInEverySegmentOfAnUntaggedMessage) {
    Memory memory({9});
    SegmentCutter cutter(18 + 4);
    Message message{.opcode = RdmapOpcode::send_invalidate,
                    .tag = SteeringTag{0x55667788},
                    .payload = memory.payload()};
    cutter.begin(message);
    EXPECT_EQ(cut(cutter).header, "01 44 55 66 77 88 00 00 00 00 00 00 00 01 00 00 00 00");
    EXPECT_EQ(cut(cutter).header, "01 44 55 66 77 88 00 00 00 00 00 00 00 01 00 00 00 04");
    EXPECT_EQ(cut(cutter).header, "41 44 55 66 77 88 00 00 00 00 00 00 00 01 00 00 00 08");
    EXPECT_TRUE(cutter.done());

    message.opcode = RdmapOpcode::send;
    cutter.begin(message);
    EXPECT_EQ(cut(cutter).header, "01 43 00 00 00 00 00 00 00 00 00 00 00 02 00 00 00 00")
        << "a plain Send names no tag, whatever the message says";
    cutter.abandon();
    EXPECT_TRUE(cutter.done());
    cutter.begin({.opcode = RdmapOpcode::atomic_response});
    EXPECT_EQ(cut(cutter).header, "41 4b 00 00 00 00 00 00 00 03 00 00 00 01 00 00 00 00");
}

TEST(SegmentCutter, MakesOneSegmentOfAnEmptyMessage) {
    SegmentCutter cutter(128);
    cutter.begin({.opcode = RdmapOpcode::read_response, .tag = SteeringTag{1}, .offset = 2});
    auto only = cut(cutter);
    EXPECT_EQ(only.header, "c1 42 00 00 00 01 00 00 00 00 00 00 00 02");
    EXPECT_TRUE(only.payload.empty());
    EXPECT_TRUE(cutter.done());
}

TEST(SegmentCutter, NeedsNoPaddingBeforeTheLastSegment) {
    for (std::size_t room = 4; room < 12; ++room) {
        Memory memory({1, 1, 1, 2, 1, 7, 1, 1, 3, 40});
        SegmentCutter cutter(18 + room);
        cutter.begin({.opcode = RdmapOpcode::send, .payload = memory.payload()});
        std::size_t all = 0;
        while (!cutter.done()) {
            std::size_t size = 0;
            for (ConstBuffer piece : cut(cutter).payload) size += piece.size();
            EXPECT_LE(size, room);
            if (!cutter.done()) {
                EXPECT_EQ(size, room / 4 * 4);
            }
            all += size;
        }
        EXPECT_EQ(all, 58u);
    }
}

}  // namespace
}  // namespace weft::iwarp
