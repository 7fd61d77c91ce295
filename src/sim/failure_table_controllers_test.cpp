// SPDX-License-Identifier: Apache-2.0
// The failure table, cases 6 to 10 and 17: controllers that die at the points of a write that
// matter, or that only seem to be dead and go on. docs/failures.md has the table.
#include <gtest/gtest.h>

#include "support/scripted_volume.hpp"

namespace weft::sim {
namespace {

using namespace test;
using Request = ScriptedVolume::Request;
constexpr auto block = ScriptedVolume::block;
constexpr std::uint64_t at = 5 * block;

bool is_prepare_command(const RaidMessage& message) {
    return message.prepares() && !message.is_answer;
}
bool is_commit_command(const RaidMessage& message) {
    return message.commits() && !message.is_answer;
}
auto prepare_comes_to(unsigned box) {
    return [box](const RaidMessage& message) {
        return message.box == box && is_prepare_command(message);
    };
}
auto prepare_is_answered_by(unsigned box) {
    return [box](const RaidMessage& message) {
        return message.box == box && message.prepares() && message.is_answer;
    };
}

std::size_t prepared_of(ScriptedVolume& volume, const std::vector<unsigned>& boxes) {
    std::size_t count = 0;
    for (unsigned box : boxes) count += volume.in_doubt(box) != 0;
    return count;
}

void expect_nothing_happened(ScriptedVolume& volume, const Request& write,
                             const std::vector<std::byte>& before) {
    volume.expect_of(write.range, before);
    volume.expect_whole();
    EXPECT_EQ(volume.executions(write), 0u);
    EXPECT_FALSE(write.outcome);
}

/// It is asked again, with the same command number, and done.
void expect_done_when_asked_again(ScriptedVolume& volume, const Request& write) {
    auto& again = volume.ask_again(write);
    ASSERT_TRUE(volume.run_until([&] { return again.outcome.has_value(); })) << volume.story();
    EXPECT_TRUE(again.is_ok());
    volume.expect_of(write.range, write.octets);
    volume.expect_whole();
    EXPECT_EQ(volume.executions(write), 1u);
    EXPECT_FALSE(write.outcome) << "the first controller is dead";
}

/// What it asks for again was done before: it is told so, and nothing is fetched from its memory,
/// where there are other octets by now.
void expect_answered_from_memory(ScriptedVolume& volume, const Request& write) {
    auto& again = volume.ask_again(write, true);
    ASSERT_TRUE(volume.run_until([&] { return again.outcome.has_value(); })) << volume.story();
    EXPECT_TRUE(again.is_ok());
    volume.expect_whole();
    EXPECT_EQ(volume.executions(write), 1u);
}

/// Some boxes that take part have prepared, this one has not. False if none has.
bool prepare_all_but(ScriptedVolume& volume, unsigned box) {
    EXPECT_TRUE(volume.park(1, prepare_comes_to(box)));
    volume.run_dry();
    return prepared_of(volume, volume.participants_of(at)) != 0;
}

/// All have prepared, and the controller has not heard it of all. False if another comes after it.
bool prepare_all_unheard(ScriptedVolume& volume, unsigned last) {
    EXPECT_TRUE(volume.park(1, prepare_is_answered_by(last)));
    volume.run_dry();
    const auto all = volume.participants_of(at);
    return prepared_of(volume, all) == all.size();
}

TEST(FailureTable, Case06_TheControllerDiesBeforeAnythingIsPrepared_ItIsDoneOnceWhenAskedAgain) {
    for_each_volume(6, [](ScriptedVolume& volume) {
        const auto before = volume.expected({at, block});
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.park(1, is_prepare_command));
        volume.run_dry();
        ASSERT_EQ(prepared_of(volume, volume.participants_of(at)), 0u);
        volume.cluster.take_over(false);
        volume.let_go();
        if (volume.agenda.random.chance(50))
            expect_done_when_asked_again(volume, write);
        else
            expect_nothing_happened(volume, write, before);
    });
}

TEST(FailureTable, Case07_TheControllerDiesWithSomePrepared_TheOldValueIsEverywhere) {
    std::size_t runs = 0;
    for_each_volume(8, [&](ScriptedVolume& volume) {
        const auto before = volume.expected({at, block});
        const auto all = volume.participants_of(at);
        auto& write = volume.write({at, block});
        if (!prepare_all_but(volume, all[volume.agenda.random.below(all.size())])) return;
        ++runs;
        volume.cluster.take_over(false);
        volume.let_go();
        if (volume.agenda.random.chance(50)) {
            volume.expect_of(write.range, before);
            volume.expect_data("before it is asked for again");
            expect_done_when_asked_again(volume, write);
        } else {
            expect_nothing_happened(volume, write, before);
        }
    });
    if (runs_all_seeds()) {
        EXPECT_GT(runs, 5u);
    }
}

TEST(FailureTable, Case08_TheControllerDiesWithAllPrepared_TheHostThatAsksAgainIsToldItIsDone) {
    std::size_t runs = 0;
    for_each_volume(8, [&](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        auto& write = volume.write({at, block});
        if (!prepare_all_unheard(volume, all[volume.agenda.random.below(all.size())])) return;
        ++runs;
        EXPECT_FALSE(write.outcome);
        volume.cluster.take_over(false);
        volume.let_go();
        expect_answered_from_memory(volume, write);
        EXPECT_FALSE(write.outcome);
    });
    if (runs_all_seeds()) {
        EXPECT_GT(runs, 5u);
    }
}

TEST(FailureTable, Case09_TheControllerDiesAfterItsAnswerBeforeTheCommit_ItIsCommitted) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        auto& write = volume.write({at, block});
        const auto spared = all[volume.agenda.random.below(all.size())];
        const bool some = volume.agenda.random.chance(50);  // one has committed, or none
        ASSERT_TRUE(volume.park(1, [=](const RaidMessage& message) {
            return is_commit_command(message) && !(some && message.box == spared);
        }));
        volume.run_dry();
        EXPECT_TRUE(write.is_ok());
        volume.cluster.take_over(false);
        volume.let_go();
        expect_answered_from_memory(volume, write);
    });
}

