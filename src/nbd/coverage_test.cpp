// SPDX-License-Identifier: Apache-2.0
#include "nbd/coverage.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weft::nbd {
namespace {

TEST(Coverage, IsWholeWhenThePiecesMeetInAnyOrder) {
    std::mt19937 chance(1);
    std::vector<std::uint64_t> order(50);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (int round = 0; round < 100; ++round) {
        std::ranges::shuffle(order, chance);
        Coverage coverage;
        for (auto piece : order) {
            EXPECT_FALSE(coverage.is_whole(500));
            EXPECT_TRUE(coverage.add(piece * 10, 10));
        }
        EXPECT_TRUE(coverage.is_whole(500));
    }
}

TEST(Coverage, RefusesEveryOverlap) {
    for (std::uint64_t from = 0; from < 40; ++from)
        for (std::uint64_t length = 1; from + length <= 40; ++length) {
            Coverage coverage;
            ASSERT_TRUE(coverage.add(10, 10));
            EXPECT_EQ(coverage.add(from, length), from + length <= 10 || from >= 20)
                << from << " " << length;
        }
}

TEST(Coverage, IsWholeWithoutPiecesOnlyWhenNothingWasAsked) {
    EXPECT_TRUE(Coverage{}.is_whole(0));
    EXPECT_FALSE(Coverage{}.is_whole(1));
}

TEST(Coverage, BoundsTheRangesThatDoNotMeet) {
    Coverage coverage;
    for (std::uint64_t i = 0; i < Coverage::ranges_max; ++i) EXPECT_TRUE(coverage.add(2 * i, 1));
    EXPECT_FALSE(coverage.add(2 * Coverage::ranges_max, 1));
    EXPECT_TRUE(coverage.add(1, 1)) << "one that joins two still fits";
}

}  // namespace
}  // namespace weft::nbd
