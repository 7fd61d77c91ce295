// SPDX-License-Identifier: Apache-2.0
// Whole arrays of the production objects in simulated worlds.
#include <gtest/gtest.h>

#include <list>

#include "support/array_cluster.hpp"

namespace weft::sim {
namespace {

using raid::Level;
using raid::VolumeState;
using test::ArrayCluster;

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
    std::vector<std::byte> octets(size);
    for (std::size_t i = 0; i < size; ++i)
        octets[i] = static_cast<std::byte>((i * 7 + seed * 131 + i / 4096 * 13) & 0xff);
    return octets;
}

const std::vector<std::string> five{"oak", "elm", "ash", "fir", "yew"};

void make_photos(ArrayCluster& array) {
    array.start_controller();
    for (const auto& name : five) array.add_box(name);
    const auto refusal = array.create("photos", Level::raid5, five);
    ASSERT_FALSE(refusal) << *refusal;
    ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
}

TEST(ControllerOnSim, ServesAVolumeToInitiatorsThatKnowNothingOfArrays) {
    ArrayCluster array(1);
    ASSERT_NO_FATAL_FAILURE(make_photos(array));
    auto& over_rdma = array.attach_ordinary("photos", true);
    auto& over_tcp = array.attach_ordinary("photos", false);
    const auto octets = pattern(200 * 4096, 5);
    array.write(over_rdma, 12 * 4096, octets);
    EXPECT_EQ(array.read(over_tcp, 12 * 4096, octets.size()), octets);
}

TEST(ControllerOnSim, ServesAVolumeToAHostOfTheArray) {
    ArrayCluster array(2);
    ASSERT_NO_FATAL_FAILURE(make_photos(array));
    auto& disk = array.attach("photos");
    const auto octets = pattern(200 * 4096, 7);
    array.write(disk, 12 * 4096, octets);
    EXPECT_EQ(array.read(disk, 12 * 4096, octets.size()), octets);
    ASSERT_EQ(array.controller->hosts().size(), 1u);
    const auto report = array.controller->volumes().front();
    EXPECT_EQ(report.payload_octets, 0u) << "the controller is out of the data's way";
    EXPECT_EQ(report.requests, 2u);
    EXPECT_GT(report.orders, 0u);
}

TEST(ControllerOnSim, CarriesAllDataItselfInBand) {
    ArrayCluster array(4);
    array.in_band = true;
    ASSERT_NO_FATAL_FAILURE(make_photos(array));
    auto& disk = array.attach("photos");
    auto& ordinary = array.attach_ordinary("photos", false);
    const auto octets = pattern(200 * 4096, 11);
    array.write(disk, 12 * 4096, octets);
    EXPECT_EQ(array.read(ordinary, 12 * 4096, octets.size()), octets);
    EXPECT_EQ(array.controller->volumes().front().payload_octets, 2 * octets.size());
    const auto small = pattern(3 * 4096, 13);
    array.write(ordinary, 5 * 4096, small);
    EXPECT_EQ(array.read(disk, 5 * 4096, small.size()), small);
}

/// A session is its host's: nobody else's commands count in it, and it ends with its host.
TEST(ControllerOnSim, KeepsHostsApartAndForgetsThoseThatAreGone) {
    ArrayCluster array(5);
    ASSERT_NO_FATAL_FAILURE(make_photos(array));
    auto& disk = array.attach("photos");
    array.write(disk, 0, pattern(4096, 1));
    const auto session = array.controller->hosts().front().session;

    // An initiator that has learnt the number of the session, and asks in its name.
    auto& here = array.world.host("10.0.0.66");
    node::IscsiIserTransport transport(here, {});
    std::optional<wire::HostOutcome> said;
    {
        test::VendorInitiator stranger(array, here, transport, "photos");
        const wire::HostTransfer asked{.session = session, .command = 9, .length = 4096};
        said = stranger.ask(wire::HostAction::read, asked);
        EXPECT_EQ(said, wire::HostOutcome::unknown_session);
        said = stranger.ask(wire::HostAction::goodbye, asked);
        EXPECT_EQ(said, wire::HostOutcome::unknown_session);
        wire::HostHello hello{.previous = session, .port = 1};
        said = stranger.ask(wire::HostAction::hello, hello);
    }
    EXPECT_EQ(array.read(disk, 0, 4096), pattern(4096, 1)) << "the host is still admitted";
    EXPECT_EQ(array.controller->hosts().size(), 2u) << "the stranger is a host like any other";
    ASSERT_TRUE(array.run_until([&] { return array.controller->hosts().size() == 1; },
                                std::chrono::minutes(10)));
    EXPECT_EQ(array.controller->hosts().front().session, session);
}

TEST(ControllerOnSim, ComesBackWithItsController) {
    ArrayCluster array(3);
    ASSERT_NO_FATAL_FAILURE(make_photos(array));
    const auto octets = pattern(64 * 4096, 9);
    auto& disk = array.attach("photos");
    array.write(disk, 0, octets);
    array.stop_controller();
    array.start_controller();
    ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
    EXPECT_EQ(array.read(disk, 0, octets.size()), octets) << "the host finds it again by itself";
}

/// What it relays for a host that lost its power hangs, and others wait for the windows. When it is
/// taken apart the first end with its links: the others must not begin then, and outlive what they
/// are about.
TEST(ControllerOnSim, IsTakenApartWhileRequestsWaitForOthersThatHang) {
    ArrayCluster array(5);
    array.in_band = true;
    array.start_controller();
    for (const auto& name : five) array.add_box(name);
    const auto refusal = array.create("photos", Level::mirror, {"oak", "elm"}, 16u << 10, 4u << 20);
    ASSERT_FALSE(refusal) << *refusal;
    ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
    auto& disk = array.attach("photos");
    constexpr std::uint64_t size = 16u << 10;
    // What is without power is never called again, and cannot be taken apart.
    static auto& writes = *new std::list<test::TestRequest>;
    static auto& dark = *new std::unique_ptr<node::HostNode>;
    for (std::uint64_t i = 0; i < 64; ++i)
        disk.submit(writes.emplace_back(BlockOperation::write, i * size, size));
    const auto under_way = [&] { return array.status("photos").requests; };
    ASSERT_TRUE(array.run_until([&] { return under_way() > array.volume_options.windows; }));
    array.world.host("10.0.0.50").power_cut();
    dark = std::move(array.hosts["10.0.0.50"]);
    array.hosts.clear();
    array.world.run_for(std::chrono::seconds(1));
    EXPECT_GT(under_way(), array.volume_options.windows) << "some must wait";
    array.stop_controller();
}

}  // namespace
}  // namespace weft::sim
