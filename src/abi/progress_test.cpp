// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>

#include "abi/engine.hpp"

namespace weft::abi {
namespace {

using namespace std::chrono_literals;
using Waiting = Engine::Waiting;

class ProgressTest : public testing::Test {
protected:
    ProgressTest() {
        Hold hold;
        EXPECT_TRUE(Engine::start());
        engine = &Engine::get();
    }
    Instant now() {
        Hold hold;
        return engine->world().now();
    }
    void turn(Waiting& waiting) {
        Hold hold;
        waiting.turn();
    }

    Engine* engine = nullptr;
};

TEST_F(ProgressTest, WakesTheDriverForATimerSetByAnother) {
    Waiting driver(*engine, Waiting::Hurry::no);
    turn(driver);
    bool called = false;
    std::unique_ptr<Timer> timer;
    {
        Hold hold;
        timer = engine->world().make_timer([&] { called = true; });
        timer->set(engine->world().now() + 20ms);
    }
    auto begun = now();
    while (!called && now() - begun < 5s) {
        EXPECT_EQ(driver.sleep(-1, now() + 5s), 0);
        turn(driver);
    }
    EXPECT_LT(now() - begun, 2s);
    Hold hold;
    timer.reset();
}

TEST_F(ProgressTest, LeavesABellToWhoDrivesNow) {
    std::optional<Waiting> first;
    first.emplace(*engine, Waiting::Hurry::no);
    turn(*first);
    std::thread sleeps([&] {
        first->sleep(-1, now() + 10s);  // as the driver; what wakes it is meant for the next one
        turn(*first);
    });
    std::this_thread::sleep_for(50ms);
    Waiting second(*engine, Waiting::Hurry::yes);
    turn(second);
    std::unique_ptr<Timer> timer;
    {
        Hold hold;
        timer = engine->world().make_timer([] {});
        timer->set(engine->world().now() + 100ms);
    }
    sleeps.join();
    auto begun = now();
    EXPECT_EQ(second.sleep(-1, now() + 5s), 0);
    EXPECT_LT(now() - begun, 2s) << "it was rung for";
    {
        Hold hold;
        timer.reset();
    }
    first.reset();
}

}  // namespace
}  // namespace weft::abi
