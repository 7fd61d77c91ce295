// SPDX-License-Identifier: Apache-2.0
// What the compiler does not prove of the table beside its definition.
#include "verbs/queue_pair_life.hpp"

#include <gtest/gtest.h>

namespace weft::verbs {
namespace {

using enum QueuePairState;
using enum LifeEvent;

constexpr std::array states{idle, running, closing, terminating, failed};
constexpr std::array events{connected,    close_asked, fault, peer_terminated,
                            stream_ended, stream_lost, reset};

QueuePairState after(QueuePairState from, LifeEvent on) {
    auto step = next_step(from, on);
    return step ? step->to : from;
}

TEST(QueuePairLife, IsAConnectionsWholeFromIdleToIdle) {
    auto state = idle;
    for (auto event : {connected, close_asked, stream_ended, reset}) state = after(state, event);
    EXPECT_EQ(state, idle);
    EXPECT_EQ(after(idle, connected), running);
}

TEST(QueuePairLife, EndsOnceWhateverElseEnds) {
    for (auto state : {closing, terminating, failed})
        for (auto event : {connected, close_asked, fault, peer_terminated})
            EXPECT_FALSE(next_step(state, event)) << "ends that come twice end nothing";
    for (auto event : {stream_ended, stream_lost}) {
        EXPECT_EQ(after(closing, event), failed);
        EXPECT_EQ(after(terminating, event), failed);
        EXPECT_FALSE(next_step(failed, event));
    }
}

TEST(QueuePairLife, OnlyBeginsAgainOnceItHasFailed) {
    for (auto state : {running, closing, terminating}) EXPECT_FALSE(next_step(state, reset));
    EXPECT_EQ(after(failed, reset), idle);
}

TEST(QueuePairLife, TellsTheApplicationOfWhatItDidNotDoItself) {
    for (auto state : states)
        for (auto event : events) {
            auto step = next_step(state, event);
            bool told = step && includes(step->then, Duty::raise_event);
            bool news = state == running &&
                        (event == fault || event == peer_terminated || event == stream_lost);
            EXPECT_EQ(told, news);
        }
}

TEST(QueuePairLife, StaysIdleIfTheConnectionNeverWas) {
    EXPECT_EQ(after(idle, stream_ended), idle);
    EXPECT_EQ(after(idle, stream_lost), idle);
}

}  // namespace
}  // namespace weft::verbs
