// SPDX-License-Identifier: Apache-2.0
#include "iscsi/chap.hpp"

#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace weft::iscsi {
namespace {

std::string hash(ChapAlgorithm algorithm, std::uint8_t identifier, std::string_view secret,
                 std::string_view challenge) {
    const auto response = chap_response(algorithm, {identifier, test::from_hex(challenge)}, secret);
    if (!response) return "none";
    return test::to_hex({response->data(), response->size()});
}

// Computed by Python's hashlib over octet(identifier) + secret + challenge.
TEST(ChapResponse, IsTheHashOfIdentifierSecretAndChallenge) {
    constexpr std::string_view challenge = "00112233445566778899aabbccddeeff";
    auto expect = [&](ChapAlgorithm algorithm, std::string_view expected) {
        EXPECT_EQ(hash(algorithm, 0x5a, "a secret of ours", challenge),
                  test::to_hex(test::from_hex(expected)));
    };
    expect(ChapAlgorithm::md5, "ae20d4fa515e9a2018d1b3a6c91da42e");
    expect(ChapAlgorithm::sha1, "c9f91f16d5bf19886772bb044469843137929a7b");
    expect(ChapAlgorithm::sha256,
           "3fdfe75b50198ed58e119ef5557eef0cde65931bd29b77722c7e4964c9b3bf57");
    expect(ChapAlgorithm::sha3_256,
           "4c394d9b24dfa50e474607053e5cf1e5f91a112e6a9bad4da3b10ed85fd00445");
}

TEST(ChapResponse, DiffersWithEachOfItsParts) {
    const auto base = hash(ChapAlgorithm::md5, 1, "secret", "00");
    EXPECT_NE(base, hash(ChapAlgorithm::md5, 2, "secret", "00"));
    EXPECT_NE(base, hash(ChapAlgorithm::md5, 1, "Secret", "00"));
    EXPECT_NE(base, hash(ChapAlgorithm::md5, 1, "secret", "01"));
}

TEST(ComparisonOfOctets, SeesEveryDifference) {
    const auto one = test::from_hex("01 02 03");
    EXPECT_TRUE(same_octets(one, test::from_hex("01 02 03")));
    EXPECT_FALSE(same_octets(one, test::from_hex("01 02 04")));
    EXPECT_FALSE(same_octets(one, test::from_hex("01 02")));
    EXPECT_TRUE(same_octets({}, {}));
}

TEST(ListOfAlgorithms, IsReadInItsOrderWithoutWhatNobodyKnows) {
    EXPECT_EQ(chap_algorithms_in("7,5"), (std::vector{ChapAlgorithm::sha256, ChapAlgorithm::md5}));
    EXPECT_EQ(chap_algorithms_in("99,5,,x,5x,06"),
              (std::vector{ChapAlgorithm::md5, ChapAlgorithm::sha1}));
    EXPECT_TRUE(chap_algorithms_in("").empty());
    EXPECT_EQ(chap_list(chap_algorithms), "8,7,6,5");
}

TEST(Binary, IsReadFromHexadecimalAndBase64) {
    auto read = [](std::string_view text) {
        const auto octets = binary_of(text, 8);
        return octets ? test::to_hex(*octets) : std::string("refused");
    };
    EXPECT_EQ(read("0x00fF10"), test::to_hex(test::from_hex("00ff10")));
    EXPECT_EQ(read("0X0a"), test::to_hex(test::from_hex("0a")));
    EXPECT_EQ(read("0bZm9vYmFy"), test::to_hex(test::from_hex("666f6f626172")));  // RFC 4648
    EXPECT_EQ(read("0bZm9vYmE="), test::to_hex(test::from_hex("666f6f6261")));
    EXPECT_EQ(read("0bZm9vYg=="), test::to_hex(test::from_hex("666f6f62")));
    EXPECT_EQ(read("0BZm9vYg"), test::to_hex(test::from_hex("666f6f62")));
    EXPECT_EQ(read("0x"), "");
    for (const char* bad : {"", "0", "5", "x00", "0x0", "0xg0", "0bZm9v*A==", "0bZ",
                            "0bZm9vYh==", "0b====", "0x001122334455667788", "0bAAAAAAAAAAAAAAAA"})
        EXPECT_EQ(read(bad), "refused") << bad;
}

TEST(Binary, IsWrittenSoThatItIsReadBack) {
    const auto octets = test::from_hex("00 7f 80 ff");
    EXPECT_EQ(binary_text(octets), "0x007f80ff");
    EXPECT_EQ(*binary_of(binary_text(octets), 4), octets);
}

TEST(Secret, MustHaveAtLeastTwelveOctets) {
    EXPECT_FALSE(long_enough("elevenchars"));
    EXPECT_TRUE(long_enough("twelve chars"));
}

}  // namespace
}  // namespace weft::iscsi
