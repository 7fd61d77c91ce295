// SPDX-License-Identifier: Apache-2.0
#include "node/link_watch.hpp"

#include <gtest/gtest.h>

namespace weft::node {
namespace {

using State = ArrayLinkFacts::State;

class LinkWatchTest : public testing::Test {
protected:
    /// What the next look says, a line each.
    std::string look() {
        now = now + LinkWatch::period;
        std::string text;
        const std::array reports{report};
        for (const auto& news : watch.look(reports, now))
            text += news.from + ": " + news.what + "\n";
        return text;
    }

    LinkWatch watch;
    LinkReport report{.from = "oak", .to = "elm", .link = {}};
    Instant now{};
};

TEST_F(LinkWatchTest, SaysOnceThatALinkIsCongestedAndOnceThatItIsNoLonger) {
    EXPECT_EQ(look(), "");
    report.link.state = State::congested;
    report.link.under_way = 12;
    report.link.oldest = std::chrono::milliseconds(2300);
    report.link.resent_per_mille = 118;
    EXPECT_EQ(look(), "") << "it may pass";
    EXPECT_EQ(look(),
              "oak: link to elm is congested: 12 transfers under way, the oldest for 2.3 s; 11.8 % "
              "of its segments were sent again\n");
    EXPECT_EQ(look(), "");
    report.link.state = State::busy;
    EXPECT_EQ(look(), "");
    EXPECT_EQ(look(), "oak: link to elm is no longer slow\n");
}

TEST_F(LinkWatchTest, SaysThatALinkIsStalled) {
    report.link.state = State::stalled;
    report.link.since_progress = std::chrono::seconds(4);
    report.link.under_way = 1;
    look();
    EXPECT_EQ(look(),
              "oak: link to elm is stalled: nothing has moved for 4.0 s, with 1 transfers under "
              "way\n");
}

TEST_F(LinkWatchTest, CountsConnectionsThatEndedAndSaysSoOnceAMinute) {
    look();
    report.link.counters.ended = 1;
    report.link.counters.retried = 5;
    report.link.last_end = "the other side is gone";
    EXPECT_EQ(look(),
              "oak: connection to elm ended once (the last: the other side is gone); 5 transfers "
              "were begun again over another\n");
    report.link.counters.ended = 4;
    report.link.counters.retried = 6;
    for (const auto until = now + (LinkWatch::quiet_for - LinkWatch::period); now < until;)
        ASSERT_EQ(look(), "");
    EXPECT_EQ(
        look(),
        "oak: connection to elm ended 3 times (the last: the other side is gone); 1 transfers "
        "were begun again over another\n");
}

TEST_F(LinkWatchTest, SaysNothingOfWhatOthersBeginNorOfAPeerThatIsCountedAnew) {
    report.link.direction = ArrayLinkFacts::Direction::inbound;
    report.link.state = State::congested;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(look(), "");
    report.link = {};
    report.link.counters.ended = 7;
    EXPECT_EQ(look(), "") << "before its time";
    report.link.counters.ended = 2;
    EXPECT_EQ(look(), "");
}

}  // namespace
}  // namespace weft::node
