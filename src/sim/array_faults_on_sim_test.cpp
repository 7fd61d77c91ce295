// SPDX-License-Identifier: Apache-2.0
// Whole arrays of the production nodes under random work and random faults: see array_swarm.hpp.
#include <gtest/gtest.h>

#include "sim/array_swarm.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

ArraySwarm::Tally run(std::uint64_t seed) {
    ArraySwarm swarm(seed, ArraySwarmOptions{});
    swarm.run();
    for (const auto& complaint : swarm.complaints())
        ADD_FAILURE() << complaint << "\n" << swarm.to_text();
    return swarm.tally();
}

TEST(ArrayFaults, LoseNothingThatWasAnswered) {
    ArraySwarm::Tally all;
    test::for_each_seed(60, [&](std::uint64_t seed) { all.add(run(seed)); });
    if (!test::runs_all_seeds()) return;
    EXPECT_GT(all.writes, 400u);
    EXPECT_GT(all.power_cuts, 30u);
    EXPECT_GT(all.link_faults, 30u);
    EXPECT_GT(all.takeovers, 20u);
    EXPECT_GT(all.kept_away, 5u);
}

/// Whoever finds nothing wrong when something is broken would find nothing at all.
TEST(ArrayFaults, AreFoundWhereDisksLie) {
    ArraySwarmOptions options;
    options.disks_lie = true;
    constexpr std::uint64_t within = 10;
    for (std::uint64_t seed = 1; seed <= within; ++seed) {
        ArraySwarm swarm(seed, options);
        swarm.run();
        // Boxes know that their journals are not what they were: they refuse rather than guess.
        if (!swarm.complaints().empty()) return RecordProperty("seed", std::to_string(seed));
    }
    ADD_FAILURE() << "nothing was found within " << within << " seeds";
}

TEST(ArrayFaults, AreTheSameForTheSameSeed) {
    auto told = [](std::uint64_t seed) {
        std::string text;
        ArraySwarmOptions options;
        options.trace = [&](const std::string& line) { text += line + "\n"; };
        ArraySwarm swarm(seed, options);
        swarm.run();
        return text;
    };
    EXPECT_EQ(told(3), told(3));
}

}  // namespace
}  // namespace weft::sim
