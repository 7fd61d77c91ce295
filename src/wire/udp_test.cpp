// SPDX-License-Identifier: Apache-2.0
#include "wire/udp.hpp"

#include <gtest/gtest.h>

#include "support/packet.hpp"

namespace weft::wire {
namespace {

TEST(UdpHeader, ReadsAndWritesTheGoldenBytes) {
    test::Packet packet("udp");
    UdpHeader expected{
        .source = Port{7000}, .destination = Port{60830}, .length = 13, .checksum = 0x3e2a};
    auto datagram = split_udp_datagram(packet.upper.octets);
    ASSERT_TRUE(datagram);
    EXPECT_EQ(datagram->header, expected);
    EXPECT_EQ(text_of(datagram->data), "WEFT!");
    EXPECT_EQ(test::to_hex(encoded(expected)), test::to_hex(packet.upper.octets.first(8)));
}

TEST(UdpHeader, CarriesTheChecksumWeWouldWrite) {
    test::Packet packet("udp");
    auto header = *decode<UdpHeader>(packet.upper.octets);
    auto sent = std::exchange(header.checksum, std::uint16_t{0});
    auto checksum =
        checksum_over({packet.ip.source, packet.ip.destination, header.length, NextHeader::udp});
    checksum.add(encoded(header));
    checksum.add(packet.upper.octets.subspan(8));
    EXPECT_EQ(udp_checksum_field(checksum), sent);
}

TEST(UdpDatagram, RefusesEveryTruncation) {
    test::Packet packet("udp");
    for (std::size_t size = 0; size < packet.upper.octets.size(); ++size)
        EXPECT_EQ(split_udp_datagram(packet.upper.octets.first(size)).error().code,
                  Code::truncated);
}

TEST(UdpDatagram, EndsWhereItsLengthSays) {
    auto octets = test::from_hex("0001 0002 0009 ffff  aa bbcc");
    auto datagram = split_udp_datagram(octets);
    ASSERT_TRUE(datagram);
    EXPECT_EQ(test::to_hex(datagram->data), "aa");
    EXPECT_EQ(datagram->octets.size(), 9u);
}

TEST(UdpDatagram, RefusesAnImpossibleLengthAndAMissingChecksum) {
    EXPECT_EQ(split_udp_datagram(test::from_hex("0001 0002 0007 ffff")).error().code,
              Code::malformed);
    EXPECT_EQ(split_udp_datagram(test::from_hex("0001 0002 0008 0000")).error().code,
              Code::malformed);
}

TEST(UdpChecksumField, IsNeverZero) {
    InternetChecksum checksum;
    checksum.add(test::from_hex("ffff"));
    EXPECT_EQ(checksum.value(), 0);
    EXPECT_EQ(udp_checksum_field(checksum), 0xffff);
}

}  // namespace
}  // namespace weft::wire
