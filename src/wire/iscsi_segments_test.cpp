// SPDX-License-Identifier: Apache-2.0
#include "wire/iscsi_segments.hpp"

#include <gtest/gtest.h>

#include "support/header.hpp"

namespace weft::wire {
namespace {

using test::from_hex;
using test::golden;
using test::to_hex;

test::Bytes additional_headers() {
    auto pdu = golden("iscsi/scsi_command_bidirectional.hex");
    return test::Bytes(pdu.begin() + basic_header_size, pdu.end());
}

TEST(AdditionalHeaders, AreTakenApartInOrder) {
    auto octets = additional_headers();
    AdditionalHeaders headers(octets);
    auto first = headers.next();
    ASSERT_TRUE(first && *first);
    auto spillover = extended_command_block(**first);
    ASSERT_TRUE(spillover);
    EXPECT_EQ(to_hex(*spillover), "a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 aa ab ac ad ae af");

    auto second = headers.next();
    ASSERT_TRUE(second && *second);
    EXPECT_EQ((*second)->type, AdditionalHeaderType::bidirectional_read_length);
    test::expect_header((*second)->whole,
                        BidirectionalReadLength{.expected_transfer_length = 0x12345});
    EXPECT_FALSE(extended_command_block(**second)) << "it is of another type";

    auto end = headers.next();
    ASSERT_TRUE(end);
    EXPECT_FALSE(end->has_value());
}

TEST(AdditionalHeaders, AreRefusedAtEveryTruncation) {
    auto octets = additional_headers();
    const std::size_t first_size = 20;
    for (std::size_t size = 1; size < octets.size(); ++size) {
        if (size == first_size) continue;  // a whole header, and none behind it
        AdditionalHeaders headers(ConstBuffer(octets).first(size));
        auto header = headers.next();
        if (size > first_size) {
            ASSERT_TRUE(header) << size;
            header = headers.next();
        }
        ASSERT_FALSE(header) << size;
        EXPECT_EQ(header.error().code, Code::truncated);
        EXPECT_FALSE(headers.next()) << "the error repeats";
    }
}

TEST(AdditionalHeaders, AreRefusedIfOneIsEmpty) {
    EXPECT_EQ(AdditionalHeaders(from_hex("0000 01 00")).next().error().code, Code::malformed);
}

TEST(ExtendedCommandBlock, IsRefusedIfItAddsNothingOrTooMuch) {
    auto octets = from_hex("0001 01 00");
    auto header = AdditionalHeaders(octets).next();
    ASSERT_TRUE(header && *header);
    EXPECT_EQ(extended_command_block(**header).error().code, Code::malformed);

    test::Bytes large(3 + 246 + 3);
    large[1] = std::byte{246};
    large[2] = std::byte{1};
    header = AdditionalHeaders(large).next();
    ASSERT_TRUE(header && *header);
    EXPECT_EQ(extended_command_block(**header).error().code, Code::malformed);
}

TEST(ExtendedCommandBlock, IsWrittenAsLinuxLaysItOut) {
    auto expected = additional_headers();
    expected.resize(20);
    test::Bytes octets(20, std::byte{0xee});
    auto size = write_extended_command_block(std::span(expected).subspan(4), octets);
    ASSERT_TRUE(size);
    EXPECT_EQ(*size, extended_command_block_size(32));
    EXPECT_EQ(to_hex(octets), to_hex(expected));
}

TEST(ExtendedCommandBlock, IsPaddedWithZeroes) {
    test::Bytes octets(8, std::byte{0xee});
    auto size = write_extended_command_block(from_hex("a0 a1"), octets);
    ASSERT_TRUE(size);
    EXPECT_EQ(*size, 8u);
    EXPECT_EQ(to_hex(octets), "00 03 01 00 a0 a1 00 00");
    EXPECT_EQ(extended_command_block_size(16), 0u) << "it fits the basic header";
}

TEST(ExtendedCommandBlock, IsNotWrittenIfItCannotBe) {
    test::Bytes octets(300);
    EXPECT_EQ(write_extended_command_block({}, octets).error().code, Code::out_of_range);
    EXPECT_EQ(write_extended_command_block(test::Bytes(245), octets).error().code,
              Code::out_of_range);
    EXPECT_TRUE(write_extended_command_block(test::Bytes(244), octets));
    EXPECT_EQ(
        write_extended_command_block(test::Bytes(16), std::span(octets).first(19)).error().code,
        Code::exhausted);
}

TEST(SenseSegment, HoldsSenseAndWhatFollows) {
    auto pdu = golden("iscsi/scsi_response_sense.hex");
    auto segment = split_sense_segment(ConstBuffer(pdu).subspan(basic_header_size));
    ASSERT_TRUE(segment);
    EXPECT_EQ(segment->sense.size(), 18u);
    EXPECT_TRUE(segment->rest.empty());

    auto with_response_data = from_hex("0001 70 aabb");
    segment = split_sense_segment(with_response_data);
    ASSERT_TRUE(segment);
    EXPECT_EQ(to_hex(segment->sense), "70");
    EXPECT_EQ(to_hex(segment->rest), "aa bb");
}

TEST(SenseSegment, MayBeEmpty) {
    auto segment = split_sense_segment({});
    ASSERT_TRUE(segment);
    EXPECT_TRUE(segment->sense.empty() && segment->rest.empty());
}

TEST(SenseSegment, IsRefusedAtEveryTruncation) {
    auto pdu = golden("iscsi/scsi_response_sense.hex");
    auto whole = ConstBuffer(pdu).subspan(basic_header_size);
    for (std::size_t size = 1; size < whole.size(); ++size)
        EXPECT_EQ(split_sense_segment(whole.first(size)).error().code, Code::truncated);
}

TEST(SenseSegment, IsWrittenAsItWasRead) {
    auto pdu = golden("iscsi/scsi_response_sense.hex");
    auto whole = ConstBuffer(pdu).subspan(basic_header_size);
    test::Bytes octets(whole.size());
    auto size = write_sense_segment(whole.subspan(2), octets);
    ASSERT_TRUE(size);
    EXPECT_EQ(*size, whole.size());
    EXPECT_EQ(to_hex(octets), to_hex(whole));
    octets.pop_back();
    EXPECT_EQ(write_sense_segment(whole.subspan(2), octets).error().code, Code::exhausted);
    EXPECT_EQ(write_sense_segment(test::Bytes(0x10000), octets).error().code, Code::out_of_range);
}

}  // namespace
}  // namespace weft::wire
