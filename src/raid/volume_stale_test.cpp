// SPDX-License-Identifier: Apache-2.0
// Boxes whose disks have lost a write, and the checksum with it: what they give back is old, and
// nothing they have says so. The others of the row remember.
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

struct StaleVolume : ManagedVolume {
    explicit StaleVolume(std::uint64_t seed) : StaleVolume(level_of(seed), boxes_of(seed), seed) {}
    StaleVolume(Level level, std::uint8_t box_count, std::uint64_t seed)
        : ManagedVolume(level, box_count, seed, {}, wire::ArrayConsistency::journal) {
        write({0, shadow.size()});
    }
    void write(Range range) {
        submit(HostOperation::write, range);
        settle();
    }
    /// So long that nobody who goes away then is taken to lack what was written lately.
    void settle() {
        ASSERT_TRUE(run_until([&] { return all_answered() && is_healthy(); })) << story();
        for (int i = 0; i < 20; ++i) {
            agenda.run();
            pass_time();
        }
        agenda.run();
    }
    /// Everything it has is on its disk, and nothing is left in its journal to be done again.
    void restart(unsigned i) {
        cut_power(i);
        cut_power(i);
        bring(i);
        settle();
    }
    /// The data of a part and all that lies among it.
    Buffer home(unsigned i) {
        return boxes[i]->disk.octets.all().subspan(boxes[i]->box.superblock().data_offset);
    }
    std::vector<std::byte> image(unsigned i) {
        restart(i);
        const auto octets = home(i);
        return {octets.begin(), octets.end()};
    }
    /// All it has written at home since then was never written.
    void put_back(unsigned i, const std::vector<std::byte>& image) {
        restart(i);
        drop(i);
        std::ranges::copy(image, home(i).begin());
        boxes[i]->disk.lasting = boxes[i]->disk.octets;
        restart(i);
    }
    ScrubStatus scrub(bool repair) {
        EXPECT_TRUE(manager->scrub(repair));
        EXPECT_TRUE(run_until([&] { return !manager->status().scrub.running; }));
        return manager->status().scrub;
    }
    std::uint64_t healed() const { return manager->status().counters.healed_blocks; }
    /// The first block of a data column of a stripe: where it is for hosts.
    Range block_of(std::uint64_t stripe, Column column) const {
        return {layout.address_of({.stripe = stripe, .column = column, .offset = 0}), slice_size};
    }
};

TEST(VolumeStale, NamesABlockThatMissedAWriteAndLeavesItAlone) {
    test::for_each_seed(6, [](std::uint64_t seed) {
        StaleVolume volume(seed);
        const std::uint64_t stripe = seed % 8;
        const auto lost = number(volume.layout.box_of(stripe, 0));
        const auto before = volume.image(lost);
        volume.write(volume.block_of(stripe, 0));
        volume.put_back(lost, before);
        volume.events.clear();
        const auto scrub = volume.scrub(false);
        EXPECT_EQ(scrub.mismatches, 1u) << volume.story();
        EXPECT_EQ(scrub.repaired, 0u);
        ASSERT_EQ(volume.count(block_stale), 1u) << volume.story();
        const auto named = std::ranges::find(volume.events, block_stale, &VolumeEvent::kind);
        EXPECT_EQ(named->place, lost);
        EXPECT_EQ(named->number, volume.layout.home_of(stripe));
        EXPECT_EQ(volume.healed(), 0u) << "nobody asked for that";
        EXPECT_EQ(volume.count(block_corrupt), 0u) << "its checksum is as old as it is";
    });
}

TEST(VolumeStale, MakesAnewWhatMissedAWriteAndNothingElse) {
    test::for_each_seed(12, [](std::uint64_t seed) {
        StaleVolume volume(seed);
        const auto lost = static_cast<unsigned>(seed % boxes_of(seed));
        const auto before = volume.image(lost);
        for (int i = 0; i < 10; ++i)
            if (volume.agenda.random() % 2 == 0) volume.write(volume.draw());
        volume.put_back(lost, before);
        volume.events.clear();
        const auto scrub = volume.scrub(true);
        EXPECT_EQ(scrub.mismatches, scrub.repaired) << volume.story();
        EXPECT_EQ(volume.count(scrub_mismatch), 0u) << "all could be named\n" << volume.story();
        EXPECT_EQ(volume.count(block_stale), volume.healed()) << volume.story();
        for (const auto& event : volume.events)
            if (event.kind == block_stale) {
                EXPECT_EQ(event.place, lost) << volume.story();
            }
        EXPECT_EQ(volume.count(block_lost), 0u) << volume.story();
        volume.expect_whole();
    });
}

