// SPDX-License-Identifier: Apache-2.0
#include "scsi/unit_identity.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "scsi/transport_identifier.hpp"

namespace weft::scsi {
namespace {

TEST(UnitIdentity, IsTheSameEachTimeAndAnotherForAnother) {
    const auto one = derive_identity({.seed = "photos"}, "iqn.a", 0);
    EXPECT_EQ(one.serial, derive_identity({.seed = "photos"}, "iqn.b", 7).serial);
    EXPECT_NE(one.serial, derive_identity({.seed = "music"}, "iqn.a", 0).serial);
    EXPECT_NE(derive_identity({}, "iqn.a", 0).serial, derive_identity({}, "iqn.a", 1).serial);
    EXPECT_EQ(one.network_address >> 60, 3u) << "locally assigned";
    EXPECT_EQ(one.serial.size(), 16u);
}

TEST(UnitIdentity, IsWhatItWasGiven) {
    const auto given =
        derive_identity({.serial = "disk-7", .identifier = 0x600140512345678}, "iqn.a", 0);
    EXPECT_EQ(given.serial, "disk-7");
    EXPECT_EQ(given.network_address, 0x600140512345678u);
}

TEST(TransportIdentifier, IsWrittenAndReadBack) {
    const NexusName name{.initiator = "iqn.2001-04.com.example:host",
                         .session_identifier = {0x00, 0x02, 0x3d, 0x00, 0x00, 0x01}};
    const auto octets = transport_identifier(name);
    EXPECT_EQ(octets.size() % 4, 0u);
    EXPECT_EQ(text_of(ConstBuffer(octets).subspan(4, 45)),
              "iqn.2001-04.com.example:host,i,0x00023d000001");
    const auto back = named_by(octets);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->initiator, name.initiator);
    EXPECT_EQ(back->session_identifier, name.session_identifier);
    EXPECT_FALSE(named_by(ConstBuffer(octets).first(20)));
    auto broken = octets;
    broken[4 + 40] = std::byte{'x'};
    EXPECT_FALSE(named_by(broken));
}

}  // namespace
}  // namespace weft::scsi
