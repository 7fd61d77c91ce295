// SPDX-License-Identifier: Apache-2.0
#include "sim/pipe.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "base/bytes.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;

struct PipeTest : ::testing::Test {
    void send(std::string_view text) { pipe.send({bytes_of(text).begin(), bytes_of(text).end()}); }

    Clockwork clockwork{1};
    LinkOptions options{
        .shortest_delay = 1ms, .longest_delay = 9ms, .window_bytes = 10, .give_up_after = 1s};
    std::string arrived;
    int gave_up = 0;
    Pipe pipe{clockwork, options, 0,
              [this](Piece piece) {
                  arrived += piece.signal == Signal::bytes ? text_of(piece.bytes) : "!";
              },
              [this] { ++gave_up; }};
};

TEST_F(PipeTest, KeepsTheOrderOfBytesAndSignals) {
    for (char letter = 'a'; letter <= 'e'; ++letter) send({&letter, 1});
    pipe.signal(Signal::goodbye);
    clockwork.schedule.run_for(500us);
    EXPECT_EQ(arrived, "");
    clockwork.schedule.run_for(9ms);
    EXPECT_EQ(arrived, "abcde!");
}

TEST_F(PipeTest, HasRoomAgainWhenBytesAreTakenAndNotBefore) {
    send("12345678");
    EXPECT_EQ(pipe.room(), 2u);
    clockwork.schedule.run_for(1s);
    EXPECT_EQ(pipe.room(), 2u);
    pipe.taken(5);
    EXPECT_EQ(pipe.room(), 7u);
}

TEST_F(PipeTest, IsHeldAsLongAsOneReasonLasts) {
    pipe.set_partitioned(true);
    pipe.set_receiver_dark(true);
    send("a");
    clockwork.schedule.run_for(100ms);
    pipe.set_partitioned(false);
    clockwork.schedule.run_for(100ms);
    EXPECT_EQ(arrived, "");
    pipe.set_receiver_dark(false);
    clockwork.schedule.run_for(Duration(0));
    EXPECT_EQ(arrived, "a");
}

TEST_F(PipeTest, GivesUpWhenHeldTooLongWithSomethingToSay) {
    pipe.set_partitioned(true);
    clockwork.schedule.run_for(10s);
    EXPECT_EQ(gave_up, 0) << "nothing was sent";
    send("a");
    clockwork.schedule.run_for(900ms);
    send("b");  // does not begin the time anew
    EXPECT_EQ(gave_up, 0);
    clockwork.schedule.run_for(100ms);
    EXPECT_EQ(gave_up, 1);
}

TEST_F(PipeTest, LosesWhatIsOnItsWayWhenDropped) {
    send("lost");
    pipe.drop();
    EXPECT_EQ(pipe.room(), 10u);
    send("kept");
    clockwork.schedule.run_for(1s);
    EXPECT_EQ(arrived, "kept");
}

}  // namespace
}  // namespace weft::sim
