// SPDX-License-Identifier: Apache-2.0
// No capture of RFC 7306's messages is at hand: their octets below are its figures, filled in by
// hand, and tests/interop/tshark_iwarp_test.cpp has them read by someone else.
#include "wire/rdmap.hpp"

#include <gtest/gtest.h>

#include "support/header.hpp"

namespace weft::wire {
namespace {

using test::from_hex;
using test::golden;

TEST(ReadRequest, IsReadAndWrittenAsSiwWritesIt) {
    auto fpdu = golden("iwarp/read_request.hex");
    ASSERT_EQ(fpdu.size(), 2 + wire_size<UntaggedSegment>() + wire_size<ReadRequest>() + 4);
    test::expect_header(ConstBuffer(fpdu).subspan(2 + wire_size<UntaggedSegment>()),
                        ReadRequest{.sink_tag = SteeringTag{0xe6e6bf00},
                                    .sink_offset = TaggedOffset{0x563fc3701bf0},
                                    .size = 128,
                                    .source_tag = SteeringTag{0x4f141900},
                                    .source_offset = TaggedOffset{0x5613bcc11750}});
}

TEST(ImmediateData, KeepsItsOctetsInOrder) {
    test::expect_header(from_hex("01 02 03 04 05 06 07 08"),
                        ImmediateData{.octets = {1, 2, 3, 4, 5, 6, 7, 8}});
}

TEST(AtomicRequest, HasTheFieldsOfFigure4) {
    test::expect_header(from_hex("00000002 0a0b0c0d 11223344 00007f0000001008"
                                 "0101010101010101 0202020202020202"
                                 "0303030303030303 0404040404040404"),
                        AtomicRequest{.operation = AtomicOperation::compare_swap,
                                      .request_identifier = 0x0a0b0c0d,
                                      .remote_tag = SteeringTag{0x11223344},
                                      .remote_offset = TaggedOffset{0x7f0000001008},
                                      .add_or_swap = 0x0101010101010101,
                                      .add_or_swap_mask = 0x0202020202020202,
                                      .compare = 0x0303030303030303,
                                      .compare_mask = 0x0404040404040404});
}

TEST(AtomicRequest, ToAddSendsWhatTheRfcAsksInTheFieldsItDoesNotUse) {
    auto octets = encoded(AtomicRequest{.operation = AtomicOperation::fetch_add, .add_or_swap = 1});
    EXPECT_EQ(test::to_hex(ConstBuffer(octets).last(16)),
              "00 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff");
}

TEST(AtomicResponse, HasTheFieldsOfFigure6) {
    test::expect_header(
        from_hex("0a0b0c0d 8877665544332211"),
        AtomicResponse{.request_identifier = 0x0a0b0c0d, .original_value = 0x8877665544332211});
}

}  // namespace
}  // namespace weft::wire
