// SPDX-License-Identifier: Apache-2.0
#include "wire/checksum.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/bytes.hpp"
#include "support/golden.hpp"
#include "support/packet.hpp"

namespace weft::wire {
namespace {

std::uint16_t checksum_of(ConstBuffer octets) {
    InternetChecksum checksum;
    checksum.add(octets);
    return checksum.value();
}

TEST(InternetChecksum, GivesTheSumOfRfc1071) {
    // Section 3: the sum of these words is ddf2.
    EXPECT_EQ(checksum_of(test::from_hex("0001 f203 f4f5 f6f7")), 0xffff - 0xddf2);
}

TEST(InternetChecksum, FillsAnOddEndWithZero) {
    EXPECT_EQ(checksum_of(test::from_hex("0102 03")), checksum_of(test::from_hex("0102 0300")));
    EXPECT_EQ(checksum_of({}), 0xffff);
}

TEST(InternetChecksum, AddsTheCarryBack) {
    EXPECT_EQ(checksum_of(test::from_hex("ffff ffff ffff ffff")), 0);
    EXPECT_EQ(checksum_of(test::from_hex("ffff 0001")), 0xfffe);
    test::Bytes many(100'000, std::byte{0xff});
    EXPECT_EQ(checksum_of(many), 0);
}

TEST(InternetChecksum, DoesNotCareHowItIsCut) {
    auto text = bytes_of("the warp and the weft, over and under");
    for (std::size_t first = 0; first <= text.size(); ++first) {
        for (std::size_t second = first; second <= text.size(); ++second) {
            InternetChecksum checksum;
            checksum.add(text.first(first));
            checksum.add(text.subspan(first, second - first));
            checksum.add(text.subspan(second));
            ASSERT_EQ(checksum.value(), checksum_of(text)) << first << ' ' << second;
        }
    }
}

TEST(InternetChecksum, VerifiesEveryCapturedPacket) {
    int verified = 0;
    for (const auto& entry : std::filesystem::directory_iterator(WEFT_GOLDEN "/net")) {
        test::Packet packet(entry.path().stem());
        if (packet.upper.fragment) continue;  // its checksum covers all fragments
        EXPECT_TRUE(packet.verifies()) << entry.path();
        ++verified;
    }
    EXPECT_GE(verified, 20);
}

TEST(InternetChecksum, NoticesAnyOctetThatChanged) {
    test::Packet packet("tcp-data");
    auto upper_at = packet.frame.size() - packet.upper.octets.size();
    for (auto i = upper_at; i < packet.frame.size(); ++i) {
        packet.frame[i] ^= std::byte{0x10};
        EXPECT_FALSE(packet.verifies()) << i;
        packet.frame[i] ^= std::byte{0x10};
    }
    EXPECT_TRUE(packet.verifies());
}

}  // namespace
}  // namespace weft::wire
