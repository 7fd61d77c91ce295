// SPDX-License-Identifier: Apache-2.0
#include "wire/icmpv6.hpp"

#include <gtest/gtest.h>

#include "support/packet.hpp"

namespace weft::wire {
namespace {

constexpr std::size_t body_at = wire_size<Icmpv6Header>();

/// Expects the packet to begin with these, and them to be written as they were read.
template <class Body>
void expect_message(const test::Packet& packet, const Icmpv6Header& header, const Body& body) {
    ASSERT_EQ(packet.upper.protocol, NextHeader::icmpv6);
    auto octets = packet.upper.octets;
    EXPECT_EQ(*decode<Icmpv6Header>(octets), header);
    EXPECT_EQ(*decode<Body>(octets.subspan(body_at)), body);
    auto written = test::join({encoded(header), encoded(body)});
    EXPECT_EQ(test::to_hex(written), test::to_hex(octets.first(written.size())));
    for (std::size_t size = 0; size < wire_size<Body>(); ++size)
        EXPECT_EQ(decode<Body>(octets.subspan(body_at, size)).error().code, Code::truncated);
}

TEST(Echo, ReadsAndWritesTheGoldenBytes) {
    Echo echo{.identifier = 0x1234, .sequence = 7};
    test::Packet request("echo-request"), reply("echo-reply");
    expect_message(request, {.type = Icmpv6Type::echo_request, .checksum = 0x9e7c}, echo);
    expect_message(reply, {.type = Icmpv6Type::echo_reply, .checksum = 0x9d7c}, echo);
    EXPECT_EQ(text_of(reply.upper.octets.subspan(8)), "the warp and the weft");
}

TEST(DestinationUnreachable, QuotesThePacketItIsAbout) {
    test::Packet packet("port-unreachable");
    expect_message(packet,
                   {.type = Icmpv6Type::destination_unreachable,
                    .code = static_cast<std::uint8_t>(UnreachableCode::port),
                    .checksum = 0xfa26},
                   UnusedWord{});
    auto quoted = decode<Ipv6Header>(packet.upper.octets.subspan(8));
    ASSERT_TRUE(quoted);
    EXPECT_EQ(quoted->source, packet.ip.destination);
    EXPECT_EQ(quoted->next_header, NextHeader::udp);
    test::Packet lost("no-route");
    EXPECT_EQ(decode<Icmpv6Header>(lost.upper.octets)->code,
              static_cast<std::uint8_t>(UnreachableCode::no_route));
}

TEST(PacketTooBig, SaysWhatTheNextLinkCarries) {
    test::Packet packet("packet-too-big");
    expect_message(packet, {.type = Icmpv6Type::packet_too_big, .checksum = 0x0ead},
                   PacketTooBig{.mtu = ipv6_minimum_mtu});
    EXPECT_EQ(packet.frame.size(), wire_size<EthernetHeader>() + ipv6_minimum_mtu);
}

TEST(TimeExceeded, ReadsAndWritesTheGoldenBytes) {
    test::Packet packet("time-exceeded");
    auto header = *decode<Icmpv6Header>(packet.upper.octets);
    EXPECT_EQ(header.type, Icmpv6Type::time_exceeded);
    expect_message(packet, header, UnusedWord{});
}

TEST(ParameterProblem, PointsAtAnOctet) {
    // RFC 4443, section 3.4.
    EXPECT_EQ(test::to_hex(encoded(ParameterProblem{.pointer = 40})), "00 00 00 28");
    EXPECT_EQ(decode<ParameterProblem>(test::from_hex("00000028"))->pointer, 40u);
}

TEST(Icmpv6Type, TellsErrorsFromInformation) {
    EXPECT_TRUE(is_error(Icmpv6Type::packet_too_big));
    EXPECT_FALSE(is_error(Icmpv6Type::echo_request));
    EXPECT_FALSE(is_error(Icmpv6Type::neighbour_solicitation));
}

}  // namespace
}  // namespace weft::wire
