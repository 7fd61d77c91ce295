// SPDX-License-Identifier: Apache-2.0
#include "wire/ipv6.hpp"

#include <gtest/gtest.h>

#include "support/packet.hpp"

namespace weft::wire {
namespace {

constexpr std::size_t ip_at = wire_size<EthernetHeader>();
constexpr std::size_t payload_at = ip_at + wire_size<Ipv6Header>();

TEST(Ipv6Header, ReadsAndWritesTheGoldenBytes) {
    test::Packet packet("tcp-sack");
    Ipv6Header expected{.flow_label = 0xe1c57,
                        .payload_length = 52,
                        .next_header = NextHeader::tcp,
                        .hop_limit = 64,
                        .source = *Ipv6Address::from_text("fd00:a::2"),
                        .destination = *Ipv6Address::from_text("fd00:a::1")};
    EXPECT_EQ(packet.ip, expected);
    EXPECT_EQ(test::to_hex(encoded(expected)),
              test::to_hex(std::span(packet.frame).subspan(ip_at, 40)));
}

TEST(Ipv6Header, RefusesEveryTruncationAndOtherVersions) {
    auto octets = encoded(Ipv6Header{.payload_length = 1});
    for (std::size_t size = 0; size < octets.size(); ++size)
        EXPECT_EQ(decode<Ipv6Header>(std::span(octets).first(size)).error().code, Code::truncated);
    octets[0] = std::byte{0x45};
    EXPECT_EQ(decode<Ipv6Header>(octets).error().code, Code::malformed);
}

TEST(FragmentHeader, ReadsAndWritesTheGoldenBytes) {
    test::Packet packet("fragment");
    FragmentHeader expected{.next_header = NextHeader::udp,
                            .offset_units = 154,
                            .more = false,
                            .identification = 0xed05431d};
    ASSERT_TRUE(packet.upper.fragment);
    EXPECT_EQ(*packet.upper.fragment, expected);
    EXPECT_EQ(packet.upper.fragment->offset(), 1232u);
    EXPECT_EQ(packet.upper.protocol, NextHeader::udp);
    EXPECT_EQ(packet.upper.octets.size(), 176u);
    EXPECT_EQ(test::to_hex(encoded(expected)),
              test::to_hex(std::span(packet.frame).subspan(payload_at, 8)));
}

TEST(PseudoHeader, IsLaidOutAsRfc8200Draws) {
    PseudoHeader pseudo{.source = all_nodes,
                        .destination = all_routers,
                        .upper_layer_length = 0x01020304,
                        .next_header = NextHeader::icmpv6};
    EXPECT_EQ(test::to_hex(encoded(pseudo)),
              "ff 02 00 00 00 00 00 00 00 00 00 00 00 00 00 01 "
              "ff 02 00 00 00 00 00 00 00 00 00 00 00 00 00 02 01 02 03 04 00 00 00 3a");
}

TEST(FindUpperLayer, LooksPastHopByHopOptions) {
    test::Packet packet("multicast-report");
    EXPECT_EQ(packet.ip.next_header, NextHeader::hop_by_hop);
    EXPECT_EQ(packet.upper.protocol, NextHeader::icmpv6);
    EXPECT_EQ(packet.upper.octets.data(), packet.frame.data() + payload_at + 8);
    EXPECT_FALSE(packet.upper.fragment);
}

TEST(FindUpperLayer, LooksPastAFragmentHeaderOfAWholePacket) {
    auto octets = test::from_hex("11 00 0000 00000001  0102");
    auto found = find_upper_layer(NextHeader::fragment, octets);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->protocol, NextHeader::udp);
    EXPECT_EQ(found->octets.size(), 2u);
    EXPECT_FALSE(found->fragment);
}

TEST(FindUpperLayer, LooksPastLongAndChainedHeaders) {
    auto octets = test::from_hex(
        "2b 01 00000000 0000000000000000 0000  3c 00 000000000000"
        "06 00 000000000000  aa");
    auto found = find_upper_layer(NextHeader::hop_by_hop, octets);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->protocol, NextHeader::tcp);
    EXPECT_EQ(test::to_hex(found->octets), "aa");
    for (std::size_t size = 0; size + 1 < octets.size(); ++size) {
        auto cut = find_upper_layer(NextHeader::hop_by_hop, std::span(octets).first(size));
        EXPECT_EQ(cut.error().code, Code::truncated) << size;
    }
}

TEST(FindUpperLayer, RefusesHopByHopOptionsFurtherBack) {
    auto octets = test::from_hex("00 00 000000000000  06 00 000000000000");
    auto found = find_upper_layer(NextHeader::destination_options, octets);
    EXPECT_EQ(found.error().code, Code::malformed);
}

TEST(FindUpperLayer, RefusesAnEndlessChain) {
    test::Bytes octets;
    for (int i = 0; i < 100; ++i) {
        auto header = test::from_hex("3c 00 000000000000");
        octets.insert(octets.end(), header.begin(), header.end());
    }
    auto found = find_upper_layer(NextHeader::destination_options, octets);
    EXPECT_EQ(found.error().code, Code::malformed);
}

}  // namespace
}  // namespace weft::wire
