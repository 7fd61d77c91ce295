// SPDX-License-Identifier: Apache-2.0
#include "sim/line.hpp"

#include <gtest/gtest.h>

namespace weft::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t mebibyte = 1 << 20;

Line narrow(std::size_t queue_bytes) {
    Line line;
    line.set_options({.bytes_per_second = mebibyte, .queue_bytes = queue_bytes});
    return line;
}

TEST(Line, TakesNoTimeWithoutALimit) {
    Random random(1);
    Line line;
    const auto passed = line.pass(Instant{} + 1s, mebibyte, random);
    EXPECT_EQ(passed.when, Instant{} + 1s);
    EXPECT_FALSE(passed.again);
}

TEST(Line, SendsOneBehindAnother) {
    Random random(1);
    auto line = narrow(4 * mebibyte);
    EXPECT_EQ(line.pass(Instant{}, mebibyte, random).when, Instant{} + 1s);
    EXPECT_EQ(line.pass(Instant{}, mebibyte / 2, random).when, Instant{} + 1500ms);
    EXPECT_EQ(line.pass(Instant{} + 3s, mebibyte, random).when, Instant{} + 4s);
}

TEST(Line, LosesWhatFindsTheQueueFullAndHasItSentAgain) {
    Random random(1);
    auto line = narrow(mebibyte / 4);
    EXPECT_FALSE(line.pass(Instant{}, mebibyte / 8, random).again);
    EXPECT_FALSE(line.pass(Instant{}, mebibyte / 8, random).again);
    const auto passed = line.pass(Instant{}, mebibyte / 8, random);
    EXPECT_TRUE(passed.again);
    EXPECT_GE(passed.when, Instant{} + 200ms) << "TCP's first timeout";
}

TEST(Line, LosesSome) {
    Random random(1);
    Line line;
    line.set_options({.loss_percent = 5});
    int again = 0;
    for (int i = 0; i < 10'000; ++i) again += line.pass(Instant{}, 1, random).again;
    EXPECT_GT(again, 400);
    EXPECT_LT(again, 600);
}

}  // namespace
}  // namespace weft::sim
