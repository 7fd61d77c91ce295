// SPDX-License-Identifier: Apache-2.0
// The failure table, cases 24 to 27 and 29 to 31: disks that tear, rot, write elsewhere or are
// full, and data that is damaged on its way. docs/failures.md has the table.
#include <gtest/gtest.h>

#include "support/scripted_volume.hpp"

namespace weft::sim {
namespace {

using namespace test;
constexpr auto block = ScriptedVolume::block;
constexpr std::uint64_t at = 3 * block;

using Unstable = RaidDisk::Unstable;

template <class Octets>
bool is_at(Octets disk, std::uint64_t offset, ConstBuffer octets) {
    return std::ranges::equal(ConstBuffer(disk).subspan(offset, octets.size()), octets);
}

/// Everything goes dark, and comes back under another controller.
void darken(ScriptedVolume& volume) {
    for (unsigned i = 0; i < volume.cluster.boxes(); ++i) volume.cluster.cut_power(i);
    volume.cluster.take_over(false);
    volume.let_go();
    for (unsigned i = 0; i < volume.cluster.boxes(); ++i) volume.cluster.bring(i);
}

TEST(FailureTable, Case24_ABlockIsTornOnItsWayHome_TheJournalHasIt) {
    for_each_volume(12, [](ScriptedVolume& volume) {
        auto& write = volume.write({at, block});
        const auto box = volume.box_of(at);
        auto& disk = volume.cluster.disk(box);
        const auto home = volume.home_of(box, at);
        ASSERT_TRUE(volume.run_until([&] {
            return is_at(disk.octets(), home, write.octets) &&
                   !is_at(disk.stable(), home, write.octets);
        })) << "it is never on its way home";
        EXPECT_TRUE(write.is_ok());
        disk.when_power_goes = Unstable::torn;
        darken(volume);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        EXPECT_TRUE(is_at(disk.octets(), home, write.octets)) << "it was written again";
        volume.expect_data("after the power was back");
        EXPECT_EQ(volume.count(VolumeEventKind::rebuild_began), 0u);
        EXPECT_EQ(volume.cluster.manager().status().counters.corrupt_blocks, 0u);
        volume.expect_whole();
    });
}

/// Runs until a record of this box is with its disk and not stable.
[[nodiscard]] bool run_into_record(ScriptedVolume& volume, unsigned box) {
    const auto& known = volume.cluster.box(box).superblock();
    auto& disk = volume.cluster.disk(box);
    const auto journal = [&](ConstBuffer octets) {
        return octets.subspan(known.journal_offset, known.journal_length);
    };
    return volume.run_until(
        [&] { return !std::ranges::equal(journal(disk.octets()), journal(disk.stable())); });
}

TEST(FailureTable, Case25_ARecordIsTornInTheJournal_NobodyWasToldOfIt) {
    for_each_volume(12, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto box = all[volume.agenda.random.below(all.size())];
        const auto before = volume.expected({at, block});
        auto& write = volume.write({at, block});
        ASSERT_TRUE(run_into_record(volume, box));
        EXPECT_FALSE(write.outcome);
        volume.cluster.disk(box).when_power_goes = Unstable::torn;
        if (volume.agenda.random.chance(50)) {  // alone: the write is done without it
            volume.cluster.cut_power(box);
            EXPECT_EQ(volume.in_doubt(box), 0u);
            ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); }));
            EXPECT_TRUE(write.is_ok());
        } else {  // with all: nobody has it whole, so nobody has it
            darken(volume);
            volume.expect_of({at, block}, before);
        }
        volume.expect_whole();
    });
}

/// Read by a host it is found again, answered right, and written anew where it had rotted.
TEST(FailureTable, Case26_ADataBlockRots_ItIsReadFromTheOthersAndMended) {
    for_each_volume(10, [](ScriptedVolume& volume) {
        const auto box = volume.box_of(at);
        const auto home = volume.home_of(box, at);
        auto& disk = volume.cluster.disk(box);
        ASSERT_TRUE(is_at(disk.stable(), home, volume.expected({at, block})));
        disk.flip_bit(home + volume.agenda.random.below(block), 3);
        auto& read = volume.read({at, block});
        // Of a mirror another copy may be asked; all of them shall be right in the end.
        ASSERT_TRUE(volume.run_until([&] { return read.outcome.has_value(); }));
        EXPECT_TRUE(read.is_ok());
        EXPECT_EQ(read.octets, volume.expected({at, block}));
        if (volume.layout.level() == Level::mirror) volume.expect_scrub_heals();
        EXPECT_EQ(volume.count(VolumeEventKind::block_corrupt), 1u) << volume.story();
        EXPECT_EQ(volume.count(VolumeEventKind::block_healed), 1u) << volume.story();
        EXPECT_EQ(volume.cluster.manager().status().counters.healed_blocks, 1u);
        ASSERT_TRUE(volume.is_quiet());
        EXPECT_TRUE(is_at(disk.octets(), home, volume.expected({at, block})));
        EXPECT_EQ(volume.count(VolumeEventKind::member_absent), 0u);
        volume.expect_whole();
    });
}

