// SPDX-License-Identifier: Apache-2.0
#include "raid/membership.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using wire::ArrayMemberState;

wire::BoxIdentity box(std::uint8_t n) {
    wire::BoxIdentity identity;
    identity.octets[0] = static_cast<std::uint8_t>(10 + n);
    return identity;
}

struct Membership : ::testing::Test {
    Membership() {
        volume.level = 5;
        volume.boxes = 4;
        volume.chunk_bytes = 4096;
        volume.stripes = 10;
        volume.generation = wire::Generation{1};
        for (std::uint8_t i = 0; i < 4; ++i) {
            volume.members[i] = {box(i), ArrayMemberState::current, 0};
            boxes[box(i)] = {.up = true, .failed = false, .missed = false, .has_part = true};
        }
    }
    bool step() {
        auto next = next_volume(volume, boxes, wishes);
        if (!next) return false;
        volume = *next;
        return true;
    }
    ArrayMemberState state(std::uint8_t place) { return volume.members[place].state; }

    wire::ArrayVolume volume;
    std::map<wire::BoxIdentity, BoxFacts> boxes;
    MembershipWishes wishes;
};

TEST_F(Membership, StaysAsItIsWhileAllIsWell) {
    EXPECT_FALSE(step());
}

TEST_F(Membership, CountsOutAsManyAsTheCodeCanDoWithout) {
    boxes[box(1)].up = false;
    EXPECT_TRUE(step());
    EXPECT_EQ(state(1), ArrayMemberState::absent);
    EXPECT_EQ(volume.generation, wire::Generation{2});
    boxes[box(2)].up = false;
    EXPECT_FALSE(step()) << "without two of four there is no volume: it waits";
    EXPECT_EQ(state(2), ArrayMemberState::current);
    EXPECT_FALSE(can_lose(volume, 3));
}

TEST_F(Membership, CountsOutOneOfTwoThatFailAtOnce) {
    boxes[box(1)].up = boxes[box(3)].up = false;
    EXPECT_TRUE(step());
    EXPECT_EQ(state(1), ArrayMemberState::absent);
    EXPECT_EQ(state(3), ArrayMemberState::current);
}

TEST_F(Membership, HasABoxThatReturnsRebuiltBeforeItIsBelieved) {
    boxes[box(1)].missed = true;
    EXPECT_TRUE(step());
    EXPECT_EQ(state(1), ArrayMemberState::absent) << "it was away, if only for a moment";
    boxes[box(1)].missed = false;
    EXPECT_TRUE(step());
    EXPECT_EQ(state(1), ArrayMemberState::rebuilding);
    EXPECT_FALSE(step());
    wishes.whole = only(1);
    EXPECT_TRUE(step());
    EXPECT_EQ(state(1), ArrayMemberState::current);
}

TEST_F(Membership, LeavesAFailedBoxOut) {
    boxes[box(1)].failed = true;
    EXPECT_TRUE(step());
    EXPECT_EQ(state(1), ArrayMemberState::absent);
    EXPECT_FALSE(step()) << "it is up, and stays out";
}

TEST_F(Membership, GivesAPlaceToAnother) {
    boxes[box(9)] = {.up = true};
    wishes.replacements[1] = box(9);
    wishes.closed = 0b1111;
    EXPECT_TRUE(step()) << "the old one may still be there: it is replaced all the same";
    EXPECT_EQ(state(1), ArrayMemberState::absent);
    EXPECT_FALSE(step()) << "what was begun with the old one has not ended";
    wishes.closed &= ~only(1);
    EXPECT_TRUE(step());
    EXPECT_EQ(volume.members[1].box, box(9));
    EXPECT_EQ(state(1), ArrayMemberState::rebuilding);
    EXPECT_FALSE(step());
}

TEST_F(Membership, LetsNobodyInBeforeWhatWasBegunWithHimHasEnded) {
    boxes[box(1)].has_part = false;
    wishes.closed = only(1);
    EXPECT_TRUE(step());
    EXPECT_EQ(state(1), ArrayMemberState::absent);
    EXPECT_FALSE(step());
    wishes.closed = 0;
    EXPECT_TRUE(step());
    EXPECT_EQ(state(1), ArrayMemberState::rebuilding);
}

TEST_F(Membership, DoesNotReplaceWhatTheVolumeNeeds) {
    boxes[box(0)].up = false;
    EXPECT_TRUE(step());
    boxes[box(9)] = {.up = true};
    wishes.replacements[1] = box(9);
    EXPECT_FALSE(step());
    EXPECT_EQ(volume.members[1].box, box(1));
}

/// Whatever happens to the boxes, the volume never lacks more than it can, and comes to rest.
TEST(MembershipAlways, ComesToRestWithEnoughBoxes) {
    test::for_each_seed(200, [](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        struct Case : Membership {
            void TestBody() override {}
        } it;
        it.volume.level = seed % 2 ? 5 : 6;
        const unsigned most = seed % 2 ? 1 : 2;
        for (int i = 0; i < 100; ++i) {
            auto& facts = it.boxes[box(static_cast<std::uint8_t>(random() % 4))];
            switch (random() % 4) {
                case 0:
                    facts.up = !facts.up;
                    break;
                case 1:
                    facts.failed = !facts.failed;
                    break;
                case 2:
                    facts.missed = !facts.missed;
                    break;
                default:
                    it.wishes.whole = static_cast<Mask>(random() % 16);
            }
            for (auto& [identity, each] : it.boxes)
                if (random() % 2) each.missed = false;
            int steps = 0;
            while (it.step() && steps < 10) {
                ++steps;
                unsigned lost = 0;
                for (std::uint8_t place = 0; place < 4; ++place)
                    lost += it.state(place) != ArrayMemberState::current;
                ASSERT_LE(lost, most);
                // As the manager does: what was missed is known once the box is counted out.
                for (std::uint8_t place = 0; place < 4; ++place)
                    if (it.state(place) == ArrayMemberState::absent)
                        it.boxes[box(place)].missed = false;
            }
            ASSERT_LT(steps, 10) << "no rest";
        }
    });
}

}  // namespace
}  // namespace weft::raid
