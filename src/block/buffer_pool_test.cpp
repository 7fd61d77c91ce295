// SPDX-License-Identifier: Apache-2.0
#include "block/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace weft::block {
namespace {

constexpr std::size_t unit = BufferPool::alignment;

TEST(BufferPool, GivesAlignedMemoryOfExactlyTheSizeAskedFor) {
    BufferPool pool(0);
    for (std::size_t size :
         {std::size_t{1}, unit - 1, unit, unit + 1, 3 * unit, 32 * unit + 7, BufferPool::largest}) {
        auto buffer = pool.take(size);
        ASSERT_EQ(buffer.size(), size);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % unit, 0u);
        std::memset(buffer.data(), 0xa5, size);  // for the address sanitizer to judge
        pool.give_back(buffer);
    }
}

TEST(BufferPool, GivesMemoryEvenForNothing) {
    BufferPool pool(unit);
    auto buffer = pool.take(0);
    EXPECT_NE(buffer.data(), nullptr);
    EXPECT_TRUE(buffer.empty());
    pool.give_back(buffer);
    EXPECT_EQ(pool.idle_bytes(), unit);
}

TEST(BufferPool, ReusesWhatCameBackForARequestOfAboutThatSize) {
    BufferPool pool(64 * unit);
    auto* memory = pool.take(3 * unit).data();
    pool.give_back({memory, 3 * unit});
    EXPECT_EQ(pool.idle_bytes(), 4 * unit);

    auto larger = pool.take(5 * unit);
    EXPECT_NE(larger.data(), memory) << "eight units do not fit four";
    auto again = pool.take(2 * unit + 1);
    EXPECT_EQ(again.data(), memory);
    EXPECT_EQ(pool.idle_bytes(), 0u);
    pool.give_back(again);
    pool.give_back(larger);
}

TEST(BufferPool, NeverLendsTheSameMemoryTwice) {
    BufferPool pool(64 * unit);
    std::vector<Buffer> lent;
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 8; ++i) lent.push_back(pool.take(unit));
        std::vector<std::byte*> starts;
        for (auto buffer : lent) starts.push_back(buffer.data());
        std::ranges::sort(starts);
        EXPECT_EQ(std::ranges::adjacent_find(starts), starts.end());
        for (; lent.size() > 4; lent.pop_back()) pool.give_back(lent.back());
    }
    for (auto buffer : lent) pool.give_back(buffer);
}

TEST(BufferPool, KeepsNoMoreThanItsBound) {
    BufferPool pool(5 * unit);
    std::vector<Buffer> lent;
    for (std::size_t size : {1u, 2u, 4u, 1u}) lent.push_back(pool.take(size * unit));
    std::size_t expected[] = {unit, 3 * unit, 3 * unit, 4 * unit};  // four more did not fit
    for (std::size_t i = 0; i < lent.size(); ++i) {
        pool.give_back(lent[i]);
        EXPECT_EQ(pool.idle_bytes(), expected[i]);
    }
}

TEST(BufferPoolDeathTest, HasALargestSize) {
    BufferPool pool(0);
    EXPECT_DEATH(pool.take(BufferPool::largest + 1), "largest");
}

}  // namespace
}  // namespace weft::block
