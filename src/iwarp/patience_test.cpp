// SPDX-License-Identifier: Apache-2.0
#include "iwarp/patience.hpp"

#include <gtest/gtest.h>

namespace weft::iwarp {
namespace {

using std::chrono::seconds;

constexpr Instant start = Instant{} + seconds(1000);

TEST(Patience, HasNoDeadlineWhileNothingIsWaitedFor) {
    Patience patience(seconds(10));
    EXPECT_EQ(patience.deadline(), std::nullopt);
    EXPECT_FALSE(patience.is_over(start, true, 0)) << "nobody said that something is waited for";
}

TEST(Patience, IsOverWhenNothingMovedBetweenTwoLooks) {
    Patience patience(seconds(10));
    patience.begin();
    EXPECT_LE(*patience.deadline(), start);
    EXPECT_FALSE(patience.is_over(start, true, 5));
    EXPECT_EQ(patience.deadline(), start + seconds(10));
    EXPECT_FALSE(patience.is_over(start + seconds(9), true, 5));
    EXPECT_TRUE(patience.is_over(start + seconds(10), true, 5));
}

TEST(Patience, GoesOnWhileThingsMove) {
    Patience patience(seconds(10));
    patience.begin();
    for (int i = 0; i < 5; ++i)
        EXPECT_FALSE(patience.is_over(start + i * seconds(10), true, static_cast<unsigned>(i)));
}

TEST(Patience, StartsAnewAfterALookThatFoundNothingWaiting) {
    Patience patience(seconds(10));
    patience.begin();
    EXPECT_FALSE(patience.is_over(start, true, 5));
    EXPECT_FALSE(patience.is_over(start + seconds(10), false, 5));
    EXPECT_EQ(patience.deadline(), std::nullopt);
    patience.begin();
    EXPECT_FALSE(patience.is_over(start + seconds(20), true, 5));
    EXPECT_FALSE(patience.is_over(start + seconds(29), true, 5));
    EXPECT_TRUE(patience.is_over(start + seconds(30), true, 5));
}

TEST(Patience, LooksNoMoreOftenThanItsSpanHoweverOftenItBegins) {
    Patience patience(seconds(10));
    int looks = 0;
    // A busy connection: something begins and ends, again and again.
    for (auto now = start; now < start + seconds(100); now = now + std::chrono::milliseconds(10)) {
        patience.begin();
        if (*patience.deadline() > now) continue;
        ++looks;
        EXPECT_FALSE(patience.is_over(now, false, 0));
    }
    EXPECT_LE(looks, 11);
}

}  // namespace
}  // namespace weft::iwarp
