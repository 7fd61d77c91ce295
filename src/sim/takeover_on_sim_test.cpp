// SPDX-License-Identifier: Apache-2.0
// Two controllers of one array: one in office, one that waits for it; and hosts that know both.
#include <gtest/gtest.h>

#include "support/scribbled_array.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using raid::VolumeState;
using test::ScribbledArray;

/// A standby, too.
class Pair : public ScribbledArray {
public:
    explicit Pair(std::uint64_t seed) : ScribbledArray(seed, Standby::waits) {}

    void run_for(Duration span) {
        const auto until = world.now() + span;
        EXPECT_TRUE(run_until([&] { return world.now() >= until; }));
    }
    bool all_boxes_obey(const node::ControllerNode& in_office) {
        return std::ranges::all_of(
            boxes, [&](auto& each) { return each.second->facts().epoch == in_office.epoch(); });
    }
};

TEST(Takeover, LetsAStandbyWaitAndServeNobody) {
    Pair array(1);
    array.begin_writes();
    array.check();
    array.run_for(60s);
    EXPECT_FALSE(array.standby_serves);
    const auto report = array.standby->office();
    EXPECT_EQ(report.state, node::OfficeReport::State::standby);
    EXPECT_EQ(report.epoch, array.controller->epoch());
    EXPECT_EQ(report.holder, "at 10.0.0.1:3260");
    EXPECT_EQ(array.controller->office().state, node::OfficeReport::State::in_office);
}

TEST(Takeover, GoesOnWhenTheControllerLosesItsPower) {
    test::for_each_seed(8, [](std::uint64_t seed) {
        Pair array(seed);
        const auto epoch = array.controller->epoch();
        array.begin_writes();
        array.run_for(Duration(std::chrono::microseconds(array.world.chance().below(20'000))));
        array.cut_power_of_controller();
        array.check();
        EXPECT_TRUE(array.standby_serves);
        EXPECT_GT(array.standby->epoch(), epoch);
        EXPECT_TRUE(array.all_boxes_obey(*array.standby));
        array.scrub_finds_nothing(*array.standby);
    });
}

TEST(Takeover, NeedsNoLeaseToLapseWhenTheControllerStepsDown) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        Pair array(seed);
        array.begin_writes();
        const auto began = array.world.now();
        array.controller->drain();
        array.controller->stop();
        ASSERT_TRUE(array.run_until([&] { return array.standby_serves; }));
        EXPECT_LT(array.world.now() - began, 4s) << "its lease is 5 s";
        EXPECT_EQ(array.controller->office().state, node::OfficeReport::State::stepped_down);
        array.check();
        array.scrub_finds_nothing(*array.standby);
    });
}

/// The network between it and the store is cut, and nothing else: it goes on for as long as it is
/// sure, then stops, and learns from its boxes or the store that another has taken over.
TEST(FailureTable, Case19_TheControllerCannotReachTheStore_ItStopsBeforeAnotherBegins) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        Pair array(seed);
        array.store->set_reachable(false);
        array.begin_writes();
        ASSERT_TRUE(array.run_until([&] {
            EXPECT_FALSE(array.standby->in_office() && array.controller->may_act());
            return array.standby_serves;
        }));
        array.begin_writes();
        array.check();
        array.store->set_reachable(true);
        ASSERT_TRUE(array.run_until([&] { return array.controller->deposed(); }));
        array.begin_writes();
        array.check();
        EXPECT_TRUE(array.all_boxes_obey(*array.standby));
        array.scrub_finds_nothing(*array.standby);
        const auto said = array.refusal_of(
            [&](auto told) { array.controller->add_spare("oak", std::move(told)); });
        EXPECT_TRUE(said) << "it changes nothing any more";
    });
}

/// Where there is nobody to take over, doubt passes.
TEST(Takeover, GoesOnByItselfWhenTheStoreIsBackInTime) {
    Pair array(3);
    array.standby->stop();
    ASSERT_TRUE(array.run_until([&] { return array.standby->quiet(); }));
    const auto epoch = array.controller->epoch();
    array.store->set_reachable(false);
    array.run_for(10s);
    EXPECT_EQ(array.controller->office().state, node::OfficeReport::State::doubtful);
    array.begin_writes();
    array.run_for(5s);
    EXPECT_FALSE(array.ended()) << "nothing is done under a lease that has run out";
    array.store->set_reachable(true);
    array.check();
    EXPECT_EQ(array.controller->epoch(), epoch);
    EXPECT_EQ(array.status("photos").state, VolumeState::healthy) << "no box was counted out";
}

TEST(Takeover, RefusesASecondControllerThatDoesNotWait) {
    Pair array(4);
    node::MemoryMetadataStore store(array.world.host("10.0.0.3"), array.records);
    node::ControllerNode::Options options;
    options.listen = Address::tcp("10.0.0.3", ScribbledArray::port);
    node::ControllerNode second(array.world.host("10.0.0.3"), store, options);
    std::optional<Result<Address>> started;
    second.start([&](Result<Address> outcome) { started = outcome; });
    ASSERT_TRUE(array.run_until([&] { return started.has_value(); }));
    ASSERT_FALSE(*started);
    EXPECT_EQ(started->error().code, Code::access_denied);
    EXPECT_EQ(second.office().holder, "at 10.0.0.1:3260");
    second.stop();
    ASSERT_TRUE(array.run_until([&] { return second.quiet(); }));
    array.begin_writes();
    array.check();
    EXPECT_FALSE(array.controller->deposed());
}

}  // namespace
}  // namespace weft::sim
