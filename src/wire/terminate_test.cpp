// SPDX-License-Identifier: Apache-2.0
#include "wire/terminate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/header.hpp"

namespace weft::wire {
namespace {

using test::Bytes;
using test::from_hex;
using test::golden;
using test::to_hex;

constexpr auto standard = TerminateLayout::standard;
constexpr auto siw = TerminateLayout::siw;

Bytes written(const Terminate& terminate) {
    Bytes octets(terminate_limit);
    octets.resize(encode_terminate(terminate, octets));
    return octets;
}

TEST(TerminateControl, HasItsFieldsWhereFigure8PutsThem) {
    test::expect_header(from_hex("12 34 a0 00"), TerminateControl{.layer = TerminateLayer::ddp,
                                                                  .error_type = 2,
                                                                  .error_code = 0x34,
                                                                  .segment_size_valid = true,
                                                                  .read_request_included = true});
    test::expect_header(from_hex("20 02 40 00"), TerminateControl{.layer = TerminateLayer::mpa,
                                                                  .error_code = 2,
                                                                  .segment_header_included = true});
}

TEST(TerminateControl, IsNamedByTheErrorAlone) {
    EXPECT_EQ(to_hex(encoded(terminate_for(MpaError::checksum))), "20 02 00 00");
    EXPECT_EQ(to_hex(encoded(terminate_for(UntaggedBufferError::no_buffer))), "12 02 00 00");
    EXPECT_EQ(to_hex(encoded(terminate_for(TaggedBufferError::out_of_bounds))), "11 01 00 00");
    EXPECT_EQ(to_hex(encoded(terminate_for(RemoteOperationError::unexpected_opcode))),
              "02 06 00 00");
    EXPECT_EQ(to_hex(encoded(terminate_for(RemoteProtectionError::access_rights))), "01 02 00 00");
}

TEST(TerminateControl, MeansSomethingIfAnRfcSaysSo) {
    // Rows: layer, error type, the codes that mean something. RFC 5040 figure 9, RFC 5041 7.2,
    // RFC 5044 8 and RFC 6581 8.
    struct Row {
        unsigned layer, type;
        std::vector<unsigned> codes;
    };
    std::vector<unsigned> any(256);
    for (unsigned code = 0; code < 256; ++code) any[code] = code;
    const std::vector<Row> rows{{0, 0, any},
                                {0, 1, {0, 1, 2, 3, 4, 9, 0xff}},
                                {0, 2, {5, 6, 7, 8, 9, 0xff}},
                                {1, 0, {0}},
                                {1, 1, {0, 1, 2, 3, 4}},
                                {1, 2, {1, 2, 3, 4, 5, 6}},
                                {2, 0, {1, 2, 3, 4, 5, 6, 7}}};
    for (unsigned word = 0; word < 0x10000; ++word) {
        bool expected = false;
        for (const auto& row : rows)
            expected |= row.layer == word >> 12 && row.type == (word >> 8 & 15) &&
                        std::count(row.codes.begin(), row.codes.end(), word & 0xff) > 0;
        TerminateControl control{.layer = TerminateLayer(word >> 12),
                                 .error_type = static_cast<std::uint8_t>(word >> 8 & 15),
                                 .error_code = static_cast<std::uint8_t>(word)};
        EXPECT_EQ(has_meaning(control), expected) << std::hex << word;
    }
}

TEST(Terminate, OfSiwIsUnderstood) {
    auto octets = golden("iwarp/terminate_siw_invalid_tag.hex");
    ASSERT_EQ(guess_terminate_layout(octets), siw);
    auto terminate = decode_terminate(octets, siw);
    ASSERT_TRUE(terminate);
    auto expected = terminate_for(TaggedBufferError::invalid_steering_tag);
    expected.segment_size_valid = expected.segment_header_included = true;
    EXPECT_EQ(terminate->control, expected);
    EXPECT_EQ(terminate->segment_size, 8u);
    auto segment = decode_segment(terminate->segment_header);
    ASSERT_TRUE(segment);
    EXPECT_EQ(std::get<TaggedSegment>(*segment),
              (TaggedSegment{.last = true,
                             .opcode = RdmapOpcode::write,
                             .steering_tag = SteeringTag{0xdeadbe00},
                             .offset = TaggedOffset{0x1000}}));
    test::expect_header(ConstBuffer(octets), SiwTerminateControl{.control = expected});
    for (std::size_t size = 0; size < octets.size(); ++size)
        EXPECT_EQ(decode_terminate(ConstBuffer(octets).first(size), siw).error().code,
                  Code::truncated);
}

TEST(Terminate, OfSiwWithoutHeadersIsKnownWhereItCanBe) {
    auto checksum = golden("iwarp/terminate_siw_checksum.hex");
    EXPECT_EQ(guess_terminate_layout(checksum), siw);
    EXPECT_EQ(decode_terminate(checksum, siw)->control, terminate_for(MpaError::checksum));

    // This one means something either way, so the standard reading is taken.
    auto opcode = golden("iwarp/terminate_siw_opcode.hex");
    EXPECT_EQ(guess_terminate_layout(opcode), standard);
    EXPECT_EQ(decode_terminate(opcode, standard)->control,
              terminate_for(MpaError::insufficient_inbound_reads));
    EXPECT_EQ(decode_terminate(opcode, siw)->control,
              terminate_for(RemoteOperationError::unexpected_opcode));
}

TEST(Terminate, OfOursIsNeverTakenForSiws) {
    const auto check = [](TerminateControl control) {
        EXPECT_EQ(guess_terminate_layout(encoded(control)), standard) << to_text(control);
        for (auto flag :
             {&TerminateControl::segment_size_valid, &TerminateControl::segment_header_included,
              &TerminateControl::read_request_included}) {
            auto flagged = control;
            flagged.*flag = true;
            EXPECT_EQ(guess_terminate_layout(encoded(flagged)), standard) << to_text(flagged);
        }
    };
    for (unsigned code = 1; code <= 7; ++code) check(terminate_for(MpaError(code)));
    for (unsigned code = 0; code <= 4; ++code) check(terminate_for(TaggedBufferError(code)));
    for (unsigned code = 1; code <= 6; ++code) check(terminate_for(UntaggedBufferError(code)));
    for (unsigned code : {0, 1, 2, 3, 4, 9, 0xff})
        check(terminate_for(RemoteProtectionError(code)));
    for (unsigned code : {5, 6, 7, 8, 9, 0xff}) check(terminate_for(RemoteOperationError(code)));
}

TEST(Terminate, CarriesTheHeadersOfTheReadItRefuses) {
    const auto request = encoded(UntaggedSegment{.last = true,
                                                 .opcode = RdmapOpcode::read_request,
                                                 .queue = QueueNumber::read_request,
                                                 .message_number = 7});
    Terminate terminate{.control = terminate_for(RemoteProtectionError::out_of_bounds),
                        .segment_size = 46,
                        .segment_header = request,
                        .read_request = {.sink_tag = SteeringTag{1},
                                         .sink_offset = TaggedOffset{2},
                                         .size = 3,
                                         .source_tag = SteeringTag{4},
                                         .source_offset = TaggedOffset{5}}};
    terminate.control.segment_size_valid = true;
    terminate.control.segment_header_included = true;
    terminate.control.read_request_included = true;
    auto octets = written(terminate);
    EXPECT_EQ(to_hex(octets),
              to_hex(from_hex("0101e000 002e 4141 00000000 00000001 00000007 00000000"
                              "00000001 0000000000000002 00000003 00000004 0000000000000005")));
    EXPECT_EQ(octets.size(), terminate_limit);

    auto read = decode_terminate(octets, standard);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->control, terminate.control);
    EXPECT_EQ(read->segment_size, 46u);
    EXPECT_EQ(to_hex(read->segment_header), to_hex(request));
    EXPECT_EQ(read->read_request, terminate.read_request);
    for (std::size_t size = 0; size < octets.size(); ++size)
        EXPECT_EQ(decode_terminate(ConstBuffer(octets).first(size), standard).error().code,
                  Code::truncated);
}

TEST(Terminate, CarriesAHeaderThatCouldNotBeDecoded) {
    const auto broken = from_hex("c3 40 00000001 0000000000000000");  // DDP version 3
    Terminate terminate{.control = terminate_for(TaggedBufferError::invalid_version),
                        .segment_size = 14,
                        .segment_header = broken,
                        .read_request = {}};
    terminate.control.segment_header_included = true;
    auto octets = written(terminate);
    auto read = decode_terminate(octets, standard);
    ASSERT_TRUE(read);
    EXPECT_EQ(to_hex(read->segment_header), to_hex(broken));
    EXPECT_FALSE(decode_segment(broken));
}

TEST(Terminate, WithoutHeadersIsFourOctets) {
    EXPECT_EQ(to_hex(written({.control = terminate_for(MpaError::checksum),
                              .segment_header = {},
                              .read_request = {}})),
              "20 02 00 00");
}

}  // namespace
}  // namespace weft::wire