/// More blocks of one row than the level can do without.
TEST(FailureTable, Case26_TooManyBlocksOfARowRot_ThatBlockFailsAndNoOther) {
    for_each_volume(10, [](ScriptedVolume& volume) {
        const auto boxes = volume.participants_of(at);
        ASSERT_GT(boxes.size(), volume.layout.spare_columns());
        for (unsigned box : boxes) {
            const auto octet = volume.home_of(box, at) + volume.agenda.random.below(block);
            volume.cluster.disk(box).flip_bit(octet, 5);
        }
        auto& lost = volume.read({at, block});
        ASSERT_TRUE(volume.run_until([&] { return lost.outcome.has_value(); }));
        ASSERT_FALSE(lost.is_ok()) << "wrong data, or none of it was needed";
        EXPECT_EQ(lost.outcome->error().code, Code::io_failed);
        EXPECT_GE(volume.count(VolumeEventKind::block_lost), 1u);
        for (std::uint64_t other = 0; other < volume.shadow.size(); other += block) {
            if (other == at) continue;
            auto& read = volume.read({other, block});
            ASSERT_TRUE(volume.run_until([&] { return read.outcome.has_value(); }));
            EXPECT_TRUE(read.is_ok()) << "the block at " << other;
            EXPECT_EQ(read.octets, volume.expected({other, block})) << "the block at " << other;
        }
        EXPECT_EQ(volume.count(VolumeEventKind::member_absent), 0u);
        // Written anew with its whole stripe it is whole again.
        volume.write({0, 0 + volume.layout.stripe_bytes()});
        if (volume.layout.level() == Level::mirror) volume.write({at, block});
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        volume.expect_whole();
    });
}

TEST(FailureTable, Case27_AParityBlockRots_AScrubMendsIt) {
    for_each_volume(10, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto box = all[1 + volume.agenda.random.below(all.size() - 1)];
        auto& disk = volume.cluster.disk(box);
        const auto home = volume.home_of(box, at);
        const std::vector<std::byte> right(disk.octets().begin() + static_cast<long>(home),
                                           disk.octets().begin() + static_cast<long>(home + block));
        disk.flip_bit(home + volume.agenda.random.below(block), 0);
        volume.expect_data("before anybody has noticed");
        volume.expect_scrub_heals();
        EXPECT_EQ(volume.count(VolumeEventKind::block_healed), 1u) << volume.story();
        ASSERT_TRUE(volume.is_quiet());
        EXPECT_TRUE(is_at(disk.octets(), home, right));
        volume.expect_whole();
    });
}

/// And found when it is used: its data box is away, and what is made of it would be wrong.
TEST(FailureTable, Case27_AParityBlockRotsAndIsNeeded_NoWrongDataIsMadeOfIt) {
    for_each_volume(10, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        volume.cluster.drop(all[0]);
        ASSERT_TRUE(volume.run_until([&] { return volume.state() == VolumeState::degraded; }));
        volume.cluster.disk(all[1]).flip_bit(volume.home_of(all[1], at) + 77, 6);
        auto& read = volume.read({at, block});
        ASSERT_TRUE(volume.run_until([&] { return read.outcome.has_value(); }));
        const bool can = volume.layout.spare_columns() > 1;
        EXPECT_EQ(read.is_ok(), can) << volume.story();
        if (can) EXPECT_EQ(read.octets, volume.expected({at, block}));
        volume.cluster.bring(all[0]);  // what it has is right, and parity is made of it
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        volume.expect_scrub_heals();
        volume.expect_whole();
    });
}

TEST(FailureTable, Case27_ChecksumsRot_TheirBlocksAreMended) {
    for_each_volume(10, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto box = all[volume.agenda.random.below(all.size())];
        // Where the box keeps them, ahead of the data; it reads them when it begins anew.
        const auto page = volume.cluster.box(box).superblock().data_offset;
        volume.cluster.disk(box).flip_bit(page + 4 + volume.agenda.random.below(4), 2);
        volume.cluster.cut_power(box);
        volume.cluster.bring(box);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        volume.expect_data("with a checksum that is wrong");
        volume.expect_scrub_heals();
        EXPECT_EQ(volume.count(VolumeEventKind::block_lost), 0u);
        volume.expect_whole();
    });
}

TEST(FailureTable, Case27_ACopyOfASuperblockRots_TheOtherIsThere) {
    for_each_volume(10, [](ScriptedVolume& volume) {
        const auto box = static_cast<unsigned>(volume.agenda.random.below(volume.cluster.boxes()));
        for (unsigned i = 0; i < 2; ++i) {  // both copies are written, in turns
            volume.cluster.drop((box + 1) % volume.cluster.boxes());
            ASSERT_TRUE(volume.run_until([&] { return !volume.is_healthy(); }));
            volume.cluster.bring((box + 1) % volume.cluster.boxes());
            ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        }
        const auto copy = volume.agenda.random.below(2) * wire::superblock_size;
        volume.cluster.disk(box).flip_bit(copy + volume.agenda.random.below(400), 1);
        volume.cluster.cut_power(box);
        volume.cluster.bring(box);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); })) << volume.story();
        volume.expect_whole();
    });
}

