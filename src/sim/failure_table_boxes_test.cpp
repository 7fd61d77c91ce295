// SPDX-License-Identifier: Apache-2.0
// The failure table, cases 1 to 5 and 11: boxes that die at the points of a write that matter, and
// the rack that loses its power while it is being written. docs/failures.md has the table.
#include <gtest/gtest.h>

#include "support/scripted_volume.hpp"

namespace weft::sim {
namespace {

using namespace test;
using wire::ArrayMemberState;
constexpr auto block = ScriptedVolume::block;
constexpr std::uint64_t at = 3 * block;

/// A command that shall make something lasting has come to this box, and has not been begun.
auto prepare_comes_to(unsigned box) {
    return [box](const RaidMessage& message) {
        return message.box == box && message.prepares() && !message.is_answer;
    };
}
/// It is lasting there, and nobody has heard of it.
auto prepare_is_answered_by(unsigned box) {
    return [box](const RaidMessage& message) {
        return message.box == box && message.prepares() && message.is_answer;
    };
}
auto commit_comes_to(unsigned box) {
    return [box](const RaidMessage& message) {
        return message.box == box && message.commits() && !message.is_answer;
    };
}

/// The box is off: the write is answered once, under a volume without it that outlives everything,
/// and is there though the box is not; when it returns it has what it missed.
void expect_done_without(ScriptedVolume& volume, const ScriptedVolume::Request& write,
                         unsigned lost, std::uint64_t generation) {
    volume.let_go();
    ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); })) << volume.story();
    EXPECT_TRUE(write.is_ok());
    volume.expect_data("while the box is away");
    EXPECT_EQ(volume.member(lost), ArrayMemberState::absent);
    EXPECT_GT(volume.generation(), generation);
    EXPECT_EQ(volume.count(VolumeEventKind::member_absent), 1u);
    volume.expect_whole();
    EXPECT_EQ(volume.executions(write), 1u);
}

TEST(FailureTable, Case01_ADataBoxDiesBeforeItHasPrepared_TheWriteIsDoneWithoutIt) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto lost = volume.box_of(at);
        const auto generation = volume.generation();
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.park(1, prepare_comes_to(lost)));
        if (volume.agenda.random.chance(50)) {  // amid it
            volume.let_go();
            for (auto steps = volume.agenda.random.below(12); steps > 0; --steps)
                if (volume.in_doubt(lost) == 0) volume.some_steps(1);
        }
        if (volume.in_doubt(lost) != 0) return;  // too late: that is the third case
        volume.cluster.cut_power(lost);
        EXPECT_FALSE(write.outcome);
        expect_done_without(volume, write, lost, generation);
    });
}

TEST(FailureTable, Case02_AParityBoxDiesBeforeItHasPrepared_TheWriteIsDoneWithoutIt) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto lost = all[1 + volume.agenda.random.below(all.size() - 1)];
        const auto generation = volume.generation();
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.park(1, prepare_comes_to(lost)));
        volume.cluster.cut_power(lost);
        EXPECT_FALSE(write.outcome);
        expect_done_without(volume, write, lost, generation);
    });
}

TEST(FailureTable, Case03_ABoxDiesOnceItHasPrepared_TheHostSeesOneAnswer) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto lost = all[volume.agenda.random.below(all.size())];
        const auto generation = volume.generation();
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.park(1, prepare_is_answered_by(lost)));
        volume.run_dry();  // the others do what they can
        EXPECT_FALSE(write.outcome);
        EXPECT_EQ(volume.in_doubt(lost), 1u);
        volume.cluster.cut_power(lost);
        EXPECT_EQ(volume.in_doubt(lost), 1u) << "it is lasting";
        expect_done_without(volume, write, lost, generation);
    });
}

