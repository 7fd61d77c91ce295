// SPDX-License-Identifier: Apache-2.0
#include "iwarp/fpdu_buffers.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace weft::iwarp {
namespace {

struct Waiter final : FpduBufferWaiter {
    void buffer_available() override { ++told; }
    int told = 0;
};

constexpr std::size_t all = FpduBuffers::largest, half = 32u << 10, quarter_size = 16u << 10;

TEST(FpduBuffers, GivesAtLeastWhatIsAskedFor) {
    FpduBuffers buffers(1u << 20, 0);
    Waiter waiter;
    for (std::size_t size : {1u, 1023u, 1024u, 1025u, 4096u, 64'776u, 65'544u, 66'068u}) {
        Buffer buffer = buffers.take(size, waiter);
        EXPECT_GE(buffer.size(), size);
        EXPECT_LT(buffer.size(), std::max<std::size_t>(1025, 2 * size)) << "no more than a class";
        EXPECT_EQ(buffers.bytes_lent(), buffer.size());
        std::fill(buffer.begin(), buffer.end(), std::byte{1});
        buffers.give_back(buffer);
    }
    EXPECT_EQ(buffers.bytes_lent(), 0u);
    EXPECT_EQ(waiter.told, 0);
}

TEST(FpduBuffers, GivesLittleMoreThanTheLongestFpduNeeds) {
    FpduBuffers buffers(1u << 20, 0);
    for (std::size_t size : {64'776u, 65'544u, 66'068u}) {
        Buffer buffer = buffers.take_if_free(size);
        EXPECT_LT(buffer.size(), size + 4096);
        buffers.give_back(buffer);
    }
}

TEST(FpduBuffers, TakesNothingFromThoseWhoWait) {
    FpduBuffers buffers(all, 0);
    Waiter large;
    Buffer little = buffers.take_if_free(1);
    EXPECT_FALSE(buffers.is_short());
    EXPECT_TRUE(buffers.take(all, large).empty());
    EXPECT_TRUE(buffers.is_short());
    EXPECT_TRUE(buffers.take_if_free(1).empty());
    buffers.give_back(little);
    buffers.give_back(buffers.take(all, large));
    EXPECT_FALSE(buffers.is_short());
}

TEST(FpduBuffers, GivesOutTheLastOneGivenBack) {
    FpduBuffers buffers(1u << 20, 8192);
    Waiter waiter;
    Buffer one = buffers.take(2000, waiter);
    Buffer two = buffers.take(2000, waiter);
    auto* last = one.data();
    buffers.give_back(two);
    buffers.give_back(one);
    Buffer again = buffers.take(2048, waiter);
    EXPECT_EQ(again.data(), last);
    buffers.give_back(again);
}

TEST(FpduBuffers, LetsWaitWhoFindsNothingLeftAndTellsItLater) {
    FpduBuffers buffers(all, 0);
    Waiter holder, waiter;
    Buffer held = buffers.take(all, holder);
    EXPECT_TRUE(buffers.take(1, waiter).empty());
    EXPECT_TRUE(buffers.take(1, waiter).empty()) << "asking again changes nothing";
    EXPECT_EQ(waiter.told, 0);
    buffers.give_back(held);
    EXPECT_EQ(waiter.told, 1);
    Buffer got = buffers.take(1, waiter);
    EXPECT_FALSE(got.empty());
    EXPECT_FALSE(waiter.is_waiting_for_buffer);
    buffers.give_back(got);
    EXPECT_EQ(waiter.told, 1) << "it waits no more";
}

TEST(FpduBuffers, ServesThoseWhoWaitInTheirOrder) {
    FpduBuffers buffers(all, 0);
    Waiter holder, large, small, newcomer;
    Buffer large_part = buffers.take(half, holder);
    Buffer quarter = buffers.take(quarter_size, holder);
    EXPECT_TRUE(buffers.take(all, large).empty());
    // There is room for these, but what they take the first would wait for once more.
    EXPECT_TRUE(buffers.take(1, small).empty());
    EXPECT_TRUE(buffers.take(1, small).empty());
    EXPECT_TRUE(buffers.take(1, newcomer).empty());
    buffers.give_back(quarter);
    EXPECT_TRUE(buffers.take(all, large).empty());
    buffers.give_back(large_part);
    EXPECT_EQ(small.told + newcomer.told, 0);
    Buffer whole = buffers.take(all, large);
    ASSERT_FALSE(whole.empty());
    EXPECT_TRUE(buffers.take(1, small).empty());
    buffers.give_back(whole);
    Buffer first = buffers.take(1, small);
    ASSERT_FALSE(first.empty());
    EXPECT_EQ(newcomer.told, 1) << "there was more than the first one took";
    Buffer second = buffers.take(1, newcomer);
    ASSERT_FALSE(second.empty());
    buffers.give_back(first);
    buffers.give_back(second);
}

TEST(FpduBuffers, TellsTheNextWhenTheFirstGoesAway) {
    FpduBuffers buffers(all, 0);
    Waiter holder, large, small;
    Buffer large_part = buffers.take(half, holder);
    EXPECT_TRUE(buffers.take(all, large).empty());
    EXPECT_TRUE(buffers.take(1, small).empty());
    buffers.forget(large);
    EXPECT_EQ(small.told, 1);
    Buffer got = buffers.take(1, small);
    EXPECT_FALSE(got.empty());
    buffers.forget(small);  // who does not wait is not missed
    buffers.give_back(large_part);
    buffers.give_back(got);
    EXPECT_EQ(large.told, 0);
}

TEST(FpduBuffers, KeepsNoMoreThanItMay) {
    FpduBuffers buffers(1u << 20, 1024);
    Waiter waiter;
    Buffer one = buffers.take(1024, waiter);
    Buffer two = buffers.take(1024, waiter);
    auto* first_given_back = one.data();
    buffers.give_back(one);
    buffers.give_back(two);  // freed: the sanitizer would tell if it were not
    Buffer again = buffers.take(1024, waiter);
    EXPECT_EQ(again.data(), first_given_back);
    buffers.give_back(again);
}

}  // namespace
}  // namespace weft::iwarp
