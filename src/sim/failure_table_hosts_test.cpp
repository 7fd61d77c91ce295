// SPDX-License-Identifier: Apache-2.0
// The failure table, cases 12, 13, 34 and 35: hosts that die, that write the same blocks, that say
// everything twice; and commands that come again. docs/failures.md has the table.
#include <gtest/gtest.h>

#include "support/scripted_volume.hpp"

namespace weft::sim {
namespace {

using namespace test;
constexpr auto block = ScriptedVolume::block;
constexpr std::uint64_t at = 2 * block;
constexpr std::uint8_t ann = 1, bob = 2;

bool is_commit_command(const RaidMessage& message) {
    return message.commits() && !message.is_answer;
}

TEST(FailureTable, Case12_AHostDiesBeforeItsDataIsFetched_TheOldDataStays) {
    for_each_volume(10, [](ScriptedVolume& volume) {
        const raid::Range range{at, 3 * block};
        const auto before = volume.expected(range);
        const auto generation = volume.generation();
        auto& write = volume.write(range, ann);
        volume.lose_host(ann);
        volume.expect_of(range, before);
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); }));
        EXPECT_FALSE(write.is_ok());
        EXPECT_EQ(volume.generation(), generation) << "no box is to blame";
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 0u);
        EXPECT_EQ(volume.count(VolumeEventKind::box_failed), 0u);
    });
}

/// At any moment: what some have and others have not is undone everywhere.
TEST(FailureTable, Case12_AHostDiesAmidItsWrite_AllOfItIsThereOrNothing) {
    for_each_volume(40, [](ScriptedVolume& volume) {
        const raid::Range range{at, (1 + volume.agenda.random.below(5)) * block};
        const auto before = volume.expected(range);
        auto& write = volume.write(range, ann);
        volume.some_steps(volume.agenda.random.below(40));
        volume.lose_host(ann);
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); }));
        if (!write.is_ok()) volume.expect_of(range, before);
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), write.is_ok() ? 1u : 0u);
        EXPECT_EQ(volume.count(VolumeEventKind::box_failed), 0u);
    });
}

TEST(FailureTable, Case13_AHostDiesAfterTheCommitPoint_ItsWriteStaysAndNothingIsHeld) {
    for_each_volume(10, [](ScriptedVolume& volume) {
        auto& write = volume.write({at, block}, ann);
        ASSERT_TRUE(volume.park(1, is_commit_command));
        volume.lose_host(ann);
        volume.let_go();
        // Another host is not kept from those blocks.
        auto& read = volume.read({at, block}, bob);
        ASSERT_TRUE(volume.run_until([&] { return read.outcome.has_value(); }));
        EXPECT_TRUE(read.is_ok());
        EXPECT_EQ(read.octets, write.octets);
        auto& beside = volume.write({at + block, block}, bob);
        ASSERT_TRUE(volume.run_until([&] { return beside.outcome.has_value(); }));
        EXPECT_TRUE(beside.is_ok());
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 1u);
    });
}

TEST(FailureTable, Case34_TwoHostsWriteTheSameBlocks_OneComesAfterTheOther) {
    for_each_volume(20, [](ScriptedVolume& volume) {
        const raid::Range range{at, (1 + volume.agenda.random.below(4)) * block};
        auto& first = volume.write(range, ann);
        volume.some_steps(volume.agenda.random.below(20));
        auto& second = volume.write(range, bob);
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        EXPECT_TRUE(first.is_ok() && second.is_ok());
        auto& read = volume.read(range);
        ASSERT_TRUE(volume.run_until([&] { return read.outcome.has_value(); }));
        EXPECT_TRUE(read.octets == first.octets || read.octets == second.octets)
            << "blocks of both";
        volume.expect_of(range, read.octets);
        volume.expect_whole();
    });
}

