// SPDX-License-Identifier: Apache-2.0
// Commands that take too long at a target that is alive.
#include <gtest/gtest.h>

#include "iscsi/initiator_session.hpp"
#include "support/initiator_bench.hpp"

namespace weft::iscsi {
namespace {

using namespace std::chrono_literals;
using Bench = InitiatorBench;

/// Lets so much time pass that every limit for a command has come, with pings in between.
void pass_patience(Bench& bench, Duration span) {
    for (Duration passed{}; passed < span; passed += 5s) bench.pass(5s);
}

TEST(InitiatorSession, AbortsACommandThatTakesTooLong) {
    Bench bench(21);
    bench.open();
    bench.movers[0]->stuck = true;
    TestRequest write(BlockOperation::write, 0, 512), read(BlockOperation::read, 512, 512);
    bench.disk.submit(filled(write, 5));
    pass_patience(bench, 15s);
    EXPECT_TRUE(bench.movers[0]->managements.empty());
    bench.disk.submit(read);
    pass_patience(bench, 15s);
    EXPECT_EQ(bench.movers[0]->managements, std::vector{wire::TaskManagementFunction::abort_task});
    EXPECT_EQ(write.failure(), Code::timed_out);
    EXPECT_FALSE(read.done()) << "its time has not come";
    bench.movers[0]->stuck = false;
    bench.run();
    EXPECT_TRUE(read.succeeded());
    EXPECT_EQ(bench.unit.memory[0], std::byte{0}) << "it is not sent again";
    EXPECT_EQ(bench.downs, 0);
}

TEST(InitiatorSession, AbortsNothingThatWasAnsweredMeanwhile) {
    Bench bench(22);
    bench.open();
    auto& mover = *bench.movers[0];
    mover.stuck = true;
    mover.managed.reset();
    TestRequest write(BlockOperation::write, 0, 512);
    bench.disk.submit(filled(write, 5));
    pass_patience(bench, 30s);
    ASSERT_EQ(mover.managements.size(), 1u);
    mover.stuck = false;
    bench.run();
    EXPECT_TRUE(write.succeeded());
    pass_patience(bench, 60s);
    EXPECT_EQ(mover.managements.size(), 1u) << "there is nothing more to be done about it";
    EXPECT_EQ(bench.downs, 0);
}

TEST(InitiatorSession, ResetsTheUnitAndBeginsAgainWhenAbortingDoesNotHelp) {
    for (auto answer : {std::optional(wire::TaskManagementResult::function_not_supported),
                        std::optional<wire::TaskManagementResult>()}) {
        Bench bench(23);
        bench.open();
        auto* mover = bench.movers[0].get();
        mover->stuck = true;
        mover->managed = answer;
        TestRequest write(BlockOperation::write, 0, 512), later(BlockOperation::write, 512, 512);
        bench.disk.submit(filled(write, 5));
        pass_patience(bench, 25s);
        bench.disk.submit(filled(later, 6));
        pass_patience(bench, 40s);
        using enum wire::TaskManagementFunction;
        EXPECT_EQ(mover->managements, (std::vector{abort_task, logical_unit_reset}));
        EXPECT_EQ(write.failure(), Code::timed_out);
        ASSERT_EQ(bench.downs, 1);
        EXPECT_EQ(bench.why_down.code, Code::timed_out);
        bench.session.begin();
        bench.run();
        EXPECT_TRUE(later.succeeded());
        EXPECT_EQ(bench.unit.memory[0], std::byte{0});
        EXPECT_EQ(bench.unit.memory[512], std::byte{6});
    }
}

}  // namespace
}  // namespace weft::iscsi
