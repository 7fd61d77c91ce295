// SPDX-License-Identifier: Apache-2.0
#include "iwarp/memory_tags.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "support/seeds.hpp"

namespace weft::iwarp {
namespace {

TEST(MemoryTags, FindTheUseOfAnyIndex) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        MemoryTags tags(1 << 10, seed);
        for (std::uint32_t slot = 0; slot < 1 << 10; slot += 7)
            for (std::uint32_t round : {0u, 1u, 77u, (1u << 14) - 1}) {
                MemoryTags::Use use{slot, round};
                auto index = tags.index_of(use);
                ASSERT_LE(index, memory_index_max);
                ASSERT_EQ(tags.use_at(index), use);
            }
    });
}

TEST(MemoryTags, GiveOutEveryIndexButZeroBeforeOneComesAgain) {
    MemoryTags tags(3, 5);
    std::vector<bool> given(memory_index_max + 1);
    std::size_t count = 0;
    for (std::uint32_t slot = 0; slot < 4; ++slot) {
        const auto first = tags.first(slot);
        auto use = first;
        do {
            auto index = tags.index_of(use);
            ASSERT_FALSE(given[index]);
            given[index] = true;
            ++count;
            use = tags.next(use);
        } while (use != first);
    }
    EXPECT_EQ(count, memory_index_max);
    EXPECT_FALSE(given[0]);
}

/// The size of a table's whole range, and the smallest.
TEST(MemoryTags, HaveAnIndexForEverySlot) {
    for (std::size_t slots : {std::size_t{0}, std::size_t{1}, std::size_t{2}, memory_slots_max}) {
        MemoryTags tags(slots, 9);
        const auto zero = tags.use_at(0);
        EXPECT_NE(tags.index_of(tags.first(zero.slot)), 0u);
        EXPECT_NE(tags.index_of(tags.next({zero.slot, zero.round - 1})), 0u);
    }
}

TEST(MemoryTags, AreSparseAndInNoOrder) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        MemoryTags tags(1 << 20, seed);
        std::vector<std::uint32_t> indices;
        for (std::uint32_t slot = 0; slot < 4096; ++slot)
            indices.push_back(tags.index_of(tags.first(slot)));
        int neighbours = 0, rising = 0;
        for (std::size_t i = 1; i < indices.size(); ++i) {
            auto [low, high] = std::minmax(indices[i - 1], indices[i]);
            neighbours += high - low < 256 ? 1 : 0;
            rising += indices[i - 1] < indices[i] ? 1 : 0;
        }
        EXPECT_LT(neighbours, 10);
        EXPECT_NEAR(rising, 2048, 300);
        std::set<std::uint32_t> sixteenths;
        for (auto index : indices) sixteenths.insert(index >> 20);
        EXPECT_EQ(sixteenths.size(), 16u);
    });
}

TEST(MemoryTags, DifferBySeed) {
    MemoryTags one(8, 1), other(8, 2);
    int alike = 0;
    for (std::uint32_t slot = 0; slot < 8; ++slot)
        alike += one.index_of(one.first(slot)) == other.index_of(other.first(slot)) ? 1 : 0;
    EXPECT_LT(alike, 2);
}

TEST(MemoryTags, HaveEveryKeyOnceInAnOrder) {
    MemoryTags tags(8, 3);
    std::set<std::vector<std::uint8_t>> orders;
    for (int i = 0; i < 50; ++i) {
        auto order = tags.draw_key_order();
        std::vector<std::uint8_t> keys;
        for (std::uint32_t number = 0; number < memory_keys; ++number)
            keys.push_back(tags.key(order, number));
        EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), memory_keys);
        EXPECT_FALSE(std::is_sorted(keys.begin(), keys.end()));
        orders.insert(keys);
    }
    EXPECT_GT(orders.size(), 45u);
}

}  // namespace
}  // namespace weft::iwarp
