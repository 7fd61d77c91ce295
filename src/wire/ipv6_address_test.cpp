// SPDX-License-Identifier: Apache-2.0
#include "wire/ipv6_address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "support/packet.hpp"

namespace weft::wire {
namespace {

Ipv6Address address(const char* text) {
    auto read = Ipv6Address::from_text(text);
    EXPECT_TRUE(read) << text;
    return read ? *read : Ipv6Address{};
}

/// What the C library thinks of a text.
std::optional<Ipv6Address> library_reads(const char* text) {
    Ipv6Address address;
    if (inet_pton(AF_INET6, text, address.octets.data()) != 1) return std::nullopt;
    return address;
}

std::string library_writes(const Ipv6Address& address) {
    char text[INET6_ADDRSTRLEN];
    return inet_ntop(AF_INET6, address.octets.data(), text, sizeof text);
}

TEST(Ipv6Address, IsReadFromAnyLegalText) {
    for (auto text : {"::", "::1", "1::", "fd00:a::2", "2001:db8:0:0:8:800:200c:417a", "FF01::101",
                      "::ffff:129.144.52.38", "::13.1.68.3", "1:2:3:4:5:6:7:8",
                      "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8",
                      "0001:0020:0300:4000:0005:0060:0700:8000", "1:2:3:4:5:6:1.2.3.4",
                      "64:ff9b::192.0.2.33", "fe80::584a:8aff:fef5:1f0c"}) {
        ASSERT_TRUE(library_reads(text)) << text;
        EXPECT_EQ(address(text), *library_reads(text)) << text;
    }
}

TEST(Ipv6Address, RefusesWhatIsNoAddress) {
    for (auto text : {"",
                      ":",
                      ":::",
                      "1",
                      "1:",
                      ":1",
                      "1:2:3:4:5:6:7",
                      "1:2:3:4:5:6:7:8:9",
                      "1::2::3",
                      "::1::",
                      "12345::",
                      "1:2:3:4:5:6:7:8::",
                      "g::",
                      "::1%eth0",
                      "::/0",
                      "[::1]",
                      "::1 ",
                      " ::1",
                      "1.2.3.4",
                      "::1.2.3",
                      "::1.2.3.4.5",
                      "::256.2.3.4",
                      "::1.2.3.4:5",
                      "1:2:3:4:5:6:7:1.2.3.4",
                      "::01.2.3.4",
                      "::-1",
                      "1:::2",
                      "::1.",
                      "::.1",
                      "1:2:3:4:5:6:7:"}) {
        EXPECT_FALSE(Ipv6Address::from_text(text)) << text;
        EXPECT_FALSE(library_reads(text)) << text;
    }
}

TEST(Ipv6Address, HasTheTextOfRfc5952) {
    EXPECT_EQ(address("2001:0DB8::0001").text(), "2001:db8::1");
    EXPECT_EQ(address("2001:db8:0:1:1:1:1:1").text(), "2001:db8:0:1:1:1:1:1");
    EXPECT_EQ(address("2001:db8:0:0:1:0:0:1").text(), "2001:db8::1:0:0:1");
    EXPECT_EQ(address("2001:0:0:1:0:0:0:1").text(), "2001:0:0:1::1");
    EXPECT_EQ(address("::ffff:192.0.2.1").text(), "::ffff:192.0.2.1");
    EXPECT_EQ(Ipv6Address{}.text(), "::");
}

TEST(Ipv6Address, IsWrittenAsTheLibraryWritesIt) {
    // Every pattern of zero and non-zero groups, but for 96 zero bits in front: there the library
    // still writes the IPv4-compatible form, which RFC 4291 took out of use.
    for (unsigned pattern = 4; pattern < 256; ++pattern) {
        Ipv6Address some;
        for (unsigned i = 0; i < 8; ++i)
            if (pattern >> i & 1) some.octets[15 - 2 * i] = static_cast<std::uint8_t>(i + 1);
        auto text = some.text();
        EXPECT_EQ(text, library_writes(some));
        EXPECT_EQ(address(text.c_str()), some);
    }
}

TEST(Ipv6Address, KnowsItsKind) {
    EXPECT_TRUE(address("::").is_unspecified());
    EXPECT_TRUE(address("::1").is_loopback());
    EXPECT_FALSE(address("::2").is_loopback());
    EXPECT_TRUE(address("febf::1").is_link_local());
    EXPECT_FALSE(address("fec0::1").is_link_local());
    EXPECT_TRUE(all_nodes.is_multicast());
    EXPECT_EQ(all_nodes.text(), "ff02::1");
    EXPECT_EQ(all_routers.text(), "ff02::2");
}

TEST(Ipv6Address, DerivesAddressesAsLinuxDoes) {
    test::Packet asked("neighbour-solicitation");
    EXPECT_EQ(address("fd00:a::2").solicited_node(), asked.ip.destination);
    EXPECT_EQ(asked.ip.destination.multicast_link(), asked.ethernet.destination);
    test::Packet from_link_local("router-solicitation");
    EXPECT_EQ(Ipv6Address::link_local(from_link_local.ethernet.source), from_link_local.ip.source);
}

TEST(Ipv6Address, ComparesPrefixesBitByBit) {
    auto here = address("fd00:a:0:8000::1");
    for (unsigned bits = 0; bits <= 128; ++bits) {
        EXPECT_EQ(here.shares_prefix(address("fd00:a:0:c000::1"), bits), bits <= 49) << bits;
        EXPECT_EQ(here.shares_prefix(address("fd00:a:0:8000::"), bits), bits <= 127) << bits;
        EXPECT_TRUE(here.shares_prefix(here, bits));
    }
}

}  // namespace
}  // namespace weft::wire
