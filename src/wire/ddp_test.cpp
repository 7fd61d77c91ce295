// SPDX-License-Identifier: Apache-2.0
#include "wire/ddp.hpp"

#include <gtest/gtest.h>

#include "support/header.hpp"

namespace weft::wire {
namespace {

using test::Bytes;
using test::from_hex;
using test::golden;

/// What an FPDU of a golden file holds, from its segment header on.
Bytes segment_of(const char* name) {
    auto fpdu = golden(name);
    return fpdu.size() < 2 ? Bytes{} : Bytes(fpdu.begin() + 2, fpdu.end());
}

TEST(TaggedSegment, IsReadAndWrittenAsSiwWritesIt) {
    test::expect_header(segment_of("iwarp/write_ready.hex"),
                        TaggedSegment{.last = true,
                                      .opcode = RdmapOpcode::write,
                                      .steering_tag = SteeringTag{1},
                                      .offset = TaggedOffset{0}});
    test::expect_header(segment_of("iwarp/read_response.hex"),
                        TaggedSegment{.last = true,
                                      .opcode = RdmapOpcode::read_response,
                                      .steering_tag = SteeringTag{0xe6e6bf00},
                                      .offset = TaggedOffset{0x563fc3701bf0}});
}

TEST(TaggedSegment, NeedNotBeTheLastOfItsMessage) {
    test::expect_header(from_hex("81 40 0000 0001 0000 0000 0000 1000"),
                        TaggedSegment{.last = false,
                                      .opcode = RdmapOpcode::write,
                                      .steering_tag = SteeringTag{1},
                                      .offset = TaggedOffset{0x1000}});
}

TEST(UntaggedSegment, IsReadAndWrittenAsSiwWritesIt) {
    test::expect_header(segment_of("iwarp/send.hex"), UntaggedSegment{.last = true,
                                                                      .opcode = RdmapOpcode::send,
                                                                      .queue = QueueNumber::send,
                                                                      .message_number = 1});
    test::expect_header(segment_of("iwarp/read_request.hex"),
                        UntaggedSegment{.last = true,
                                        .opcode = RdmapOpcode::read_request,
                                        .queue = QueueNumber::read_request,
                                        .message_number = 1});
    test::expect_header(segment_of("iwarp/send_invalidate.hex"),
                        UntaggedSegment{.last = true,
                                        .opcode = RdmapOpcode::send_invalidate,
                                        .invalidate = SteeringTag{0x19e4d301},
                                        .queue = QueueNumber::send,
                                        .message_number = 2});
}

TEST(UntaggedSegment, IsWrittenAsTheRfcWritesIt) {
    auto fpdu = golden("iwarp/fpdu_rfc5044_figure5.hex");
    test::expect_header(
        ConstBuffer(fpdu).subspan(6),
        UntaggedSegment{.last = true, .opcode = RdmapOpcode::send, .message_number = 1});
}

TEST(Segment, SaysWhichVersionIsWrong) {
    auto send = segment_of("iwarp/send.hex");
    auto write = segment_of("iwarp/write_ready.hex");
    for (unsigned version : {0u, 2u, 3u}) {
        for (auto octets : {send, write}) {
            octets[0] = (octets[0] & std::byte{0xfc}) | static_cast<std::byte>(version);
            EXPECT_EQ(decode_segment(octets).error(), (Error{.code = Code::malformed, .where = 0}));
        }
        for (auto octets : {send, write}) {
            octets[1] = (octets[1] & std::byte{0x3f}) | static_cast<std::byte>(version << 6);
            EXPECT_EQ(decode_segment(octets).error(), (Error{.code = Code::malformed, .where = 1}));
        }
    }
}

TEST(Segment, IgnoresReservedBits) {
    auto send = segment_of("iwarp/send.hex");
    auto clean = decode_segment(send);
    send[0] |= std::byte{0x3c};
    send[1] |= std::byte{0x30};
    auto dirty = decode_segment(send);
    ASSERT_TRUE(clean);
    ASSERT_TRUE(dirty);
    EXPECT_EQ(*clean, *dirty);
}

TEST(Segment, IsTaggedOrNotByItsFirstBit) {
    auto tagged = decode_segment(segment_of("iwarp/write_ready.hex"));
    ASSERT_TRUE(tagged);
    EXPECT_TRUE(std::holds_alternative<TaggedSegment>(*tagged));
    auto untagged = decode_segment(segment_of("iwarp/send.hex"));
    ASSERT_TRUE(untagged);
    EXPECT_TRUE(std::holds_alternative<UntaggedSegment>(*untagged));
    // Either decoder alone refuses the other's header.
    EXPECT_FALSE(decode<TaggedSegment>(segment_of("iwarp/send.hex")));
    EXPECT_FALSE(decode<UntaggedSegment>(segment_of("iwarp/read_response.hex")));

    for (const char* name : {"iwarp/write_ready.hex", "iwarp/send.hex"}) {
        auto octets = segment_of(name);
        auto size = segment_header_size(octets[0]);
        for (std::size_t shorter = 0; shorter < size; ++shorter)
            EXPECT_EQ(decode_segment(ConstBuffer(octets).first(shorter)).error().code,
                      Code::truncated);
    }
}

TEST(RdmapOpcode, IsBoundToOneKindOfSegmentAndOneQueue) {
    using enum RdmapOpcode;
    for (auto opcode : {write, read_response}) EXPECT_TRUE(is_tagged(opcode));
    for (auto opcode : {send, send_invalidate, send_solicited, send_solicited_invalidate,
                        immediate_data, immediate_data_solicited}) {
        EXPECT_FALSE(is_tagged(opcode));
        EXPECT_EQ(queue_of(opcode), QueueNumber::send);
    }
    for (auto opcode : {read_request, atomic_request}) {
        EXPECT_FALSE(is_tagged(opcode));
        EXPECT_EQ(queue_of(opcode), QueueNumber::read_request);
    }
    EXPECT_EQ(queue_of(terminate), QueueNumber::terminate);
    EXPECT_EQ(queue_of(atomic_response), QueueNumber::atomic_response);
    EXPECT_TRUE(invalidates(send_invalidate) && invalidates(send_solicited_invalidate));
    EXPECT_FALSE(invalidates(send) || invalidates(send_solicited));
    EXPECT_TRUE(solicits_event(send_solicited) && solicits_event(send_solicited_invalidate) &&
                solicits_event(immediate_data_solicited));
    EXPECT_FALSE(solicits_event(send) || solicits_event(immediate_data));
    EXPECT_TRUE(is_assigned(atomic_response));
    EXPECT_FALSE(is_assigned(RdmapOpcode{0xc}));
}

}  // namespace
}  // namespace weft::wire
