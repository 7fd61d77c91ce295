// SPDX-License-Identifier: Apache-2.0
#include "wire/tcp.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/packet.hpp"

namespace weft::wire {
namespace {

TcpSegment segment_of(const test::Packet& packet) {
    EXPECT_EQ(packet.upper.protocol, NextHeader::tcp);
    auto segment = split_tcp_segment(packet.upper.octets);
    EXPECT_TRUE(segment);
    return segment ? *segment : TcpSegment{};
}

std::string written(const TcpOptions& options) {
    std::array<std::byte, tcp_options_max> octets{};
    auto size = write_tcp_options(options, octets);
    EXPECT_EQ(size % 4, 0u);
    return test::to_hex(std::span(octets).first(size));
}

TEST(TcpHeader, ReadsAndWritesTheGoldenBytes) {
    test::Packet packet("tcp-data");
    auto segment = segment_of(packet);
    TcpHeader expected = segment.header;
    EXPECT_EQ(expected.source, Port{34948});
    EXPECT_EQ(expected.destination, Port{7001});
    EXPECT_EQ(expected.sequence, 0x123b2f9du);
    EXPECT_EQ(expected.header_words, 8);
    EXPECT_TRUE(expected.acknowledges && expected.push);
    EXPECT_FALSE(expected.synchronise || expected.finish || expected.reset || expected.urgent);
    EXPECT_EQ(text_of(segment.data), "the warp");
    EXPECT_EQ(test::to_hex(encoded(expected)), test::to_hex(packet.upper.octets.first(20)));
}

TEST(TcpHeader, KnowsItsFlagsApart) {
    test::Packet syn("tcp-syn"), syn_ack("tcp-syn-ack"), fin("tcp-fin"), reset("tcp-reset");
    EXPECT_TRUE(segment_of(syn).header.synchronise);
    EXPECT_FALSE(segment_of(syn).header.acknowledges);
    EXPECT_TRUE(segment_of(syn_ack).header.synchronise);
    EXPECT_TRUE(segment_of(syn_ack).header.acknowledges);
    EXPECT_TRUE(segment_of(fin).header.finish);
    EXPECT_TRUE(segment_of(reset).header.reset);
    // RFC 3168, section 6.1: the two congestion bits stand left of the six old flags.
    EXPECT_EQ(encoded(TcpHeader{.window_reduced = true})[13], std::byte{0x80});
    EXPECT_EQ(encoded(TcpHeader{.congestion_echo = true})[13], std::byte{0x40});
    EXPECT_EQ(encoded(TcpHeader{.urgent = true})[13], std::byte{0x20});
}

TEST(TcpSegment, CarriesTheMpaFrameOfRping) {
    test::Packet packet("rping-send");
    EXPECT_EQ(test::to_hex(segment_of(packet).data.first(4)), "00 22 41 43");
    EXPECT_EQ(segment_of(packet).data.size(), 40u);
}

TEST(TcpSegment, RefusesEveryTruncationOfItsHeader) {
    test::Packet packet("tcp-syn");
    for (std::size_t size = 0; size < 40; ++size)
        EXPECT_EQ(split_tcp_segment(packet.upper.octets.first(size)).error().code, Code::truncated);
}

TEST(TcpSegment, RefusesAHeaderShorterThanItself) {
    auto octets = encoded(TcpHeader{.header_words = 4});
    EXPECT_EQ(split_tcp_segment(octets).error().code, Code::malformed);
}

TEST(TcpOptions, ReadAndWriteThoseOfASyn) {
    test::Packet packet("tcp-syn");
    auto octets = segment_of(packet).options;
    auto options = read_tcp_options(octets);
    ASSERT_TRUE(options);
    EXPECT_EQ(options->maximum_segment_size, 1440);
    EXPECT_EQ(options->window_scale, 10);
    EXPECT_TRUE(options->sack_permitted);
    EXPECT_EQ(options->timestamps, (TcpTimestamps{.value = 938713784, .echo = 0}));
    EXPECT_TRUE(options->sack.empty());
    EXPECT_EQ(written(*options), test::to_hex(octets));
}

TEST(TcpOptions, ReadAndWriteThoseOfAnAcknowledgement) {
    test::Packet packet("tcp-sack");
    auto octets = segment_of(packet).options;
    auto options = read_tcp_options(octets);
    ASSERT_TRUE(options);
    ASSERT_EQ(options->sack.size(), 2u);
    EXPECT_EQ(options->sack[0], (SackBlock{.begin = 0x601aad80, .end = 0x601aadb2}));
    EXPECT_EQ(options->sack[1], (SackBlock{.begin = 0x601aacb8, .end = 0x601aacea}));
    EXPECT_EQ(options->timestamps, (TcpTimestamps{.value = 289365768, .echo = 2641820281}));
    EXPECT_EQ(written(*options), test::to_hex(octets));
}

TEST(TcpOptions, WriteAnyCombinationThatReadsBack) {
    for (unsigned choice = 0; choice < 16; ++choice) {
        TcpOptions options;
        if (choice & 1) options.maximum_segment_size = 1440;
        if (choice & 2) options.window_scale = 7;
        options.sack_permitted = (choice & 4) != 0;
        if (choice & 8) options.timestamps = TcpTimestamps{.value = 1, .echo = 2};
        auto octets = test::from_hex(written(options));
        auto read = read_tcp_options(octets);
        ASSERT_TRUE(read) << choice;
        EXPECT_EQ(read->maximum_segment_size, options.maximum_segment_size);
        EXPECT_EQ(read->window_scale, options.window_scale);
        EXPECT_EQ(read->sack_permitted, options.sack_permitted);
        EXPECT_EQ(read->timestamps, options.timestamps);
    }
}

TEST(TcpOptions, LeaveOutBlocksThatDoNotFit) {
    TcpOptions options;
    for (std::uint32_t i = 0; i < sack_blocks_max; ++i)
        options.sack.push_back({.begin = 10 * i, .end = 10 * i + 5});
    EXPECT_EQ(read_tcp_options(test::from_hex(written(options)))->sack.size(), 4u);
    options.timestamps = TcpTimestamps{};
    auto read = read_tcp_options(test::from_hex(written(options)));
    ASSERT_EQ(read->sack.size(), 3u);
    EXPECT_EQ(read->sack[2], options.sack[2]);
}

TEST(TcpOptions, PassOverWhatTheyDoNotKnow) {
    // An experiment (253), a segment size of impossible length, then one that counts.
    auto read = read_tcp_options(test::from_hex("fd 04 0102  02 05 05a001  01  02 04 05b4"));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->maximum_segment_size, 1460);
}

TEST(TcpOptions, EndWhereTheListEnds) {
    auto read = read_tcp_options(test::from_hex("01 00 02 04 05b4"));
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->maximum_segment_size);
}

TEST(TcpOptions, TakeALargeWindowScaleAsFourteen) {
    EXPECT_EQ(read_tcp_options(test::from_hex("03 03 ff"))->window_scale, 14);
}

TEST(TcpOptions, RefuseLengthsThatLeadNowhere) {
    EXPECT_EQ(read_tcp_options(test::from_hex("02 00 0000")).error().code, Code::malformed);
    EXPECT_EQ(read_tcp_options(test::from_hex("02 01 0000")).error().code, Code::malformed);
    EXPECT_EQ(read_tcp_options(test::from_hex("02 05 0000")).error().code, Code::truncated);
    EXPECT_EQ(read_tcp_options(test::from_hex("01 01 01 08")).error().code, Code::truncated);
}

}  // namespace
}  // namespace weft::wire
