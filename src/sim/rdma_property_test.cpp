// SPDX-License-Identifier: Apache-2.0
// The software RNIC under random work, over links that cut, delay, reset and go silent, held
// against a model that knows nothing of it: see rdma_swarm.hpp.
#include <gtest/gtest.h>

#include "sim/rdma_swarm.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

class RdmaProperty : public testing::Test {
protected:
    /// Runs it, and returns the trace's hash.
    std::uint64_t run(std::uint64_t seed) {
        RdmaSwarm swarm(seed, one_memory, other_memory);
        swarm.run();
        for (auto& complaint : swarm.complaints()) ADD_FAILURE() << complaint;
        tally.succeeded += swarm.tally().succeeded;
        tally.failed += swarm.tally().failed;
        tally.received += swarm.tally().received;
        tally.connections += swarm.tally().connections;
        return swarm.trace_hash();
    }

    Bytes one_memory = Bytes(swarm_memory_size), other_memory = Bytes(swarm_memory_size);
    RdmaSwarm::Tally tally;
};

TEST_F(RdmaProperty, CompletesAllWorkOnceAndRightWhateverHappens) {
    test::for_each_seed(300, [&](std::uint64_t seed) {
        auto hash = run(seed);
        if (seed % 10 != 0 || HasFailure()) return;
        EXPECT_EQ(run(seed), hash) << "another run differs";
    });
    if (!test::runs_all_seeds()) return;
    RecordProperty("succeeded", std::to_string(tally.succeeded));
    EXPECT_GT(tally.succeeded, 10'000u);
    EXPECT_GT(tally.received, 3'000u);
    EXPECT_GT(tally.failed, 1'000u);
    EXPECT_GT(tally.connections, 600u);
}

}  // namespace
}  // namespace weft::sim
