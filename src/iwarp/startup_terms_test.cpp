// SPDX-License-Identifier: Apache-2.0
// An initiator that is answered with terms it cannot meet: a Terminate is to follow, so it matters
// when it says so.
#include "support/startup_words.hpp"

namespace weft::iwarp {
namespace {

using namespace test;
using namespace test::startups;

const struct {
    const char* terms;
    Heard expected;
} unacceptable_terms[] = {
    {"8010 8081", refused(Code::exhausted, MpaError::insufficient_inbound_reads, 20, 24)},
    {"8010 0010", refused(Code::unsupported, MpaError::no_matching_ready_message, 20, 24)},
};

TEST(Initiator, RefusesTermsItCannotMeet) {
    for (const auto& row : unacceptable_terms) {
        auto make = [] {
            auto startup = initiator({});
            EXPECT_EQ(send_all(startup), std::nullopt);
            return startup;
        };
        auto answer = reply("50 02 0004" + std::string(row.terms));
        hear_in_every_way(make, answer, row.expected, [](Startup& startup) {
            EXPECT_TRUE(pending(startup).empty());
            EXPECT_EQ(startup.deadline(), std::nullopt);
        });
    }
}

TEST(Initiator, RefusesThemOnlyWhenItsOwnFrameIsSent) {
    // A Terminate is to follow, and what is lent cannot be dropped for it.
    for (const auto& row : unacceptable_terms) {
        auto startup = initiator({});
        EXPECT_EQ(sent(startup, 5), std::nullopt);
        auto heard = hear(startup, reply("50 02 0004" + std::string(row.terms)), 100);
        EXPECT_FALSE(heard.event || heard.error);
        EXPECT_TRUE(startup.want().empty());
        EXPECT_EQ(startup.deadline(), start + Wishes{}.patience);
        EXPECT_EQ(sent(startup, pending(startup).size() - 1), std::nullopt);
        auto end = startup.sent(1);
        ASSERT_FALSE(end);
        EXPECT_EQ(end.error(), row.expected.error);
        EXPECT_EQ(startup.deadline(), std::nullopt);
        EXPECT_TRUE(pending(startup).empty());
    }
}

TEST(Initiator, KnowsHowToSendTheTerminateThatExplains) {
    for (const char* block : {"8010 8081", "8010 0010"}) {
        auto startup = initiator({.checksum = false});
        EXPECT_EQ(send_all(startup), std::nullopt);
        EXPECT_TRUE(hear(startup, reply("d0 02 0004" + std::string(block)), 100).error);
        EXPECT_TRUE(startup.terms().checksum);
        EXPECT_TRUE(startup.terms().markers_out);
    }
}

}  // namespace
}  // namespace weft::iwarp
