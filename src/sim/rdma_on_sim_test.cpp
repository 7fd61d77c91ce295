// SPDX-License-Identifier: Apache-2.0
// The software RNIC in simulated time, whole: two devices, connections between them, and the
// programs that use them.
#include <gtest/gtest.h>

#include <chrono>

#include "node/exercise_client.hpp"
#include "node/exercise_server.hpp"
#include "node/rping.hpp"
#include "sim/world.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t plenty = 10'000'000;  // events
const Address elm = Address::tcp("elm", 7174);

class RdmaOnSim : public testing::Test {
protected:
    World world{1};
    std::unique_ptr<verbs::Device> here = verbs::make_device(world.host("oak"), {});
    std::unique_ptr<verbs::Device> there = verbs::make_device(world.host("elm"), {});
};

class Exercise : public RdmaOnSim {
protected:
    Exercise() {
        auto made = there->listen(elm, [this](std::unique_ptr<verbs::ConnectionRequest> request) {
            auto accepted = node::ExerciseServer::accept(*there, *request, {}, memory_left,
                                                         [this](auto&) { ++servers_ended; });
            if (accepted)
                servers.push_back(std::move(*accepted));
            else
                refusals.push_back(accepted.error().code);
        });
        EXPECT_TRUE(made);
        listener = std::move(*made);
    }

    node::ExerciseResults run(const node::ExerciseOptions& options) {
        std::optional<node::ExerciseResults> results;
        auto client = node::ExerciseClient::connect(
            world.host("oak"), *here, elm, options, [this] { return world.now(); },
            [&](const node::ExerciseResults& how) { results = how; });
        EXPECT_TRUE(client);
        EXPECT_TRUE(world.run_until_quiet(plenty));
        EXPECT_TRUE(results);
        return results.value_or(node::ExerciseResults{});
    }

    std::unique_ptr<Listener> listener;
    std::vector<std::unique_ptr<node::ExerciseServer>> servers;
    std::vector<Code> refusals;
    std::uint64_t memory_left = 64u << 20;
    int servers_ended = 0;
};

TEST_F(Exercise, MakesEveryKindOfRoundTrip) {
    for (auto kind :
         {node::ExerciseKind::send, node::ExerciseKind::write, node::ExerciseKind::read})
        for (std::uint32_t size : {0u, 1u, 64u, 65536u, 200'000u}) {
            auto results = run({.kind = kind, .size = size, .depth = 4, .round_trips = 5});
            EXPECT_EQ(results.fault.value_or(""), "") << size;
            EXPECT_EQ(results.round_trips.size(), 5u) << size;
        }
    EXPECT_EQ(servers_ended, 15);
}

TEST_F(Exercise, KeepsTheDepthBusyForAsLongAsItWasTold) {
    for (auto kind :
         {node::ExerciseKind::send, node::ExerciseKind::write, node::ExerciseKind::read}) {
        auto results =
            run({.kind = kind, .size = 4096, .depth = 8, .round_trips = 0, .many_for = 5ms});
        EXPECT_EQ(results.fault.value_or(""), "");
        EXPECT_GE(results.elapsed, 5ms);
        EXPECT_GT(results.operations, 8u);
    }
}

TEST_F(Exercise, PausesBetweenRoundTripsWhereAsked) {
    auto began = world.now();
    auto results = run({.size = 8, .depth = 1, .round_trips = 4, .pause = 1s});
    EXPECT_EQ(results.round_trips.size(), 4u);
    EXPECT_GE(world.now() - began, 3s);
}

TEST_F(Exercise, RefusesMoreThanTheServerWouldHold) {
    for (node::ExerciseOptions most : {node::ExerciseOptions{.size = 1u << 30, .depth = 1024},
                                       node::ExerciseOptions{.size = 8u << 20, .depth = 8}}) {
        refusals.clear();
        auto results = run(most);
        EXPECT_EQ(results.fault.value_or(""), "the server rejected the connection");
        EXPECT_EQ(refusals, std::vector{Code::out_of_range});
    }
    refusals.clear();
    memory_left = 0;
    (void)run({.size = 0, .depth = 16});
    EXPECT_EQ(refusals, std::vector{Code::out_of_range}) << "even nothing takes a byte each";
}

TEST_F(Exercise, IsToldThatNobodyIsThere) {
    listener.reset();
    auto results = run({.size = 8, .depth = 1, .round_trips = 1});
    EXPECT_TRUE(results.fault);
}

struct Variant {
    const char* name;
    verbs::ConnectOptions options;
};

class Rping : public RdmaOnSim, public testing::WithParamInterface<Variant> {};

TEST_P(Rping, CarriesEveryPingThereAndBack) {
    std::unique_ptr<node::RpingServer> server;
    std::optional<node::RpingOutcome> served, pinged;
    auto listener = there->listen(elm, [&](std::unique_ptr<verbs::ConnectionRequest> request) {
        auto accepted = node::RpingServer::accept(
            *there, *request, {.size = 65536, .connection = GetParam().options},
            [&](const node::RpingOutcome& outcome) { served = outcome; });
        ASSERT_TRUE(accepted);
        server = std::move(*accepted);
    });
    ASSERT_TRUE(listener);
    auto client = node::RpingClient::connect(
        *here, elm, {.size = 65536, .count = 20, .connection = GetParam().options},
        [&](const node::RpingOutcome& outcome) { pinged = outcome; });
    ASSERT_TRUE(client);
    ASSERT_TRUE(world.run_until_quiet(plenty));
    ASSERT_TRUE(pinged && served);
    EXPECT_EQ(pinged->fault.value_or(""), "");
    EXPECT_EQ(pinged->pings, 20u);
    EXPECT_EQ(served->pings, 20u);
}

INSTANTIATE_TEST_SUITE_P(Variants, Rping,
                         testing::Values(Variant{"checksums", {}},
                                         Variant{"none", {.checksums = false}},
                                         Variant{"markers", {.markers = true}},
                                         Variant{"plain", {.plain_startup = true}},
                                         Variant{"eager", {.place_before_check = true}},
                                         Variant{"standard", {.only_standard = true}},
                                         Variant{"client_first", {.peer_to_peer = false}}),
                         [](auto& each) { return each.param.name; });

}  // namespace
}  // namespace weft::sim
