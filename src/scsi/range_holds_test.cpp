// SPDX-License-Identifier: Apache-2.0
#include "scsi/range_holds.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace weft::scsi {
namespace {

struct SilentTask final : Task {
    void data_wanted(std::span<const Buffer>) override {}
    void finished() override {}
};

struct Holds : testing::Test {
    bool acquire(std::size_t who, BlockRange range, Hold hold) {
        return holds.acquire(tasks[who], range, hold);
    }
    std::vector<std::size_t> release(std::size_t who) {
        std::vector<std::size_t> granted;
        holds.release(tasks[who], [&](Task& task) { granted.push_back(place_of(task)); });
        return granted;
    }
    std::vector<std::size_t> forget(std::size_t who) {
        std::vector<std::size_t> granted;
        holds.forget(tasks[who], [&](Task& task) { granted.push_back(place_of(task)); });
        return granted;
    }
    std::size_t place_of(const Task& task) const {
        return static_cast<std::size_t>(static_cast<const SilentTask*>(&task) - tasks.data());
    }

    std::array<SilentTask, 6> tasks;
    RangeHolds holds;
};
using Places = std::vector<std::size_t>;

TEST_F(Holds, AreSharedByReadsAndWrites) {
    EXPECT_TRUE(acquire(0, {0, 8}, Hold::shared));
    EXPECT_TRUE(acquire(1, {4, 8}, Hold::shared));
    EXPECT_TRUE(acquire(2, {0, 100}, Hold::shared));
    EXPECT_EQ(release(1), Places{});
    EXPECT_EQ(release(0), Places{});
    EXPECT_EQ(release(2), Places{});
    EXPECT_TRUE(holds.idle());
}

TEST_F(Holds, AreExclusiveOnlyWhereTheyOverlap) {
    EXPECT_TRUE(acquire(0, {0, 8}, Hold::exclusive));
    EXPECT_TRUE(acquire(1, {8, 8}, Hold::exclusive));
    EXPECT_FALSE(acquire(2, {7, 1}, Hold::shared));
    EXPECT_FALSE(acquire(3, {15, 2}, Hold::exclusive));
    EXPECT_EQ(release(0), Places{2});
    EXPECT_EQ(release(1), Places{3});
}

TEST_F(Holds, AreGivenInTheOrderTheyWereWanted) {
    EXPECT_TRUE(acquire(0, {0, 8}, Hold::shared));
    EXPECT_FALSE(acquire(1, {0, 8}, Hold::exclusive));
    EXPECT_FALSE(acquire(2, {4, 1}, Hold::shared)) << "or readers could keep a writer out for ever";
    EXPECT_TRUE(acquire(3, {20, 1}, Hold::shared));
    EXPECT_EQ(release(0), Places{1});
    EXPECT_EQ(release(1), Places{2});
}

TEST_F(Holds, LetOthersPassWhenOneStopsWaiting) {
    EXPECT_TRUE(acquire(0, {0, 8}, Hold::shared));
    EXPECT_FALSE(acquire(1, {0, 8}, Hold::exclusive));
    EXPECT_FALSE(acquire(2, {4, 1}, Hold::shared));
    EXPECT_EQ(forget(1), Places{2});
    EXPECT_EQ(release(0), Places{});
    EXPECT_EQ(release(2), Places{});
    EXPECT_TRUE(holds.idle());
}

}  // namespace
}  // namespace weft::scsi
