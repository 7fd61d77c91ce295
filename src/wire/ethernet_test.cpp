// SPDX-License-Identifier: Apache-2.0
#include "wire/ethernet.hpp"

#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace weft::wire {
namespace {

const EthernetHeader solicitation{
    .destination = {{0x33, 0x33, 0xff, 0, 0, 2}},
    .source = {{0x42, 0xdf, 0x13, 0x49, 0xb3, 0x46}},
    .type = EtherType::ipv6,
};

TEST(EthernetHeader, ReadsAndWritesTheGoldenBytes) {
    auto frame = test::golden("net/neighbour-solicitation.hex");
    EXPECT_EQ(*decode<EthernetHeader>(frame), solicitation);
    EXPECT_EQ(test::to_hex(encoded(solicitation)), test::to_hex(std::span(frame).first(14)));
    EXPECT_TRUE(solicitation.destination.is_multicast());
    EXPECT_FALSE(solicitation.source.is_multicast());
}

TEST(EthernetHeader, RefusesEveryTruncation) {
    auto octets = encoded(solicitation);
    for (std::size_t size = 0; size < octets.size(); ++size)
        EXPECT_EQ(decode<EthernetHeader>(std::span(octets).first(size)).error().code,
                  Code::truncated);
}

TEST(EthernetAddress, IsReadFromItsText) {
    EXPECT_EQ(solicitation.source.text(), "42:df:13:49:b3:46");
    EXPECT_EQ(*EthernetAddress::from_text("42:DF:13:49:b3:46"), solicitation.source);
    EXPECT_EQ(ethernet_broadcast.text(), "ff:ff:ff:ff:ff:ff");
}

TEST(EthernetAddress, RefusesWhatIsNoAddress) {
    for (auto text :
         {"", "42:df:13:49:b3", "42:df:13:49:b3:4", "42:df:13:49:b3:466", "42-df-13-49-b3-46",
          "42:df:13:49:b3:4g", "4:2df:13:49:b3:46", "42:df:13:49:b3:-6", "+2:df:13:49:b3:46"})
        EXPECT_FALSE(EthernetAddress::from_text(text)) << text;
}

}  // namespace
}  // namespace weft::wire
