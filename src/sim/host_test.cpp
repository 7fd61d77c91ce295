// SPDX-License-Identifier: Apache-2.0
#include "sim/host.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "sim/world.hpp"
#include "support/recording_engine.hpp"
#include "support/test_request.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;

TEST(Host, RunsNothingThatBeganBeforeAPowerCut) {
    World world(1);
    Host& elm = world.host("elm");
    EXPECT_EQ(&elm, &world.host("elm"));
    std::string ran;
    auto lost = elm.make_timer([&] { ran += "lost timer "; });
    auto others = world.make_timer([&] { ran += "another machine's timer "; });
    lost->set(Instant{10});
    others->set(Instant{10});
    elm.defer([&] { ran += "lost task "; });
    elm.power_cut();
    elm.power_on();
    auto fresh = elm.make_timer([&] { ran += "fresh timer"; });
    fresh->set(Instant{20});
    EXPECT_TRUE(world.run_until_quiet(10));
    EXPECT_EQ(ran, "another machine's timer fresh timer");
}

TEST(Host, RunsWhenItIsResumedWhatWasDueWhileItStoodStill) {
    World world(1);
    Host& elm = world.host("elm");
    std::string ran;
    std::unique_ptr<Timer> cancelled;
    auto due = elm.make_timer([&] {
        ran += "timer ";
        cancelled->cancel();
    });
    cancelled = elm.make_timer([&] { ran += "cancelled timer "; });
    auto others = world.make_timer([&] { ran += "another machine's timer "; });
    due->set(Instant{10});
    cancelled->set(Instant{20});
    others->set(Instant{30});
    elm.defer([&] { ran += "task "; });
    elm.pause();
    EXPECT_TRUE(world.run_until_quiet(10));
    EXPECT_EQ(ran, "another machine's timer ");
    elm.resume();
    EXPECT_TRUE(world.run_until_quiet(10));
    EXPECT_EQ(ran, "another machine's timer task timer ");
}

TEST(Host, ForgetsWhatWasDueIfItLosesItsPowerBeforeItIsResumed) {
    World world(1);
    Host& elm = world.host("elm");
    bool ran = false;
    elm.defer([&] { ran = true; });
    elm.pause();
    EXPECT_TRUE(world.run_until_quiet(10));
    elm.power_cut();
    elm.power_on();
    EXPECT_FALSE(elm.is_paused());
    elm.resume();
    EXPECT_TRUE(world.run_until_quiet(10));
    EXPECT_FALSE(ran);
}

TEST(Host, LosesItsOwnDisksWithItsPowerAndNoOthers) {
    World world(1);
    world.make_disk("elm's", {.immediate_percent = 0});
    world.make_disk("oak's", {.immediate_percent = 0});
    auto lost = std::move(*world.host("elm").open_disk({.path = "elm's"}));
    auto kept = std::move(*world.host("oak").open_disk({.path = "oak's"}));
    test::TestRequest unheard(BlockOperation::read, 0, 512), heard(BlockOperation::read, 0, 512);
    lost->submit(unheard);
    kept->submit(heard);
    world.host("elm").power_cut();
    world.run_for(1h);
    EXPECT_FALSE(unheard.outcome);
    EXPECT_TRUE(heard.succeeded());
}

TEST(Host, MakesDisksAndRemovesThem) {
    World world(1);
    Host& elm = world.host("elm");
    int told = 0;
    auto tell = [&](Result<void> outcome) { told += outcome ? 1 : 100; };
    auto wait_for = [&](int count) {
        EXPECT_LT(told, count) << "not from inside";
        world.run_for(1s);
        EXPECT_EQ(told, count);
    };
    elm.remove_disk("part", tell);
    wait_for(1);
    elm.provide_disk("part", 4096, tell);
    wait_for(2);
    auto disk = std::move(*elm.open_disk({.path = "part"}));
    EXPECT_EQ(disk->traits().size, 4096u);
    elm.provide_disk("part", 8192, tell);
    wait_for(3);
    EXPECT_EQ(disk->traits().size, 8192u) << "it grows under whoever has it open";
    disk.reset();
    elm.remove_disk("part", tell);
    wait_for(4);
    EXPECT_FALSE(elm.open_disk({.path = "part"}));
    elm.provide_disk("part", 4096, tell);
    elm.power_cut();
    world.run_for(1s);
    EXPECT_EQ(told, 4) << "the power went first";
}

TEST(Host, SharesTimeAndNetworkWithTheOthers) {
    World world(1);
    test::RecordingEngine client;
    std::unique_ptr<Stream> accepted;
    auto listener = world.host("elm").listen(
        Address::tcp("::", 7),
        [&](std::unique_ptr<Stream> stream) { accepted = std::move(stream); });
    auto stream = std::move(*world.host("oak").connect(Address::tcp("elm", 7), client));
    world.run_for(1s);
    EXPECT_EQ(world.host("elm").now(), world.now());
    EXPECT_EQ(client.opened_count, 1);
    EXPECT_EQ(accepted->peer(), "oak#1");
}

}  // namespace
}  // namespace weft::sim
