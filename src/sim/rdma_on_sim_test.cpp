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
