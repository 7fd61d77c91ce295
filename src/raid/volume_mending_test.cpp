// SPDX-License-Identifier: Apache-2.0
// Boxes whose disks give back something else than was written, and say so: it is found again from
// the others, or whoever asks is told, and never is it taken for data.
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

constexpr std::uint64_t chunk_blocks = 2, first_block = 2;  ///< of the boxes of this test

void fill(ManagedVolume& volume) {
    volume.submit(HostOperation::write, {0, volume.shadow.size()});
    ASSERT_TRUE(volume.run_until([&] { return volume.all_answered() && volume.is_healthy(); }));
    volume.expect_all_right();
    volume.agenda.run();  // with a journal it is at home only some time later
}

void fill_degraded(ManagedVolume& volume) {
    volume.submit(HostOperation::write, {0, volume.shadow.size()});
    volume.expect_all_right();
    volume.agenda.run();
}

/// Damages a block for good, and has its disk know of it.
void rot(ManagedVolume& volume, unsigned box, std::uint64_t stripe, std::uint64_t row) {
    const std::uint64_t block = first_block + stripe * chunk_blocks + row;
    auto& disk = volume.boxes[box]->disk;
    for (auto& octet : disk.octets.all().subspan(block * 4096, 4096)) octet ^= std::byte{0x5a};
    disk.rotten.insert(block);
}

std::size_t rotten_blocks(const ManagedVolume& volume) {
    std::size_t count = 0;
    for (const auto& box : volume.boxes) count += box->disk.rotten.size();
    return count;
}

ManagedVolume::Request& finished(ManagedVolume& volume, HostOperation operation, Range range) {
    auto& request = volume.submit(operation, range);
    EXPECT_TRUE(volume.run_until([&] { return request.outcome.has_value(); }));
    return request;
}

/// What no request came upon.
void scrub(ManagedVolume& volume) {
    ASSERT_TRUE(volume.run_until([&] { return volume.all_answered() && volume.is_healthy(); }));
    ASSERT_TRUE(volume.manager->scrub(false));
    ASSERT_TRUE(volume.run_until([&] { return !volume.manager->status().scrub.running; }));
}

TEST(VolumeMending, FindsAgainWhatARequestCameUpon) {
    std::uint64_t all_healed = 0;
    test::for_each_seed(40, [&](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        fill(volume);
        volume.in_band_too = seed % 2 == 0;
        for (int i = 0; i < 6; ++i) {
            const auto box = static_cast<unsigned>(volume.agenda.random() % boxes_of(seed));
            // Each row has no more than the code can do without.
            rot(volume, box, static_cast<std::uint64_t>(i), seed % 2);
        }
        volume.submit_randomly(30);
        volume.expect_all_right();
        all_healed += volume.manager->status().counters.healed_blocks;
        scrub(volume);
        volume.expect_whole();
        EXPECT_EQ(rotten_blocks(volume), 0u) << volume.story();
        const auto counters = volume.manager->status().counters;
        EXPECT_EQ(counters.healed_blocks, volume.count(block_healed));
        EXPECT_EQ(volume.count(box_failed), 0u) << "nobody is counted out for that";
        EXPECT_EQ(volume.count(member_absent), 0u);
    });
    EXPECT_GT(all_healed, 40u);
}

TEST(VolumeMending, IsDoneByReadingAlone) {
    test::for_each_seed(15, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        fill(volume);
        for (unsigned box = 0; box < volume.layout.spare_columns(); ++box) rot(volume, box, 3, 1);
        volume.submit(HostOperation::read, {0, volume.shadow.size()});
        volume.expect_all_right();
        scrub(volume);
        volume.expect_whole();
        EXPECT_EQ(rotten_blocks(volume), 0u) << volume.story();
    });
}

/// Where a block of a part with checksums lies on its disk.
std::size_t place_of(const ManagedVolume& volume, unsigned box, std::uint64_t home) {
    const auto& superblock = volume.boxes[box]->box.superblock();
    return superblock.data_offset + CheckedDisk::place_below(home, superblock.columns);
}

TEST(VolumeMending, IsDoneByTheChecksumsOfRealParts) {
    std::uint64_t all_healed = 0;  // of a small volume all may be written over first
    test::for_each_seed(20, [&](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed, {},
                             wire::ArrayConsistency::journal);
        fill(volume);
        for (std::uint64_t stripe = 0; stripe < 6; ++stripe) {
            const auto box = static_cast<unsigned>(volume.agenda.random() % boxes_of(seed));
            const auto at = place_of(volume, box, stripe * volume.layout.chunk_bytes() + 4096);
            volume.boxes[box]->disk.octets.all()[at + 100] ^= std::byte{1};
        }
        volume.submit_randomly(20);
        volume.expect_all_right();
        scrub(volume);
        volume.expect_whole();
        all_healed += volume.manager->status().counters.healed_blocks;
        EXPECT_EQ(volume.count(block_lost), 0u) << volume.story();
        EXPECT_EQ(volume.count(member_absent), 0u) << volume.story();
    });
    EXPECT_GT(all_healed, 20u);
}