/// One controller after another takes office and dies while it decides what its forerunners left.
void die_while_taking_over(ScriptedVolume& volume) {
    for (auto times = 1 + volume.agenda.random.below(4); times > 0; --times) {
        volume.cluster.take_over(false);
        volume.let_go();
        volume.some_steps(volume.agenda.random.below(40));
        if (!volume.agenda.random.chance(40)) continue;
        const auto box = static_cast<unsigned>(volume.agenda.random.below(volume.cluster.boxes()));
        volume.cluster.cut_power(box);
        volume.cluster.bring(box);
    }
    volume.cluster.take_over(false);
}

TEST(FailureTable, Case10_ControllersDieWhileTheyTakeOver_WhatWasAnsweredIsCommittedByTheLast) {
    for_each_volume(16, [](ScriptedVolume& volume) {
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.park(1, is_commit_command));
        EXPECT_TRUE(write.is_ok());
        die_while_taking_over(volume);
        expect_answered_from_memory(volume, write);
    });
}

TEST(FailureTable, Case10_ControllersDieWhileTheyTakeOver_WhatOneLacksIsUndoneByTheLast) {
    std::size_t runs = 0;
    for_each_volume(16, [&](ScriptedVolume& volume) {
        const auto before = volume.expected({at, block});
        const auto all = volume.participants_of(at);
        auto& write = volume.write({at, block});
        if (!prepare_all_but(volume, all[volume.agenda.random.below(all.size())])) return;
        ++runs;
        die_while_taking_over(volume);
        expect_nothing_happened(volume, write, before);
    });
    if (runs_all_seeds()) {
        EXPECT_GT(runs, 10u);
    }
}

}  // namespace
}  // namespace weft::sim
