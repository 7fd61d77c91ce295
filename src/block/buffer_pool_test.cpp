// SPDX-License-Identifier: Apache-2.0
#include "block/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace weft::block {
namespace {

constexpr std::size_t unit = BufferPool::alignment;
constexpr std::size_t plenty = 4 * BufferPool::largest;

BufferPool::Limits keeping(std::size_t idle_bytes) {
    return {.bytes = plenty, .reserve_bytes = 0, .idle_bytes = idle_bytes};
}
BufferPool::Limits of_units(std::size_t units, std::size_t reserve_units) {
    return {.bytes = units * unit, .reserve_bytes = reserve_units * unit, .idle_bytes = plenty};
}

/// Holds what it was given; when memory comes, takes what it last asked for in vain.
class Borrower {
public:
    explicit Borrower(BufferPool& pool) : pool_(pool) {}
    ~Borrower() { give_all_back(); }

    bool ask_units(std::size_t units) {
        wanted_ = units * unit;
        auto buffer = share.take(wanted_);
        if (buffer.empty()) return false;
        held.push_back(buffer);
        return true;
    }
    void give_one_back() {
        share.give_back(held.front());
        held.erase(held.begin());
        pool_.serve_waiting();
    }
    void give_all_back() {
        while (!held.empty()) give_one_back();
    }

private:
    BufferPool& pool_;
    std::size_t wanted_ = 0;

public:
    std::vector<Buffer> held;
    BufferShare share{pool_, [this] { ask_units(wanted_ / unit); }};
};

TEST(BufferPool, GivesAlignedMemoryOfExactlyTheSizeAskedFor) {
    BufferPool pool(keeping(0));
    BufferShare share(pool, [] {});
    for (std::size_t size :
         {std::size_t{1}, unit - 1, unit, unit + 1, 3 * unit, 32 * unit + 7, BufferPool::largest}) {
        auto buffer = share.take(size);
        ASSERT_EQ(buffer.size(), size);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % unit, 0u);
        std::memset(buffer.data(), 0xa5, size);  // for the address sanitizer to judge
        share.give_back(buffer);
    }
}

TEST(BufferPool, ReusesWhatCameBackForARequestOfAboutThatSize) {
    BufferPool pool(keeping(64 * unit));
    BufferShare share(pool, [] {});
    auto* memory = share.take(3 * unit).data();
    share.give_back({memory, 3 * unit});
    EXPECT_EQ(pool.idle_bytes(), 4 * unit);

    auto larger = share.take(5 * unit);
    EXPECT_NE(larger.data(), memory) << "eight units do not fit four";
    auto again = share.take(2 * unit + 1);
    EXPECT_EQ(again.data(), memory);
    EXPECT_EQ(pool.idle_bytes(), 0u);
    share.give_back(again);
    share.give_back(larger);
}

TEST(BufferPool, NeverLendsTheSameMemoryTwice) {
    BufferPool pool(keeping(64 * unit));
    BufferShare share(pool, [] {});
    std::vector<Buffer> lent;
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 8; ++i) lent.push_back(share.take(unit));
        std::vector<std::byte*> starts;
        for (auto buffer : lent) starts.push_back(buffer.data());
        std::ranges::sort(starts);
        EXPECT_EQ(std::ranges::adjacent_find(starts), starts.end());
        for (; lent.size() > 4; lent.pop_back()) share.give_back(lent.back());
    }
    for (auto buffer : lent) share.give_back(buffer);
}

TEST(BufferPool, KeepsNoMoreThanItsBound) {
    BufferPool pool(keeping(5 * unit));
    BufferShare share(pool, [] {});
    std::vector<Buffer> lent;
    for (std::size_t size : {1u, 2u, 4u, 1u}) lent.push_back(share.take(size * unit));
    std::size_t expected[] = {unit, 3 * unit, 3 * unit, 4 * unit};  // four more did not fit
    for (std::size_t i = 0; i < lent.size(); ++i) {
        share.give_back(lent[i]);
        EXPECT_EQ(pool.idle_bytes(), expected[i]);
    }
}

