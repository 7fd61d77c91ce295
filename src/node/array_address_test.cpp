// SPDX-License-Identifier: Apache-2.0
#include "node/array_address.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>

namespace weft::node {
namespace {

TEST(ArrayAddress, IsWhatTheSystemReads) {
    for (const char* text : {"::", "::1", "fe80::1:2", "1:2:3:4:5:6:7:8", "1::8", "2001:db8::",
                             "::ffff:10.1.2.3", "1:0:0:2:0:0:0:3", "64:ff9b::1.2.3.4", "0:1::"}) {
        in6_addr expected{};
        ASSERT_EQ(::inet_pton(AF_INET6, text, &expected), 1) << text;
        auto octets = network_address_of(text);
        ASSERT_TRUE(octets) << text;
        EXPECT_EQ(std::memcmp(octets->data(), &expected, 16), 0) << text;
        EXPECT_EQ(network_address_of(host_of(*octets)), octets) << host_of(*octets);
    }
}

TEST(ArrayAddress, WritesIpv4AsItIs) {
    for (const char* text : {"127.0.0.1", "0.0.0.0", "255.255.255.255", "10.0.42.7"}) {
        auto octets = network_address_of(text);
        ASSERT_TRUE(octets) << text;
        EXPECT_EQ(host_of(*octets), text);
    }
    EXPECT_EQ(host_of(*network_address_of("1:0:0:2:0:0:0:3")), "1:0:0:2::3");
    EXPECT_EQ(host_of(*network_address_of("::")), "::");
}

TEST(ArrayAddress, RefusesWhatIsNoNumber) {
    for (const char* text :
         {"", "elm", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-4", ":", ":::", "1:2",
          "12345::", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "g::", "1::2::3", "1:2:3:4:5:6:7:"})
        EXPECT_FALSE(network_address_of(text)) << text;
}

}  // namespace
}  // namespace weft::node