TEST(VolumeMending, NamesTheBlockThatAScrubFinds) {
    test::for_each_seed(9, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        fill(volume);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        rot(volume, box, 5, 1);
        ASSERT_TRUE(volume.manager->scrub(false));
        ASSERT_TRUE(volume.run_until([&] { return !volume.manager->status().scrub.running; }));
        EXPECT_EQ(volume.manager->status().scrub.mismatches, 1u);
        EXPECT_EQ(volume.manager->status().scrub.repaired, 1u);
        const auto named = std::ranges::find(volume.events, block_corrupt, &VolumeEvent::kind);
        ASSERT_NE(named, volume.events.end());
        EXPECT_EQ(named->place, box);
        EXPECT_EQ(named->number, 5u);
        EXPECT_EQ(volume.count(scrub_mismatch), 0u) << "it is not the row that is in question";
        volume.expect_whole();
    });
}

TEST(VolumeMending, RefusesWhatIsBeyondRepairAndNothingElse) {
    for (const auto level : {Level::mirror, Level::raid5, Level::raid6}) {
        const std::uint8_t boxes = level == Level::mirror ? 2 : 5;
        ManagedVolume volume(level, boxes, 1);
        fill(volume);
        const std::uint64_t stripe = volume.layout.stripe_bytes();
        for (unsigned i = 0; i <= volume.layout.spare_columns(); ++i) {
            const auto column = static_cast<Column>(i);
            rot(volume, number(volume.layout.box_of(4, column)), 4, 0);
        }
        const auto read = *finished(volume, HostOperation::read, {4 * stripe, 4096}).outcome;
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().code, Code::io_failed);
        EXPECT_GE(volume.count(block_lost), 1u);
        // The other row of the stripe, and the other stripes.
        EXPECT_TRUE(*finished(volume, HostOperation::read, {4 * stripe + 4096, 4096}).outcome);
        EXPECT_TRUE(*finished(volume, HostOperation::read, {5 * stripe, stripe}).outcome);
        EXPECT_EQ(volume.manager->status().state, VolumeState::healthy);
        // Whoever writes all of it needs nothing of it.
        EXPECT_TRUE(*finished(volume, HostOperation::write, {4 * stripe, stripe}).outcome);
        volume.requests.clear();
        volume.expect_whole();
        EXPECT_EQ(rotten_blocks(volume), 0u);
    }
}

TEST(VolumeMending, GoesOnAsAScrubThatCannotRepair) {
    ManagedVolume volume(Level::raid5, 5, 1);
    fill(volume);
    rot(volume, 0, 4, 0);
    rot(volume, 1, 4, 0);
    ASSERT_TRUE(volume.manager->scrub(true));
    ASSERT_TRUE(volume.run_until([&] { return !volume.manager->status().scrub.running; }));
    EXPECT_EQ(volume.manager->status().scrub.mismatches, 1u);
    EXPECT_EQ(volume.manager->status().scrub.repaired, 0u);
    EXPECT_EQ(volume.count(block_lost), 1u) << volume.story();
}

/// One block is beyond repair; that is no reason to leave all others without redundancy.
TEST(VolumeMending, PassesOverWhatCannotBeRebuiltUntilItIsWrittenAnew) {
    ManagedVolume volume(Level::raid5, 5, 1);
    fill(volume);
    volume.drop(1);
    ASSERT_TRUE(volume.run_until([&] { return volume.count(member_absent) == 1; }));
    fill_degraded(volume);
    rot(volume, 0, 2, 0);
    volume.bring(1);
    auto left = [&] {
        const auto status = volume.manager->status();
        return status.rebuilds.empty() ? 0 : status.rebuilds[0].to_do - status.rebuilds[0].done;
    };
    ASSERT_TRUE(volume.run_until([&] { return volume.count(block_lost) == 1 && left() == 1; }))
        << volume.story();
    for (int i = 0; i < 50; ++i) {
        volume.agenda.run();
        volume.pass_time();
    }
    EXPECT_EQ(left(), 1u) << volume.story();
    EXPECT_LE(volume.count(block_corrupt), 2u) << "said once, not with every try\n"
                                               << volume.story();
    ASSERT_TRUE(volume.manager->scrub(false));
    EXPECT_TRUE(volume.run_until([&] { return !volume.manager->status().scrub.running; }))
        << "it need not wait for what may never come";
    const auto stripe_bytes = volume.layout.stripe_bytes();
    volume.submit(HostOperation::write, {2 * stripe_bytes, stripe_bytes});
    volume.expect_whole();
}

TEST(VolumeMending, IsDoneAmidLosses) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        ManagedVolume volume(Level::raid6, 5, seed);
        fill(volume);
        const auto box = static_cast<unsigned>(seed % 5);
        for (std::uint64_t stripe = 0; stripe < 6; ++stripe)
            rot(volume, (box + 1 + static_cast<unsigned>(stripe) % 4) % 5, stripe, stripe % 2);
        volume.submit_randomly(5);
        volume.drop(box);
        volume.submit_randomly(15);
        volume.bring(box);
        volume.submit_randomly(5);
        scrub(volume);
        volume.expect_whole();
        EXPECT_EQ(rotten_blocks(volume), 0u) << volume.story();
        EXPECT_EQ(volume.count(block_lost), 0u) << volume.story();
    });
}

}  // namespace
}  // namespace weft::raid
