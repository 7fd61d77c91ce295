// SPDX-License-Identifier: Apache-2.0
#include "raid/box_pace.hpp"

#include <gtest/gtest.h>

namespace weft::raid {
namespace {

using namespace std::chrono_literals;

TEST(BoxPace, FollowsWhatAnswersTake) {
    BoxPace pace;
    EXPECT_FALSE(pace.is_known());
    for (int i = 0; i < 200; ++i) pace.note(2ms);
    EXPECT_TRUE(pace.is_known());
    EXPECT_EQ(pace.typical(), 2ms);
    EXPECT_LT(pace.high(), 2ms + 10us);
    for (int i = 0; i < 200; ++i) pace.note(180ms);
    EXPECT_GT(pace.typical(), 179ms);
    EXPECT_LT(pace.typical(), 181ms);
}

TEST(BoxPace, SaysWhatFewAnswersExceed) {
    BoxPace pace;
    int above = 0;
    for (int i = 0; i < 1000; ++i) {
        const Duration took = 2ms + (i * 7 % 10) * 200us;
        if (pace.is_known() && took > pace.high()) ++above;
        pace.note(took);
    }
    EXPECT_LT(above, 10);
    EXPECT_LT(pace.high(), 8ms);
}

BoxPaces paces_of_five(Duration usual) {
    BoxPaces paces{HedgeOptions{}};
    for (std::uint8_t box = 0; box < 5; ++box)
        for (int i = 0; i < 50; ++i) paces.answered(box, usual, {});
    return paces;
}

TEST(BoxPaces, MeasureABoxByTheOthers) {
    EXPECT_EQ(BoxPaces{HedgeOptions{}}.patience_with(0), 1s);
    EXPECT_EQ(paces_of_five(2ms).patience_with(0), 50ms);
    // Where all are slow none is late.
    auto paces = paces_of_five(100ms);
    EXPECT_GT(paces.patience_with(0), 390ms);
    // One more that is slow changes nothing for the others.
    auto other = paces_of_five(2ms);
    for (int i = 0; i < 50; ++i) other.answered(3, 900ms, {});
    EXPECT_EQ(other.patience_with(0), 50ms);
    EXPECT_EQ(other.others(0), 2ms);
}

TEST(BoxPaces, LeadAroundASlowBoxUntilItIsWell) {
    auto paces = paces_of_five(2ms);
    Instant now{1'000'000'000};
    EXPECT_TRUE(paces.fell_behind(2, now));
    EXPECT_FALSE(paces.fell_behind(2, now)) << "of one trouble it is told once";
    EXPECT_EQ(paces.slow(), only(2));
    EXPECT_EQ(paces.to_avoid(now), only(2));
    now = now + 100ms;
    EXPECT_EQ(paces.to_avoid(now), 0u) << "it is tried";
    paces.tried(2, now);
    EXPECT_EQ(paces.to_avoid(now), only(2)) << "by one";
    for (int i = 0; i < 7; ++i) EXPECT_FALSE(paces.answered(2, 3ms, now));
    EXPECT_FALSE(paces.answered(2, 200ms, now)) << "and all begins again";
    for (int i = 0; i < 7; ++i) EXPECT_FALSE(paces.answered(2, 3ms, now));
    EXPECT_TRUE(paces.answered(2, 3ms, now));
    EXPECT_EQ(paces.slow(), 0u);
}

TEST(BoxPaces, ForgetATroubleThatNobodySeesAnyMore) {
    auto paces = paces_of_five(2ms);
    EXPECT_FALSE(paces.deadline());
    paces.fell_behind(2, {});
    ASSERT_TRUE(paces.deadline());
    const Instant then = *paces.deadline();
    EXPECT_EQ(paces.rested(only(2), then), 0u) << "it still owes an answer";
    EXPECT_GT(*paces.deadline(), then);
    EXPECT_EQ(paces.rested(0, *paces.deadline()), only(2));
    EXPECT_FALSE(paces.deadline());
    EXPECT_EQ(paces.slow(), 0u);
}

TEST(BoxPaces, KnowNothingOfWhoComesNext) {
    auto paces = paces_of_five(2ms);
    paces.fell_behind(2, {});
    paces.forget(2);
    EXPECT_EQ(paces.slow(), 0u);
    EXPECT_EQ(paces.typical(2), Duration{});
}

}  // namespace
}  // namespace weft::raid