TEST(VolumeStale, FindsItAfterControllersHaveChanged) {
    test::for_each_seed(6, [](std::uint64_t seed) {
        StaleVolume volume(seed);
        const auto lost = number(volume.layout.box_of(2, 0));
        const auto before = volume.image(lost);
        volume.replace_controller();
        volume.settle();
        volume.write(volume.block_of(2, 0));
        volume.replace_controller();
        volume.settle();
        volume.put_back(lost, before);
        volume.events.clear();
        volume.scrub(true);
        EXPECT_EQ(volume.count(block_stale), 1u) << volume.story();
        volume.expect_whole();
    });
}

TEST(VolumeStale, BlamesNobodyWhoWasRebuiltSince) {
    test::for_each_seed(6, [](std::uint64_t seed) {
        StaleVolume volume(seed);
        const auto lost = number(volume.layout.box_of(2, 0));
        const auto other = static_cast<std::uint8_t>((lost + 1) % boxes_of(seed));
        ASSERT_TRUE(volume.manager->fail(other));
        ASSERT_TRUE(volume.run_until([&] { return !volume.is_healthy(); }));
        volume.submit(HostOperation::write, {0, volume.shadow.size()});
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        ASSERT_TRUE(volume.manager->re_add(other));
        volume.settle();
        const auto before = volume.image(lost);
        volume.write(volume.block_of(2, 0));
        volume.put_back(lost, before);
        volume.events.clear();
        volume.scrub(true);
        ASSERT_EQ(volume.count(block_stale), 1u) << volume.story();
        EXPECT_EQ(std::ranges::find(volume.events, block_stale, &VolumeEvent::kind)->place, lost);
        volume.expect_whole();
    });
}

TEST(VolumeStale, IsBeyondRepairIfTooManyOfARowMissedIt) {
    StaleVolume volume(Level::raid5, 5, 1);
    const auto first = number(volume.layout.box_of(3, 0)),
               second = number(volume.layout.box_of(3, 1));
    const auto before = volume.image(first), before_too = volume.image(second);
    volume.write(volume.block_of(3, 0));
    volume.write(volume.block_of(3, 1));
    volume.put_back(first, before);
    volume.put_back(second, before_too);
    volume.events.clear();
    const auto scrub = volume.scrub(true);
    EXPECT_EQ(scrub.mismatches, 1u);
    EXPECT_EQ(scrub.repaired, 0u) << "parity is not made from what is old";
    EXPECT_EQ(volume.count(block_stale), 2u) << volume.story();
    EXPECT_GE(volume.count(block_lost), 1u) << volume.story();
}

/// Its folder is one of the past, and the store is too slow to count it out before another is lost.
TEST(VolumeStale, BelievesNoPartOfThePastThoughItCannotBeSparedAnyMore) {
    test::for_each_seed(40, [](std::uint64_t seed) {
        StaleVolume volume(Level::raid5, 5, seed);
        const auto old = volume.boxes[2]->disk.lasting;
        volume.write({0, volume.shadow.size()});
        volume.boxes[2]->disk.lasting = old;
        volume.store_fails = 1'000'000;
        volume.cut_power(2);
        volume.bring(2);
        volume.some_steps(seed * 7 % 60);
        if (seed % 2 == 0) {  // its session begins anew
            volume.drop(2);
            volume.bring(2);
        }
        volume.drop(0);
        volume.submit(HostOperation::read, {0, volume.shadow.size()});
        volume.some_steps(300);
        volume.store_fails = 0;
        volume.bring(0);
        volume.expect_whole();
        EXPECT_GE(volume.count(box_put_back), 1u) << volume.story();
    });
}

/// All is dark, and a folder is put back: what it does not know says nothing of what was answered.
TEST(VolumeStale, GivesAPartOfThePastNoSayInWhatIsInDoubt) {
    unsigned noticed = 0;
    test::for_each_seed(60, [&](std::uint64_t seed) {
        StaleVolume volume(Level::raid5, 5, seed);
        const auto old = volume.boxes[2]->disk.lasting;
        volume.submit_randomly(12);
        volume.some_steps(seed % 60);
        volume.boxes[2]->disk.lasting = old;
        volume.cut_all_power();
        for (unsigned i = 0; i < 5; ++i) volume.bring(i);
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered() && volume.is_healthy(); }))
            << volume.story();
        if (volume.count(box_put_back) == 0) return;  // nothing shows it: a scrub will name it
        ++noticed;
        volume.expect_whole();
    });
    if (test::runs_all_seeds()) {
        EXPECT_GT(noticed, 8u);
    }
}

}  // namespace
}  // namespace weft::raid
