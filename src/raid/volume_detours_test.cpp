// SPDX-License-Identifier: Apache-2.0
// Links that break while both their ends are there: served around, and nobody is counted out.
#include <gtest/gtest.h>

#include "raid/volume_manager.hpp"
#include "support/managed_volume.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using test::boxes_of;
using test::level_of;
using test::ManagedVolume;
using enum VolumeEventKind;

wire::ArrayConsistency consistency_of(std::uint64_t seed) {
    return seed % 2 == 0 ? wire::ArrayConsistency::none : wire::ArrayConsistency::journal;
}

TEST(VolumeDetours, LeadAroundALinkBetweenTwoBoxes) {
    std::size_t broken = 0;
    test::for_each_seed(30, [&](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed, {}, consistency_of(seed));
        volume.submit_randomly(5);
        const auto one = static_cast<unsigned>(seed % boxes_of(seed));
        const auto other =
            (one + 1 + static_cast<unsigned>(seed / 7) % (boxes_of(seed) - 1u)) % boxes_of(seed);
        volume.boxes[one]->network.out_of_reach = volume.identities[other];
        if (seed % 3 != 0) volume.boxes[other]->network.out_of_reach = volume.identities[one];
        volume.submit_randomly(30);
        volume.expect_all_right();
        broken += volume.count(link_broken);
        EXPECT_EQ(volume.count(box_failed), 0u) << volume.story();
        EXPECT_EQ(volume.count(member_absent), 0u) << volume.story();
        volume.boxes[one]->network.out_of_reach.reset();
        volume.boxes[other]->network.out_of_reach.reset();
        volume.expect_whole();
    });
    EXPECT_GT(broken, 20u);
}

TEST(VolumeDetours, LetARebuildingGoOn) {
    ManagedVolume volume(Level::raid5, 5, 1);
    volume.submit(HostOperation::write, {0, volume.shadow.size()});
    volume.expect_all_right();
    volume.drop(2);
    volume.submit_randomly(10);
    volume.expect_all_right();
    volume.boxes[2]->network.out_of_reach = volume.identities[4];
    volume.bring(2);
    volume.expect_whole();
    EXPECT_EQ(volume.count(box_failed), 0u) << volume.story();
}

TEST(VolumeDetours, AreLeftWhenTheLinkIsThereAgain) {
    ManagedVolume volume(Level::raid5, 5, 1);
    ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
    for (unsigned i = 0; i < 5; ++i)
        if (i != 2) volume.boxes[i]->network.out_of_reach = volume.identities[(i + 1) % 5];
    volume.boxes[1]->network.out_of_reach.reset();
    volume.boxes[3]->network.out_of_reach.reset();
    volume.boxes[4]->network.out_of_reach.reset();  // of 0 and 1 alone
    for (std::uint64_t i = 0; i < ManagedVolume::stripe_count; ++i)
        volume.submit(HostOperation::write, {i * volume.layout.stripe_bytes(), 4096});
    volume.expect_all_right();
    EXPECT_GT(volume.count(link_broken), 0u);
    volume.boxes[0]->network.out_of_reach.reset();
    const auto then = volume.now + std::chrono::seconds(61);
    while (volume.now < then && volume.pass_time()) volume.agenda.run();
    const auto before = volume.manager->status().counters.payload_octets;
    volume.submit_randomly(20);
    volume.expect_all_right();
    EXPECT_EQ(volume.manager->status().counters.payload_octets, before);
}

/// Where the controller has no share in the data there is no way around: what needs the link waits
/// as long as requests do, and fails; everything else goes on, and nobody is removed.
TEST(VolumeDetours, AreNotThereWithoutAShareOfTheControllerAndNobodyIsRemovedForThat) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        VolumeManagerOptions options;
        ManagedVolume volume(Level::raid5, 5, seed, options, consistency_of(seed));
        volume.options.own = {};
        volume.options.request_patience = std::chrono::seconds(60);
        volume.replace_controller();
        volume.submit_randomly(5);
        volume.expect_all_right();
        volume.boxes[1]->network.out_of_reach = volume.identities[2];
        volume.boxes[2]->network.out_of_reach = volume.identities[1];
        const auto began = volume.now;
        const auto shadow = volume.shadow;
        for (std::uint64_t stripe = 0; stripe < ManagedVolume::stripe_count; ++stripe)
            volume.submit(HostOperation::write, {stripe * volume.layout.stripe_bytes(), 4096});
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        std::size_t failed = 0;
        for (auto& request : volume.requests) failed += *request->outcome ? 0 : 1;
        EXPECT_GT(failed, 0u);
        EXPECT_LT(failed, ManagedVolume::stripe_count);
        EXPECT_GE(volume.now - began, std::chrono::seconds(60));
        EXPECT_LE(volume.now - began, std::chrono::seconds(61));
        EXPECT_EQ(volume.count(box_failed), 0u) << volume.story();
        EXPECT_EQ(volume.count(member_absent), 0u) << volume.story();
    });
}

TEST(VolumeDetours, LeadToAHostThatABoxDoesNotReach) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed, {}, consistency_of(seed));
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        volume.boxes[box]->network.reaches_no_host = true;
        volume.submit_randomly(30);
        volume.submit(HostOperation::read, {0, volume.shadow.size() / 2});
        volume.expect_all_right();
        EXPECT_GE(volume.count(host_cut_off), 1u);
        EXPECT_GT(volume.manager->status().counters.payload_octets, 0u);
        EXPECT_EQ(volume.count(box_failed), 0u) << volume.story();
        EXPECT_EQ(volume.count(member_absent), 0u) << volume.story();
        volume.expect_whole();
    });
}

}  // namespace
}  // namespace weft::raid
