// SPDX-License-Identifier: Apache-2.0
#include "node/volume_roster.hpp"

#include <gtest/gtest.h>

namespace weft::node {
namespace {

using wire::ArrayMemberState;

wire::BoxIdentity box(std::uint8_t number) {
    return {{number}};
}

class VolumeRosterTest : public testing::Test {
protected:
    void SetUp() override {
        volume.generation = wire::Generation{1};
        volume.boxes = 6;
        for (std::uint8_t i = 0; i < 6; ++i)
            volume.members[i] = {.box = box(i), .state = ArrayMemberState::current};
        EXPECT_EQ(roster.follow(volume).size(), 6u);
    }
    std::vector<wire::HostNews> becomes(std::uint8_t place, ArrayMemberState state) {
        volume.members[place].state = state;
        return next();
    }
    std::vector<wire::HostNews> next() {
        volume.generation = wire::Generation{static_cast<std::uint64_t>(volume.generation) + 1};
        return roster.follow(volume);
    }

    wire::ArrayVolume volume{};
    VolumeRoster roster;
};

TEST_F(VolumeRosterTest, HasNoNewsOfTheBoxesItBeganWith) {
    EXPECT_EQ(roster.number(), 0u);
    EXPECT_TRUE(roster.since(0)->empty());
    EXPECT_TRUE(next().empty()) << "another generation, the same boxes";
}

TEST_F(VolumeRosterTest, TellsWhoWasCountedOutAndWhoCameBack) {
    EXPECT_EQ(becomes(2, ArrayMemberState::absent),
              (std::vector<wire::HostNews>{{.number = 1, .box = box(2), .may_come = false}}));
    EXPECT_EQ(roster.since(0)->size(), 1u);
    EXPECT_TRUE(roster.since(1)->empty());
    EXPECT_EQ(becomes(2, ArrayMemberState::rebuilding).front().may_come, true);
    EXPECT_TRUE(becomes(2, ArrayMemberState::current).empty());
    const std::vector<wire::HostNews> last{{.number = 2, .box = box(2), .may_come = true}};
    EXPECT_EQ(roster.since(0), last) << "only the last of each box matters";
    EXPECT_EQ(roster.since(1), last);
}

TEST_F(VolumeRosterTest, TellsOfABoxThatTookAnothersPlace) {
    volume.members[4].box = box(9);
    EXPECT_EQ(next().size(), 2u);
    const auto news = roster.since(0);
    ASSERT_TRUE(news);
    ASSERT_EQ(news->size(), 2u);
    for (std::uint32_t i = 0; i < 2; ++i) {
        EXPECT_EQ((*news)[i].number, i + 1);
        EXPECT_EQ((*news)[i].may_come, (*news)[i].box == box(9));
    }
}

TEST_F(VolumeRosterTest, SaysSoWhereThereIsMoreThanOneAnswerHolds) {
    for (std::uint8_t place = 0; place < 4; ++place)
        EXPECT_EQ(becomes(place, ArrayMemberState::absent).size(), 1u);
    EXPECT_EQ(roster.since(0), std::nullopt);
    EXPECT_EQ(roster.since(1)->size(), 3u);
    EXPECT_EQ(roster.since(1)->front().number, 2u);
}

TEST_F(VolumeRosterTest, ForgetsWhoWentLongAgoAndKnowsThatItDid) {
    for (std::uint8_t i = 0; i < 2 * VolumeRoster::gone_max; ++i) {
        volume.members[5].box = box(static_cast<std::uint8_t>(100 + i));
        EXPECT_EQ(next().size(), 2u);
        EXPECT_EQ(roster.since(roster.number() - 2)->size(), 2u);
    }
    EXPECT_EQ(roster.since(0), std::nullopt);
    EXPECT_TRUE(roster.since(roster.number())->empty());
}

}  // namespace
}  // namespace weft::node
