// SPDX-License-Identifier: Apache-2.0
#include "wire/neighbour_discovery.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/packet.hpp"

namespace weft::wire {
namespace {

constexpr std::size_t body_at = wire_size<Icmpv6Header>();

Ipv6Address address(const char* text) {
    return *Ipv6Address::from_text(text);
}

/// Expects type and body, hop limit 255, and the body written as it was read; gives the options.
template <class Body>
ConstBuffer expect_body(const test::Packet& packet, Icmpv6Type type, const Body& body) {
    EXPECT_EQ(packet.ip.hop_limit, neighbour_discovery_hop_limit);
    EXPECT_EQ(decode<Icmpv6Header>(packet.upper.octets)->type, type);
    auto octets = packet.upper.octets.subspan(body_at);
    EXPECT_EQ(*decode<Body>(octets), body);
    EXPECT_EQ(test::to_hex(encoded(body)), test::to_hex(octets.first(wire_size<Body>())));
    for (std::size_t size = 0; size < wire_size<Body>(); ++size)
        EXPECT_EQ(decode<Body>(octets.first(size)).error().code, Code::truncated);
    return octets.subspan(wire_size<Body>());
}

std::vector<NeighbourOption> all_options(ConstBuffer octets) {
    std::vector<NeighbourOption> all;
    NeighbourOptions options(octets);
    for (;;) {
        auto next = options.next();
        EXPECT_TRUE(next);
        if (!next || !*next) return all;
        all.push_back(**next);
    }
}

/// Expects the option to read as this, and this to be written as the option.
template <class Option>
void expect_option(const NeighbourOption& found, const Option& expected) {
    auto read = decode<Option>(found.octets);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, expected);
    EXPECT_EQ(test::to_hex(encoded(expected)), test::to_hex(found.octets));
}

TEST(RouterSolicitation, ReadsAndWritesTheGoldenBytes) {
    test::Packet packet("router-solicitation");
    EXPECT_EQ(packet.ip.destination, all_routers);
    auto options =
        all_options(expect_body(packet, Icmpv6Type::router_solicitation, RouterSolicitation{}));
    ASSERT_EQ(options.size(), 1u);
    EXPECT_EQ(options[0].type, NeighbourOptionType::source_link_address);
    expect_option(options[0], LinkAddressOption{.address = packet.ethernet.source});
}

TEST(RouterAdvertisement, ReadsAndWritesTheGoldenBytes) {
    test::Packet packet("router-advertisement");
    EXPECT_EQ(packet.ip.destination, all_nodes);
    auto options = all_options(expect_body(packet, Icmpv6Type::router_advertisement,
                                           RouterAdvertisement{.hop_limit = 64,
                                                               .other_configuration = true,
                                                               .lifetime_s = 12,
                                                               .reachable_ms = 30000}));
    ASSERT_EQ(options.size(), 3u);
    expect_option(options[0], PrefixInformation{.prefix_bits = 64,
                                                .on_link = true,
                                                .valid_s = 86400,
                                                .preferred_s = 14400,
                                                .prefix = address("fd00:a::")});
    expect_option(options[1], MtuOption{.mtu = 1500});
    expect_option(options[2], LinkAddressOption{.address = packet.ethernet.source});
}

TEST(NeighbourSolicitation, ReadsAndWritesTheGoldenBytes) {
    NeighbourSolicitation asked{.target = address("fd00:a::2")};
    test::Packet packet("neighbour-solicitation");
    auto options = all_options(expect_body(packet, Icmpv6Type::neighbour_solicitation, asked));
    ASSERT_EQ(options.size(), 1u);
    expect_option(options[0], LinkAddressOption{.address = packet.ethernet.source});
}

TEST(NeighbourSolicitation, DetectsDuplicatesFromNoAddress) {
    NeighbourSolicitation asked{.target = address("fd00:a::2")};
    test::Packet packet("neighbour-solicitation-detection");
    EXPECT_TRUE(packet.ip.source.is_unspecified());
    auto options = all_options(expect_body(packet, Icmpv6Type::neighbour_solicitation, asked));
    ASSERT_EQ(options.size(), 1u);
    EXPECT_EQ(options[0].type, NeighbourOptionType::nonce);
    EXPECT_EQ(options[0].octets.size(), 8u);
}

TEST(NeighbourAdvertisement, ReadsAndWritesTheGoldenBytes) {
    test::Packet packet("neighbour-advertisement");
    auto options = all_options(expect_body(packet, Icmpv6Type::neighbour_advertisement,
                                           NeighbourAdvertisement{.router = true,
                                                                  .solicited = true,
                                                                  .override_cache = true,
                                                                  .target = address("fd00:a::2")}));
    ASSERT_EQ(options.size(), 1u);
    expect_option(options[0], LinkAddressOption{.type = NeighbourOptionType::target_link_address,
                                                .address = packet.ethernet.source});
}

TEST(NeighbourOptions, RefuseALengthOfZero) {
    // RFC 4861, section 4.6: the whole packet must be ignored.
    auto octets = test::from_hex("01 00 010203040506");
    EXPECT_EQ(NeighbourOptions(octets).next().error().code, Code::malformed);
}

TEST(NeighbourOptions, RefuseEveryTruncation) {
    auto octets = test::from_hex("03 02 000000000000 0000000000000000");
    for (std::size_t size = 1; size < octets.size(); ++size)
        EXPECT_EQ(NeighbourOptions(std::span(octets).first(size)).next().error().code,
                  Code::truncated);
}

TEST(LinkAddressOption, RefusesAnotherLength) {
    auto octets = test::from_hex("01 02 010203040506 0000000000000000");
    EXPECT_EQ(decode<LinkAddressOption>(octets).error().code, Code::malformed);
}

}  // namespace
}  // namespace weft::wire
