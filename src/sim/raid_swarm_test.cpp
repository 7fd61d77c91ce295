// SPDX-License-Identifier: Apache-2.0
// Whole volumes under random work and random faults: see raid_swarm.hpp. The same runs, as many as
// anybody likes, by `weft sim run raid`.
#include "sim/raid_swarm.hpp"

#include <gtest/gtest.h>

#include "support/seeds.hpp"

namespace weft::sim {
namespace {

RaidSwarm::Tally run(std::uint64_t seed, const RaidSwarmOptions& options) {
    RaidSwarm swarm(seed, options);
    swarm.run();
    for (const auto& complaint : swarm.complaints())
        ADD_FAILURE() << complaint << "\n" << swarm.habits().to_text();
    return swarm.tally();
}

TEST(RaidSwarm, LosesNothingWithoutAJournalButWhatThePaperLoses) {
    RaidSwarm::Tally all;
    test::for_each_seed(600, [&](std::uint64_t seed) { all.add(run(seed, {})); });
    if (!test::runs_all_seeds()) return;
    EXPECT_GT(all.writes, 5'000u);
    EXPECT_GT(all.power_cuts, 300u);
    EXPECT_GT(all.session_cuts, 300u);
    EXPECT_GT(all.takeovers, 100u);
    EXPECT_GT(all.rebuilds, 100u);
}

TEST(RaidSwarm, StopsRatherThanGivingWrongDataWhenTooManyBoxesAreAway) {
    RaidSwarm::Tally all;
    RaidSwarmOptions options;
    options.beyond = true;
    test::for_each_seed(200, [&](std::uint64_t seed) { all.add(run(seed, options)); });
    if (test::runs_all_seeds()) EXPECT_GT(all.stops, 50u);
}

TEST(RaidSwarm, LosesNothingWithAJournal) {
    RaidSwarm::Tally all;
    RaidSwarmOptions options;
    options.consistency = wire::ArrayConsistency::journal;
    test::for_each_seed(250, [&](std::uint64_t seed) { all.add(run(seed, options)); });
    if (!test::runs_all_seeds()) return;
    EXPECT_GT(all.writes, 5'000u);
    EXPECT_GT(all.power_cuts, 200u);
    EXPECT_GT(all.takeovers, 200u);
    EXPECT_GT(all.host_deaths, 10u);
}

/// Runs in which something was wrong once.
TEST(RaidSwarm, LosesNothingWithAJournalAnyMore) {
    RaidSwarmOptions options;
    options.consistency = wire::ArrayConsistency::journal;
    // A box was taken for whole that had been lost again while its rebuild was being saved.
    for (std::uint64_t seed : {800u, 1114u, 2691u, 3229u, 3354u, 3908u, 6764u}) run(seed, options);
    // A write was committed that the disk had not taken home, and a new controller counted on it.
    run(9344, options);
}

TEST(RaidSwarm, LosesNothingWithoutAJournalAnyMore) {
    // A box that was counted out and is whole again was taken for one that had just lost its power.
    for (std::uint64_t seed : {1734u, 5134u, 5857u}) run(seed, {});
    // A write was begun again before it was known that a box it counts on had gone.
    run(3467, {});
    // A box that failed a commit was forgotten before the controller had heard of it: the swarm's.
    run(5725, {});
}

TEST(RaidSwarm, BecomesWholeAgainWhenTooManyBoxesWereAway) {
    RaidSwarmOptions options;
    options.beyond = true;
    options.consistency = wire::ArrayConsistency::journal;
    // A box that nobody can do without had failed, and nobody was told to start it anew.
    for (std::uint64_t seed : {107u, 155u, 300u}) run(seed, options);
    // One that was back before its loss had any consequence was waited for all the same.
    options.consistency = wire::ArrayConsistency::none;
    run(654, options);
}

/// Whoever finds nothing wrong when something is broken would find nothing at all.
class BrokenOnPurpose : public testing::TestWithParam<RaidMutation> {};

TEST_P(BrokenOnPurpose, IsFound) {
    RaidSwarmOptions options;
    options.consistency = wire::ArrayConsistency::journal;
    options.mutation = GetParam();
    constexpr std::uint64_t within = 60;
    for (std::uint64_t seed = 1; seed <= within; ++seed) {
        RaidSwarm swarm(seed, options);
        swarm.run();
        for (const auto& complaint : swarm.complaints())
            if (complaint.starts_with("S")) return RecordProperty("seed", std::to_string(seed));
    }
    ADD_FAILURE() << "nothing was found within " << within << " seeds";
}

INSTANTIATE_TEST_SUITE_P(Mutations, BrokenOnPurpose,
                         testing::Values(RaidMutation::flushes_do_nothing,
                                         RaidMutation::epoch_is_forgotten,
                                         RaidMutation::aborts_are_lost,
                                         RaidMutation::commits_are_lost));

TEST(RaidSwarm, IsTheSameRunForTheSameSeed) {
    auto told = [](std::uint64_t seed) {
        std::string text;
        RaidSwarmOptions options;
        options.trace = [&](const std::string& line) { text += line + "\n"; };
        RaidSwarm swarm(seed, options);
        swarm.run();
        return text;
    };
    for (std::uint64_t seed : {1u, 2u, 3u}) EXPECT_EQ(told(seed), told(seed));
}

}  // namespace
}  // namespace weft::sim
