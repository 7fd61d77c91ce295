// SPDX-License-Identifier: Apache-2.0
// The cases of the failure table where everybody is there and something is wrong all the same, on
// whole arrays of the production objects: links that are broken (21, 22), a box that answers slowly
// (32). The volume goes on, nobody is counted out, and people are told.
#include <gtest/gtest.h>

#include "support/array_cluster.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using raid::Level;
using raid::VolumeState;
using test::ArrayCluster;
using test::TestRequest;

constexpr std::size_t step = 64u << 10;

struct GrayArray : ArrayCluster {
    explicit GrayArray(std::uint64_t seed, Level level = Level::raid5) : ArrayCluster(seed) {
        start_controller();
        for (const char* name : {"oak", "elm", "ash", "fir", "yew"}) add_box(name);
        const auto refusal =
            create("photos", level, {"oak", "elm", "ash", "fir", "yew"}, 16u << 10, 1u << 20);
        EXPECT_FALSE(refusal) << *refusal;
        disk = &attach("photos");
        shadow.resize(1u << 20);
        write_all();
    }
    void write_all() {
        for (std::size_t at = 0; at < shadow.size(); at += step) {
            for (std::size_t i = 0; i < step; ++i)
                shadow[at + i] = static_cast<std::byte>(world.chance().next());
            write(*disk, at,
                  {shadow.begin() + static_cast<std::ptrdiff_t>(at),
                   shadow.begin() + static_cast<std::ptrdiff_t>(at + step)});
        }
    }
    void read_all() {
        for (std::size_t at = 0; at < shadow.size(); at += step) {
            const auto found = read(*disk, at, step);
            ASSERT_TRUE(std::ranges::equal(found, std::span(shadow).subspan(at, step)))
                << "at " << at;
        }
    }
    void pass(Duration span) {
        const auto until = world.now() + span;
        while (world.now() < until && world.step())
            ;
    }
    std::size_t told(const std::string& words) const {
        return static_cast<std::size_t>(std::ranges::count_if(
            controller->events().events(), [&](const node::ControllerEvent& event) {
                return event.what.find(words) != std::string::npos;
            }));
    }
    std::string story() const {
        std::string text;
        for (const auto& event : controller->events().events())
            text += event.box + ": " + event.what + "\n";
        return text;
    }
    std::uint64_t relayed() const { return controller->volumes().front().relayed_octets; }
    void expect_nobody_counted_out() {
        EXPECT_EQ(told("member absent"), 0u) << story();
        EXPECT_EQ(told("box failed"), 0u) << story();
        EXPECT_EQ(status("photos").state, VolumeState::healthy);
    }
    void hang_disks_of(const std::string& name, bool hang) {
        for (const auto& [path, each] : world.disks())
            if (path.starts_with("/" + name + "/")) hang ? each->die(Death::hangs) : each->revive();
    }

    BlockDevice* disk = nullptr;
    std::vector<std::byte> shadow;
};

TEST(FailureTable, Case21_TwoBoxesDoNotReachEachOther_WholeArray) {
    for (std::uint64_t seed : {1u, 2u, 3u}) {
        GrayArray array(seed);
        EXPECT_EQ(array.relayed(), 0u) << "the controller sees no data";
        auto& network = array.world.network();
        network.separate(ArrayCluster::machine_of("oak"), ArrayCluster::machine_of("fir"));
        for (int i = 0; i < 3; ++i) array.write_all();
        array.read_all();
        EXPECT_EQ(array.told("do not reach each other"), 1u) << array.story();
        EXPECT_GT(array.relayed(), 0u);
        array.expect_nobody_counted_out();
        network.unite(ArrayCluster::machine_of("oak"), ArrayCluster::machine_of("fir"));
        array.pass(62s);
        array.write_all();
        const auto relayed = array.relayed();
        array.write_all();
        array.read_all();
        EXPECT_EQ(array.told("reach each other again"), 1u) << array.story();
        EXPECT_EQ(array.relayed(), relayed) << "it goes the short way again";
        array.expect_nobody_counted_out();
    }
}

TEST(FailureTable, Case22_ABoxDoesNotReachAHost_WholeArray) {
    for (std::uint64_t seed : {1u, 2u, 3u}) {
        GrayArray array(seed);
        auto& network = array.world.network();
        network.separate(ArrayCluster::machine_of("elm"), "10.0.0.50");
        array.read_all();
        for (int i = 0; i < 3; ++i) array.write_all();
        array.read_all();
        array.pass(2s);  // it could be the host that has gone: that is known by then
        EXPECT_EQ(array.told("does not reach a host"), 1u) << array.story();
        EXPECT_GT(array.relayed(), 0u);
        array.expect_nobody_counted_out();
        network.unite(ArrayCluster::machine_of("elm"), "10.0.0.50");
        array.pass(62s);
        array.read_all();
        const auto relayed = array.relayed();
        array.write_all();
        array.read_all();
        EXPECT_EQ(array.told("reaches the host again"), 1u) << array.story();
        EXPECT_EQ(array.relayed(), relayed);
        array.expect_nobody_counted_out();
    }
}

TEST(FailureTable, Case32_ABoxAnswersSlowly_TheOthersServeItsReads) {
    for (std::uint64_t seed : {1u, 2u, 3u}) {
        GrayArray array(seed, seed == 2 ? Level::raid6 : Level::raid5);
        array.read_all();
        array.hang_disks_of("ash", true);
        const auto before = array.world.now();
        for (int i = 0; i < 4; ++i) array.read_all();
        // Were each read of it to wait for the box, nothing would have come back at all.
        EXPECT_LT(array.world.now() - before, 5s);
        EXPECT_EQ(array.told("answers slowly"), 1u) << array.story();
        EXPECT_GE(array.status("photos").counters.hedged_reads, 1u);
        EXPECT_TRUE(array.status("photos").members[2].slow);
        // A write waits, and is to be seen waiting.
        TestRequest write(BlockOperation::write, 0, step);
        array.disk->submit(write);
        array.pass(2s);
        EXPECT_FALSE(write.outcome);
        const auto slow = array.controller->slow_operations();
        ASSERT_FALSE(slow.empty());
        EXPECT_TRUE(slow.back().under_way);
        EXPECT_EQ(slow.back().story.now, raid::WaitsFor::prepare);
        EXPECT_EQ(slow.back().waits_for_names, std::vector<std::string>{"ash"});
        array.hang_disks_of("ash", false);
        ASSERT_TRUE(array.run_until([&] { return write.outcome.has_value(); }));
        EXPECT_TRUE(*write.outcome);
        std::ranges::copy(write.octets, array.shadow.begin());
        for (int i = 0; i < 40 && array.told("as soon as the others again") == 0; ++i) {
            array.read_all();
            array.pass(100ms);
        }
        EXPECT_EQ(array.told("as soon as the others again"), 1u) << array.story();
        array.write_all();
        array.read_all();
        array.expect_nobody_counted_out();
    }
}

}  // namespace
}  // namespace weft::sim
