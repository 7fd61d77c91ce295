// SPDX-License-Identifier: Apache-2.0
#include "block/scatter.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/golden.hpp"

namespace weft::block {
namespace {

/// All the cursor passes over, taken `step` bytes at a time.
test::Bytes walked(ScatterCursor cursor, std::size_t step) {
    test::Bytes octets;
    while (cursor.left() > 0) {
        auto piece = cursor.piece();
        EXPECT_FALSE(piece.empty());
        if (piece.empty()) break;
        piece = piece.first(std::min(step, piece.size()));
        octets.insert(octets.end(), piece.begin(), piece.end());
        cursor.advance(piece.size());
    }
    EXPECT_TRUE(cursor.piece().empty());
    return octets;
}

TEST(ScatterCursor, WithNothingToWalkHasNoPiece) {
    EXPECT_EQ(ScatterCursor().left(), 0u);
    EXPECT_TRUE(ScatterCursor().piece().empty());
    EXPECT_TRUE(ScatterCursor({}, 0, 0).piece().empty());
}

TEST(ScatterCursor, MayEndWhereTheListDoes) {
    auto octets = test::from_hex("01 02 03 04");
    Buffer list[] = {Buffer(octets).first(4)};
    EXPECT_TRUE(ScatterCursor(list, 4, 0).piece().empty());
    EXPECT_EQ(walked({list, 3, 1}, 1), test::from_hex("04"));
}

TEST(ScatterCursor, PassesOverEmptyPieces) {
    auto octets = test::from_hex("01 02 03");
    Buffer all = octets;
    Buffer list[] = {{}, all.first(1), {}, {}, all.subspan(1, 2), {}};
    EXPECT_EQ(walked({list, 0, 3}, 9), octets);
    EXPECT_EQ(walked({list, 1, 2}, 1), test::from_hex("02 03"));
}

TEST(ScatterCursor, WalksAnyPartInAnyStepsAsIfTheListWereOnePiece) {
    std::mt19937 chance(20);
    test::Bytes octets(64);
    for (std::size_t i = 0; i < octets.size(); ++i) octets[i] = static_cast<std::byte>(i);
    for (int round = 0; round < 500; ++round) {
        std::vector<Buffer> list;
        for (Buffer rest = octets; !rest.empty();) {
            auto size = std::min<std::size_t>(chance() % 12, rest.size());
            list.push_back(rest.first(size));
            rest = rest.subspan(size);
        }
        auto skip = chance() % (octets.size() + 1);
        auto length = chance() % (octets.size() - skip + 1);
        test::Bytes expected(octets.begin() + skip, octets.begin() + skip + length);
        EXPECT_EQ(walked({list, skip, length}, 1 + chance() % 20), expected);
    }
}

TEST(ScatterCursorDeathTest, NeverLeavesTheList) {
    auto octets = test::from_hex("01 02");
    Buffer list[] = {Buffer(octets)};
    EXPECT_DEATH(ScatterCursor({}, 0, 1), "empty");
    EXPECT_DEATH(ScatterCursor(list, 2, 1), "empty");
    EXPECT_DEATH(ScatterCursor(list, 0, 1).advance(2), "left_");
}

TEST(ScatterList, IsCopiedOutAndIn) {
    auto octets = test::from_hex("01 02 03 04 05");
    Buffer all = octets;
    Buffer list[] = {all.first(2), Buffer(), all.subspan(2)};
    EXPECT_EQ(total_size(list), 5u);
    test::Bytes copy(3);
    copy_out({list, 1, 4}, copy);
    EXPECT_EQ(copy, test::from_hex("02 03 04"));
    copy_in(test::from_hex("aa bb cc"), {list, 1, 4});
    EXPECT_EQ(octets, test::from_hex("01 aa bb cc 05"));
}

TEST(ScatterList, MayOverlapWhatItIsCopiedWith) {
    auto octets = test::from_hex("01 02 03 04 05 06");
    Buffer all = octets;
    Buffer later[] = {all.subspan(1, 5)};
    copy_in(all.first(5), {later, 0, 5});
    EXPECT_EQ(octets, test::from_hex("01 01 02 03 04 05"));
    copy_out({later, 0, 5}, all.first(5));
    EXPECT_EQ(octets, test::from_hex("01 02 03 04 05 05"));
    copy_out({later, 0, 5}, later[0]);
    EXPECT_EQ(octets, test::from_hex("01 02 03 04 05 05"));
}

}  // namespace
}  // namespace weft::block