TEST(FailureTable, Case29_AWriteGoesElsewhere_BothPlacesAreFoundAndMended) {
    for_each_volume(12, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto box = all[volume.agenda.random.below(all.size())];
        const auto elsewhere = at + 2 * volume.layout.stripe_bytes();
        auto& disk = volume.cluster.disk(box);
        const auto there = volume.home_of(box, elsewhere);
        const auto home = volume.home_of(box, at);
        const std::vector<std::byte> kept(disk.octets().begin() + static_cast<long>(there),
                                          disk.octets().begin() + static_cast<long>(there + block));
        auto& write = volume.write({at, block});
        bool strayed = false;
        volume.cluster.write_fate = [&](unsigned i, std::uint64_t offset, std::size_t) {
            RaidDisk::Fate fate;
            if (i == box && offset == home && !std::exchange(strayed, true)) fate.strays_to = there;
            return fate;
        };
        ASSERT_TRUE(volume.run_until([&] { return write.outcome && volume.is_quiet(); }));
        EXPECT_TRUE(write.is_ok());
        ASSERT_TRUE(strayed && !is_at(disk.octets(), there, kept));
        volume.expect_data("read where it is wrong");
        volume.expect_scrub_heals();
        EXPECT_GE(volume.count(VolumeEventKind::block_healed), 2u) << volume.story();
        EXPECT_EQ(volume.count(VolumeEventKind::block_lost), 0u);
        EXPECT_TRUE(is_at(disk.octets(), there, kept));
        volume.expect_whole();
    });
}

TEST(FailureTable, Case30_WhatWasPreparedDoesNotAddUp_ItIsNotCommittedButDoneAgain) {
    for_each_volume(12, [](ScriptedVolume& volume) {
        volume.cluster.damages = 1;
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); }));
        EXPECT_TRUE(write.is_ok());
        EXPECT_EQ(volume.count(VolumeEventKind::audit_failed), 1u) << volume.story();
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 1u);
    });
}

TEST(FailureTable, Case30_ItNeverAddsUp_TheWriteFailsAndTheOldDataStays) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto before = volume.expected({at, block});
        volume.cluster.damages = 1'000;
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); }));
        EXPECT_FALSE(write.is_ok());
        EXPECT_EQ(write.outcome->error().code, Code::io_failed);
        EXPECT_EQ(volume.count(VolumeEventKind::audit_failed), 2u) << volume.story();
        volume.cluster.damages = 0;
        volume.expect_of({at, block}, before);
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 0u);
    });
}

/// Room for two stripes, and four are written at once.
constexpr std::uint32_t little_room = 36;

TEST(FailureTable, Case31_AJournalIsFull_WritesWaitAndNoneIsHalfTaken) {
    std::size_t refusals = 0;
    for_each_volume(
        10,
        [&](ScriptedVolume& volume) {
            volume.look([&](const RaidMessage& message) {
                if (message.outcome == wire::ArrayOutcome::no_room) ++refusals;
            });
            for (std::uint64_t stripe = 0; stripe < ScriptedVolume::stripes; ++stripe)
                volume.write({stripe * volume.layout.stripe_bytes(), volume.layout.stripe_bytes()});
            ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); })) << volume.story();
            for (const auto& request : volume.requests) EXPECT_TRUE(request.is_ok());
            EXPECT_EQ(volume.count(VolumeEventKind::member_absent), 0u) << "nobody is to blame";
            volume.expect_whole();
        },
        little_room);
    if (runs_all_seeds()) EXPECT_GT(refusals, 10u);
}

TEST(FailureTable, Case31_TheRackGoesDarkWithAFullJournal_EveryWriteIsThereOrNot) {
    for_each_volume(
        20,
        [](ScriptedVolume& volume) {
            const auto before = volume.shadow;
            std::vector<ScriptedVolume::Request*> writes;
            for (std::uint64_t stripe = 0; stripe < 4; ++stripe)
                writes.push_back(&volume.write(
                    {stripe * volume.layout.stripe_bytes(), volume.layout.stripe_bytes()}));
            volume.some_steps(20 + volume.agenda.random.below(150));
            darken(volume);
            for (auto* write : writes) {
                auto& read = volume.read(write->range);
                ASSERT_TRUE(volume.run_until([&] { return read.outcome.has_value(); }));
                ASSERT_TRUE(read.is_ok()) << volume.story();
                const auto old = std::span(before).subspan(write->range.offset, read.octets.size());
                const bool is_old = std::ranges::equal(read.octets, old);
                EXPECT_TRUE(read.octets == write->octets || (is_old && !write->is_ok()));
                volume.expect_of(write->range, read.octets);
            }
            volume.expect_whole();
        },
        little_room);
}

}  // namespace
}  // namespace weft::sim
