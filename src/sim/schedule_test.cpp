// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace weft::sim {
namespace {

struct ScheduleTest : ::testing::Test {
    Trace trace;
    Schedule schedule{trace};
    std::string order;

    void plan(std::int64_t when, char letter) {
        schedule.at({when}, "letter", 0, [this, letter] { order += letter; });
    }
};

TEST_F(ScheduleTest, RunsByInstantAndThenByOrderOfAsking) {
    plan(20, 'c');
    plan(10, 'a');
    plan(20, 'd');
    plan(10, 'b');
    EXPECT_TRUE(schedule.run_until_quiet(100));
    EXPECT_EQ(order, "abcd");
    EXPECT_EQ(schedule.now(), Instant{20});
}

TEST_F(ScheduleTest, TakesThePastForNow) {
    plan(10, 'a');
    schedule.run_until_quiet(1);
    plan(3, 'b');
    EXPECT_TRUE(schedule.step());
    EXPECT_EQ(schedule.now(), Instant{10});
    EXPECT_EQ(order, "ab");
    EXPECT_FALSE(schedule.step());
}

TEST_F(ScheduleTest, RunsWhatIsDueAndLeavesTheClockAtTheEnd) {
    plan(10, 'a');
    plan(30, 'b');
    plan(31, 'c');
    schedule.run_for(Duration(30));
    EXPECT_EQ(order, "ab");
    EXPECT_EQ(schedule.now(), Instant{30});
    schedule.run_for(Duration(0));
    EXPECT_EQ(order, "ab");
    schedule.run_for(Duration(1));
    EXPECT_EQ(order, "abc");
}

TEST_F(ScheduleTest, SaysWhenItDidNotBecomeQuiet) {
    std::function<void()> again = [&] { schedule.at(schedule.now() + Duration(1), "x", 0, again); };
    again();
    EXPECT_FALSE(schedule.run_until_quiet(1000));
    EXPECT_EQ(schedule.now(), Instant{1000});
}

TEST_F(ScheduleTest, ForgetsACancelledEvent) {
    auto event = schedule.at({5}, "x", 0, [this] { order += 'x'; });
    EXPECT_TRUE(schedule.waits(event));
    schedule.cancel(event);
    schedule.cancel(event);
    EXPECT_FALSE(schedule.waits(event));
    EXPECT_TRUE(schedule.run_until_quiet(10));
    EXPECT_EQ(order, "");
}

TEST_F(ScheduleTest, StopsARunThatNeverLetsTimePass) {
    std::function<void()> again = [&] { schedule.soon("x", 0, again); };
    again();
    EXPECT_DEATH(schedule.run_for(Duration(1)), "events_per_instant");
}

TEST_F(ScheduleTest, TellsTheTraceWhatRan) {
    std::vector<std::string> lines;
    trace.show([&](const std::string& line) { lines.push_back(line); });
    plan(10, 'a');
    auto before = trace.hash();
    schedule.step();
    EXPECT_EQ(lines, std::vector<std::string>{"10 letter 0"});
    EXPECT_NE(trace.hash(), before);
}

TEST_F(ScheduleTest, KeepsOneAppointmentAndForgetsItWithItsOwner) {
    auto appointment = std::make_unique<Appointment>(schedule, "x", 0);
    appointment->set({5}, [this] { order += 'a'; });
    appointment->set({7}, [this] { order += 'b'; });
    EXPECT_EQ(appointment->when(), Instant{7});
    schedule.run_for(Duration(10));
    EXPECT_EQ(order, "b");
    EXPECT_FALSE(appointment->is_set());
    appointment->set({20}, [this] { order += 'c'; });
    appointment.reset();
    EXPECT_TRUE(schedule.run_until_quiet(10));
    EXPECT_EQ(order, "b");
}

}  // namespace
}  // namespace weft::sim