TEST(FailureTable, Case04_ABoxDiesAfterTheCommitPoint_WhatWasAnsweredIsMadeOfTheOthers) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto lost = all[volume.agenda.random.below(all.size())];
        const auto generation = volume.generation();
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.park(1, commit_comes_to(lost)));
        EXPECT_TRUE(write.is_ok()) << "it was answered at the commit point";
        if (volume.agenda.random.chance(50)) volume.run_dry();  // the others commit, or not yet
        volume.cluster.cut_power(lost);
        expect_done_without(volume, write, lost, generation);
    });
}

/// Nobody can be spared, so it is waited for: its journal knows, and nothing is rebuilt.
TEST(FailureTable, Case05_ABoxStartsAnewAndIsNeeded_ItsJournalKnowsAndNothingIsRebuilt) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto again = all[volume.agenda.random.below(all.size())];
        for (unsigned box = 0, spare = volume.layout.spare_columns(); spare > 0; ++box) {
            if (box == again) continue;
            volume.cluster.drop(box), --spare;
            ASSERT_TRUE(
                volume.run_until([&] { return volume.member(box) == ArrayMemberState::absent; }));
        }
        ASSERT_TRUE(volume.run_until([&] { return volume.state() == VolumeState::degraded; }));
        const auto generation = volume.generation();
        auto& write = volume.write({at, block});
        if (!volume.park(1, prepare_is_answered_by(again))) return;  // it has no part in it
        volume.cluster.cut_power(again);
        volume.let_go();
        volume.run_dry();
        EXPECT_FALSE(write.outcome);
        volume.cluster.bring(again);
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); })) << volume.story();
        EXPECT_TRUE(write.is_ok());
        EXPECT_EQ(volume.generation(), generation) << "no membership has changed";
        EXPECT_EQ(volume.count(VolumeEventKind::rebuild_began), 0u);
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 1u);
    });
}

/// And where it was counted out meanwhile it is given what was written, and nothing else.
TEST(FailureTable, Case05_ABoxStartsAnewAndWasCountedOut_OnlyWhatWasWrittenIsRebuilt) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto again = all[volume.agenda.random.below(all.size())];
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.park(1, prepare_is_answered_by(again)));
        volume.cluster.cut_power(again);
        volume.let_go();
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); }));
        EXPECT_TRUE(write.is_ok());
        volume.cluster.bring(again);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        const auto* began = volume.last(VolumeEventKind::rebuild_began);
        ASSERT_TRUE(began);
        EXPECT_EQ(began->number, 1u) << "stripes: one was written";
        volume.expect_whole();
    });
}

/// Controller and boxes go dark together at any moment of a write, and as many boxes as the level
/// can do without never return. This is where parity without a journal has its write hole.
TEST(FailureTable, Case11_TheRackGoesDarkAndABoxDoesNotReturn_NoBlockIsHalfWritten) {
    for_each_volume(24, [](ScriptedVolume& volume) {
        const raid::Range range{at, (1 + volume.agenda.random.below(4)) * block};
        const auto before = volume.expected(range);
        auto& write = volume.write(range);
        volume.some_steps(volume.agenda.random.below(70));
        const bool answered = write.is_ok();
        for (unsigned i = 0; i < volume.cluster.boxes(); ++i) volume.cluster.cut_power(i);
        volume.cluster.take_over(false);
        const auto boxes = volume.cluster.boxes();
        const auto first = static_cast<unsigned>(volume.agenda.random.below(boxes));
        for (unsigned i = volume.layout.spare_columns(); i < boxes; ++i)
            volume.cluster.bring((first + i) % boxes);
        ASSERT_TRUE(volume.run_until([&] { return volume.state() == VolumeState::degraded; }))
            << volume.story();
        auto& read = volume.read(range);
        ASSERT_TRUE(volume.run_until([&] { return read.outcome.has_value(); }));
        ASSERT_TRUE(read.is_ok());
        if (answered) {
            EXPECT_EQ(read.octets, write.octets) << "what was answered is lost";
        }
        EXPECT_TRUE(read.octets == write.octets || read.octets == before) << "half a write";
        volume.expect_of(range, read.octets);
        volume.expect_data("without the boxes that did not return");
        volume.expect_whole();
    });
}

}  // namespace
}  // namespace weft::sim