/// A box stands between two writes of the same row, so that both are under way for long.
TEST(FailureTable, Case34_TwoHostsWriteOneRow_ItsParityIsThatOfBoth) {
    for_each_volume(20, [](ScriptedVolume& volume) {
        const auto row = volume.layout.level() == Level::mirror ? block : 2 * block;
        auto& first = volume.write({at, block}, ann);
        auto& second = volume.write({at + row, block}, bob);
        volume.some_steps(volume.agenda.random.below(30));
        const auto box = static_cast<unsigned>(volume.agenda.random.below(volume.cluster.boxes()));
        volume.cluster.drop(box);
        volume.cluster.bring(box);
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        EXPECT_TRUE(first.is_ok() && second.is_ok());
        volume.expect_whole();
    });
}

TEST(FailureTable, Case35_AHostAsksAgainWhileItIsBeingDone_ItIsDoneOnce) {
    for_each_volume(15, [](ScriptedVolume& volume) {
        auto& write = volume.write({at, block}, ann);
        volume.some_steps(volume.agenda.random.below(30));
        auto& again = volume.ask_again(write);
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        EXPECT_TRUE(write.is_ok() && again.is_ok());
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 1u);
    });
}

/// The answer got lost with a connection; meanwhile another has written there.
TEST(FailureTable, Case35_AHostAsksAgainLongAfter_WhatWasWrittenSinceStays) {
    for_each_volume(10, [](ScriptedVolume& volume) {
        auto& write = volume.write({at, block}, ann);
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); }));
        auto& since = volume.write({at, block}, bob);
        ASSERT_TRUE(volume.run_until([&] { return since.outcome.has_value(); }));
        if (volume.agenda.random.chance(50)) volume.cluster.take_over(false);
        auto& again = volume.ask_again(write);
        ASSERT_TRUE(volume.run_until([&] { return again.outcome.has_value(); }));
        EXPECT_TRUE(again.is_ok());
        volume.expect_whole();  // bob's octets
        EXPECT_EQ(volume.executions(write), 1u);
    });
}

/// Sessions break and begin anew amid a write: what was on its way is lost or said again.
TEST(FailureTable, Case35_SessionsBreakAmidAWrite_EveryOrderCountsOnce) {
    for_each_volume(40, [](ScriptedVolume& volume) {
        auto& write = volume.write({at, 2 * block}, ann);
        for (auto breaks = 1 + volume.agenda.random.below(4); breaks > 0; --breaks) {
            volume.some_steps(volume.agenda.random.below(25));
            const auto box =
                static_cast<unsigned>(volume.agenda.random.below(volume.cluster.boxes()));
            volume.cluster.drop(box);
            if (volume.agenda.random.chance(50)) volume.some_steps(3);
            volume.cluster.bring(box);
        }
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); })) << volume.story();
        EXPECT_TRUE(write.is_ok());
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 1u);
    });
}

/// All that a write has sent to boxes comes there once more, in any order, when others have
/// written since.
TEST(FailureTable, Case35_CommandsComeOnceMore_NothingIsWrittenASecondTime) {
    for_each_volume(15, [](ScriptedVolume& volume) {
        struct Copy {
            unsigned box;
            raid::EncodedOrder command;
        };
        std::vector<Copy> copies;
        auto& write = volume.write({at, block}, ann);
        volume.look([&](const RaidMessage& message) {
            if (message.command) copies.push_back({message.box, *message.command});
        });
        ASSERT_TRUE(volume.run_until([&] { return write.outcome && volume.is_quiet(); }));
        volume.look(nullptr);
        ASSERT_GE(copies.size(), 2u);
        auto& since = volume.write({at, block}, bob);
        ASSERT_TRUE(volume.run_until([&] { return since.outcome && volume.is_quiet(); }));
        std::uint64_t ticket = std::uint64_t{1} << 62;  // nobody waits for these answers
        while (!copies.empty()) {
            std::swap(copies[volume.agenda.random.below(copies.size())], copies.back());
            const auto& [box, command] = copies.back();
            volume.cluster.box(box).receive(raid::CommandTicket{++ticket}, command.command_block,
                                            command.parameters);
            copies.pop_back();
            volume.some_steps(volume.agenda.random.below(6));
        }
        volume.run_dry();
        volume.expect_whole();  // bob's octets, and no window is left open
        EXPECT_EQ(volume.count(VolumeEventKind::box_failed), 0u);
    });
}

}  // namespace
}  // namespace weft::sim
