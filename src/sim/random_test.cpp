// SPDX-License-Identifier: Apache-2.0
#include "sim/random.hpp"

#include <gtest/gtest.h>

#include <array>

namespace weft::sim {
namespace {

TEST(Random, GivesTheSameNumbersForTheSameSeedAndOthersForAnother) {
    Random one(7), same(7), another(8);
    bool differs = false;
    for (int i = 0; i < 100; ++i) {
        auto number = one.next();
        EXPECT_EQ(number, same.next());
        differs |= number != another.next();
    }
    EXPECT_TRUE(differs);
}

TEST(Random, IsTheGeneratorItsAuthorsPublished) {
    // Worked out apart from this code, from the published algorithms.
    Random random(0);
    EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4u);
    EXPECT_EQ(random.next(), 0xbf6e1f784956452au);
}

TEST(Random, ReachesBothBoundsAndNothingBeyond) {
    Random random(1);
    std::array<int, 4> seen{};
    for (int i = 0; i < 1000; ++i) {
        auto number = random.between(5, 8);
        ASSERT_GE(number, 5u);
        ASSERT_LE(number, 8u);
        ++seen[number - 5];
        ASSERT_LT(random.below(3), 3u);
        auto span = random.between(Duration(10), Duration(12));
        ASSERT_GE(span, Duration(10));
        ASSERT_LE(span, Duration(12));
    }
    for (int count : seen) EXPECT_GT(count, 150);
}

TEST(Random, TakesAChanceAboutAsOftenAsAsked) {
    Random random(1);
    int taken = 0;
    for (int i = 0; i < 10000; ++i) {
        EXPECT_FALSE(random.chance(0));
        EXPECT_TRUE(random.chance(100));
        taken += random.chance(12.5);
    }
    EXPECT_GT(taken, 1100);
    EXPECT_LT(taken, 1400);
}

}  // namespace
}  // namespace weft::sim
