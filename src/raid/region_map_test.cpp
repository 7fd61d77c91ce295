// SPDX-License-Identifier: Apache-2.0
#include "raid/region_map.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "raid/limits.hpp"

namespace weft::raid {
namespace {

TEST(RegionMap, IsExactWhereEveryStripeHasItsBit) {
    std::mt19937_64 random(7);
    for (const std::uint64_t stripes : {1u, 63u, 64u, 65u, 1000u}) {
        RegionMap map(stripes);
        std::set<std::uint64_t> expected;
        for (int i = 0; i < 40; ++i) {
            const std::uint64_t stripe = random() % stripes;
            map.add(stripe);
            expected.insert(stripe);
        }
        std::set<std::uint64_t> found;
        for (auto at = map.next(0); at; at = map.next(*at + 1)) found.insert(*at);
        EXPECT_EQ(found, expected);
        EXPECT_EQ(map.count_before(stripes), expected.size());
        EXPECT_EQ(map.count_before(stripes / 2),
                  static_cast<std::uint64_t>(
                      std::distance(expected.begin(), expected.lower_bound(stripes / 2))));
    }
}

TEST(RegionMap, GivesItsStripesAwayRegionByRegion) {
    const std::uint64_t stripes = 10 * limits::regions - 3;
    RegionMap map(stripes);
    map.add(25);
    map.add(stripes - 1);
    EXPECT_EQ(map.take_first(),
              (std::vector<std::uint64_t>{20, 21, 22, 23, 24, 25, 26, 27, 28, 29}));
    EXPECT_EQ(map.take_first().size(), 7u) << "the last region ends with the volume";
    EXPECT_TRUE(map.empty());
    EXPECT_TRUE(map.take_first().empty());
}

TEST(RegionMap, OfALargeVolumeIsBoundedAndForgetsNothing) {
    const std::uint64_t stripes = 10 * limits::regions + 3;
    RegionMap map(stripes);
    map.add(stripes - 1);
    map.add(12'345);
    EXPECT_TRUE(map.contains(stripes - 1));
    EXPECT_TRUE(map.contains(12'345));
    EXPECT_FALSE(map.contains(0));
    EXPECT_LE(map.count_before(stripes), 2u * 11u);
    EXPECT_LE(*map.next(0), 12'345u);
    EXPECT_FALSE(map.next(stripes));
}

TEST(RegionMap, TakesAllFromAStripeOn) {
    RegionMap map(100);
    map.add_from(70);
    EXPECT_EQ(map.next(0), 70u);
    EXPECT_EQ(map.count_before(100), 30u);
    map.clear();
    EXPECT_TRUE(map.empty());
}

TEST(RegionMap, StaysTheSameSetWhenTheVolumeGrows) {
    RegionMap map(limits::regions);
    map.add(5);
    map.add(limits::regions - 1);
    const auto larger = map.grown(3 * limits::regions);
    EXPECT_TRUE(larger.contains(5));
    EXPECT_TRUE(larger.contains(limits::regions - 1));
    EXPECT_FALSE(larger.contains(2 * limits::regions));
    RegionMap joined(3 * limits::regions);
    joined.add(7'000);
    joined.add(map);
    EXPECT_TRUE(joined.contains(5) && joined.contains(7'000));
}

}  // namespace
}  // namespace weft::raid