TEST(BufferPool, LendsABorrowerAsMuchAsItLeavesFree) {
    BufferPool pool(of_units(16, 0));
    Borrower one(pool), two(pool);
    EXPECT_TRUE(one.ask_units(8)) << "half of all";
    EXPECT_FALSE(one.ask_units(1)) << "9 held, 7 free";
    EXPECT_TRUE(two.ask_units(4)) << "half of what is left";
    EXPECT_FALSE(two.ask_units(1));
    one.give_all_back();
    EXPECT_EQ(two.held.size(), 2u) << "it is told when there is more";
}

TEST(BufferPool, IsNeverExceededByManyWhoAreGreedy) {
    BufferPool pool(of_units(64, 0));
    std::deque<Borrower> borrowers;
    for (int i = 0; i < 40; ++i)
        for (borrowers.emplace_back(pool); borrowers.back().ask_units(8);) continue;
    EXPECT_LE(pool.lent_bytes(), 56 * unit) << "something is left for those who want less";
    EXPECT_TRUE(Borrower(pool).ask_units(4));
    for (auto& borrower : borrowers) borrower.share.stop_waiting();
}

TEST(BufferPool, HasAReserveForEachThatHoldsNothing) {
    BufferPool pool(of_units(4, 2));
    Borrower one(pool), two(pool), three(pool);
    EXPECT_TRUE(one.ask_units(2));
    EXPECT_TRUE(two.ask_units(1));
    EXPECT_TRUE(three.ask_units(2)) << "5 units of 4: its reserve";
    EXPECT_FALSE(three.ask_units(1)) << "it holds something";
    EXPECT_FALSE(two.ask_units(1));
    EXPECT_FALSE(Borrower(pool).ask_units(3)) << "more than a reserve";
    three.give_one_back();
    EXPECT_EQ(three.held.size(), 1u) << "now its reserve is free again";
}

TEST(BufferPool, ServesThoseWhoWaitInTheirOrder) {
    BufferPool pool(of_units(8, 0));
    Borrower holder(pool), first(pool), second(pool);
    ASSERT_TRUE(holder.ask_units(4));
    EXPECT_FALSE(first.ask_units(4));
    EXPECT_FALSE(second.ask_units(4));
    holder.give_all_back();
    EXPECT_EQ(first.held.size(), 1u);
    EXPECT_TRUE(second.held.empty());
    first.give_all_back();
    EXPECT_EQ(second.held.size(), 1u);
}

TEST(BufferPool, ServesOneWhoWantsLittlePastOneWhoWantsMuch) {
    BufferPool pool(of_units(16, 0));
    Borrower greedy(pool), large(pool), small(pool), taker(pool);
    ASSERT_TRUE(greedy.ask_units(8) && taker.ask_units(2));
    EXPECT_FALSE(large.ask_units(8));
    EXPECT_FALSE(small.ask_units(4));
    taker.give_all_back();
    EXPECT_TRUE(large.held.empty());
    EXPECT_EQ(small.held.size(), 1u);
}

TEST(BufferPool, ForgetsOneWhoNoLongerWaits) {
    BufferPool pool(of_units(8, 0));
    Borrower holder(pool), patient(pool);
    std::optional<Borrower> leaving(pool);
    ASSERT_TRUE(holder.ask_units(4));
    EXPECT_FALSE(leaving->ask_units(4));
    EXPECT_FALSE(patient.ask_units(4));
    leaving.reset();
    holder.give_all_back();
    EXPECT_EQ(patient.held.size(), 1u);
}

TEST(BufferPool, CountsWhatLiesIdle) {
    BufferPool pool(of_units(8, 0));
    Borrower one(pool);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(one.ask_units(1));
    one.give_all_back();
    EXPECT_EQ(pool.idle_bytes(), 4 * unit);
    ASSERT_TRUE(one.ask_units(4));
    EXPECT_LE(pool.idle_bytes() + pool.lent_bytes(), 8 * unit);
    one.give_all_back();
    EXPECT_LE(pool.idle_bytes(), 8 * unit);
    ASSERT_TRUE(one.ask_units(2));
    EXPECT_LE(pool.idle_bytes() + pool.lent_bytes(), 8 * unit);
}

TEST(BufferPoolDeathTest, HasALargestSize) {
    BufferPool pool(keeping(0));
    BufferShare share(pool, [] {});
    EXPECT_DEATH(share.take(BufferPool::largest + 1), "largest");
}

}  // namespace
}  // namespace weft::block
