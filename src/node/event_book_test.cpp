// SPDX-License-Identifier: Apache-2.0
#include "node/event_book.hpp"

#include <gtest/gtest.h>

#include <map>

#include "raid/records.hpp"
#include "support/manual_world.hpp"

namespace weft::node {
namespace {

using namespace std::chrono_literals;

/// A store that answers when it is told to.
class EventBookTest : public testing::Test {
protected:
    void answer(Result<void> outcome = {}) {
        ASSERT_TRUE(told) << "nothing was to be kept";
        if (outcome)
            for (const auto& change : asked) records[change.name] = *change.record;
        std::exchange(told, {})(outcome);
    }
    std::vector<wire::ArrayEventRecord> recalled() const {
        std::vector<wire::ArrayEventRecord> found;
        for (const auto& [name, record] : records)
            found.push_back(*raid::parse_record<wire::ArrayEventRecord>(record));
        return found;
    }

    test::ManualWorld world;
    std::vector<raid::MetadataChange> asked;
    std::function<void(Result<void>)> told;
    std::map<std::string, std::vector<std::byte>> records;
    EventBook book{world, [this](auto changes, auto answered) {
                       ASSERT_FALSE(told) << "one after another";
                       asked = std::move(changes);
                       told = std::move(answered);
                   }};
};

TEST_F(EventBookTest, KeepsTogetherWhatHappensTogether) {
    book.note("photos", "oak", "box lost");
    book.note("photos", "oak", "member absent");
    EXPECT_FALSE(told);
    EXPECT_FALSE(book.quiet());
    world.advance(EventBook::gather);
    ASSERT_EQ(asked.size(), 2u);
    book.note("", "", "later");
    world.advance(1s);
    answer();
    EXPECT_FALSE(told) << "what came meanwhile is gathered, too";
    world.advance(EventBook::gather);
    ASSERT_EQ(asked.size(), 1u);
    answer();
    EXPECT_TRUE(book.quiet());
    world.advance(1min);
    EXPECT_FALSE(told);
}

TEST_F(EventBookTest, IsReadByTheNextController) {
    world.advance(90s);
    book.note("photos", "oak", "box lost");
    book.note("", "elm", std::string(300, 'x'));
    book.flush();
    answer();
    test::ManualWorld other;
    EventBook next(other, [](auto, auto) {});
    next.recall(recalled());
    ASSERT_EQ(next.events().size(), 2u);
    const auto& first = next.events().front();
    EXPECT_EQ(first.when, Date(90s));
    EXPECT_EQ(first.volume + first.box + first.what, "photosoakbox lost");
    EXPECT_EQ(next.events().back().what, std::string(255, 'x')) << "what there is room for";
    EXPECT_EQ(next.first_own(), 3 + EventBook::gap) << "more may have been told than was kept";
    next.note("", "", "took office");
    EXPECT_EQ(next.events().back().number, next.first_own());
}

TEST_F(EventBookTest, KeepsTheLastOfMany) {
    for (int i = 1; i <= 2000; ++i) book.note("", "", std::to_string(i));
    EXPECT_EQ(book.events().size(), EventBook::remembered);
    for (world.advance(EventBook::gather); told; world.advance(EventBook::gather)) {
        EXPECT_LE(asked.size(), EventBook::at_once);
        answer();
    }
    EXPECT_EQ(records.size(), EventBook::lasting);
    test::ManualWorld other;
    EventBook next(other, [](auto, auto) {});
    next.recall(recalled());
    EXPECT_EQ(next.events().front().what, std::to_string(2001 - EventBook::lasting));
    EXPECT_EQ(next.events().back().what, "2000");
}

TEST_F(EventBookTest, AsksAStoreAgainThatIsAway) {
    book.note("", "oak", "box lost");
    world.advance(EventBook::gather);
    answer(Error{Code::disconnected});
    EXPECT_FALSE(book.quiet());
    world.advance(EventBook::try_again_after);
    answer();
    EXPECT_TRUE(book.quiet());
}

TEST_F(EventBookTest, SaysNothingMoreThereWhenDeposed) {
    book.note("", "oak", "box lost");
    world.advance(EventBook::gather);
    answer(Error{Code::access_denied});
    EXPECT_TRUE(book.quiet());
    world.advance(1min);
    EXPECT_FALSE(told);
}

}  // namespace
}  // namespace weft::node
