// SPDX-License-Identifier: Apache-2.0
#include "sim/world.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/recording_engine.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;

TEST(World, BeginsAtZeroAndLetsTimePassOnlyWhenRun) {
    World world(1);
    EXPECT_EQ(world.now(), Instant{});
    world.run_for(3s);
    EXPECT_EQ(world.now(), Instant{} + 3s);
}

TEST(World, DrawsEveryNumberFromItsSeed) {
    World one(5), same(5), another(6);
    auto number = one.random();
    EXPECT_EQ(number, same.random());
    EXPECT_NE(number, another.random());
}

TEST(World, DefersUntilTheCallerIsDone) {
    World world(1);
    std::string order;
    world.defer([&] {
        order += 'a';
        world.defer([&] { order += 'c'; });
        order += 'b';
    });
    EXPECT_EQ(order, "");
    EXPECT_TRUE(world.run_until_quiet(10));
    EXPECT_EQ(order, "abc");
    EXPECT_EQ(world.now(), Instant{});
}

TEST(World, CallsATimerOnceAtItsLatestSetting) {
    World world(1);
    std::vector<Instant> calls;
    auto timer = world.make_timer([&] { calls.push_back(world.now()); });
    timer->set(Instant{100});
    timer->set(Instant{300});
    EXPECT_TRUE(world.run_until_quiet(10));
    EXPECT_EQ(calls, std::vector<Instant>{Instant{300}});
    timer->set(Instant{100});  // the past is now, but not from inside set()
    EXPECT_EQ(calls.size(), 1u);
    EXPECT_TRUE(world.run_until_quiet(10));
    EXPECT_EQ(calls.size(), 2u);
    timer->set(Instant{400});
    timer->cancel();
    EXPECT_TRUE(world.run_until_quiet(10));
    EXPECT_EQ(calls.size(), 2u);
}

TEST(World, LetsATimerSetAndDestroyItselfInItsTask) {
    World world(1);
    std::unique_ptr<Timer> timer;
    std::string kept_alive = "until the task is done";
    int calls = 0;
    timer = world.make_timer([&, copy = kept_alive] {
        if (++calls < 3) return timer->set(world.now() + 1ms);
        timer.reset();
        EXPECT_EQ(copy, kept_alive);
    });
    timer->set(Instant{1});
    EXPECT_TRUE(world.run_until_quiet(10));
    EXPECT_EQ(calls, 3);
}

TEST(World, ForgetsADestroyedTimer) {
    World world(1);
    auto timer = world.make_timer([] { FAIL(); });
    timer->set(Instant{1});
    timer.reset();
    EXPECT_TRUE(world.run_until_quiet(10));
}

TEST(World, MayEndWhileItsTasksStillHoldStreams) {
    test::RecordingEngine engine;
    World world(1);
    std::shared_ptr<Stream> stream = std::move(*world.connect(Address::tcp("elm", 1), engine));
    world.defer([stream = std::move(stream)] {});
}

}  // namespace
}  // namespace weft::sim
