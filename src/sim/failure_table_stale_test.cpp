// SPDX-License-Identifier: Apache-2.0
// The failure table, case 28: disks that say a write is done and have lost it, with the checksum
// that would tell; and boxes whose folder was put back from an older copy.
#include <gtest/gtest.h>

#include "support/scripted_volume.hpp"

namespace weft::sim {
namespace {

using namespace test;
constexpr auto block = ScriptedVolume::block;
constexpr std::uint64_t at = 3 * block;

/// All that has no time yet to be done is done, and nobody lacks what was written lately.
void rest(ScriptedVolume& volume) {
    volume.run_until([] { return false; });
    ASSERT_TRUE(volume.all_answered() && volume.is_healthy()) << volume.story();
}

/// The box's disk loses what goes home of a write, and what is written again after a restart; the
/// journal has it until it takes it to be home. Then nothing in the box knows of it.
void lose_write(ScriptedVolume& volume, unsigned box, raid::Range range) {
    volume.cluster.cut_power(box);  // what came before is home, and its checksums are
    volume.cluster.bring(box);
    rest(volume);
    const auto data = volume.cluster.box(box).superblock().data_offset;
    volume.cluster.write_fate = [box, data](unsigned i, std::uint64_t offset, std::size_t) {
        return RaidDisk::Fate{.is_lost = i == box && offset >= data, .strays_to = {}};
    };
    const auto& write = volume.write(range);
    ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); }));
    ASSERT_TRUE(write.is_ok());
    rest(volume);
    volume.cluster.cut_power(box);
    volume.cluster.write_fate = nullptr;
    volume.cluster.cut_power(box);
    volume.cluster.bring(box);
    rest(volume);
}

std::vector<std::byte> block_on(ScriptedVolume& volume, unsigned box) {
    const auto octets = volume.cluster.disk(box).octets().subspan(volume.home_of(box, at), block);
    return {octets.begin(), octets.end()};
}

TEST(FailureTable, Case28_AWriteIsLost_ItIsNamedByWhatParityRemembers) {
    for_each_volume(6, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        for (const unsigned box : all) {  // the data's, and then each parity's or copy's
            const auto before = block_on(volume, box);
            lose_write(volume, box, {at, block});
            ASSERT_EQ(block_on(volume, box), before) << "it was not lost\n" << volume.story();
            volume.events.clear();
            volume.expect_scrub_finds(1);
            ASSERT_EQ(volume.count(VolumeEventKind::block_stale), 1u) << volume.story();
            const auto* named = volume.last(VolumeEventKind::block_stale);
            EXPECT_EQ(named->place, box);
            const auto place = volume.layout.place_of(at);
            EXPECT_EQ(named->number, volume.layout.home_of(place.stripe) + place.offset);
            EXPECT_EQ(volume.count(VolumeEventKind::block_corrupt), 0u) << "its checksum matches";
            EXPECT_EQ(block_on(volume, box), before) << "who only looks changes nothing";
            volume.expect_scrub_heals();
            EXPECT_NE(block_on(volume, box), before);
        }
        volume.expect_whole();
    });
}

/// Whose numbers begin anew with every epoch.
TEST(FailureTable, Case28_ControllersFollowEachOtherAfterALostWrite_ItIsNamedAllTheSame) {
    for_each_volume(4, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto box = all[volume.agenda.random.below(all.size())];
        volume.cluster.take_over(false);
        rest(volume);
        lose_write(volume, box, {at, block});
        volume.cluster.take_over(false);
        rest(volume);
        volume.write({at + volume.layout.stripe_bytes(), block});  // another row
        rest(volume);
        volume.events.clear();
        volume.expect_scrub_heals();
        EXPECT_GE(volume.count(VolumeEventKind::block_stale), 1u) << volume.story();
        for (const auto& event : volume.events)
            if (event.kind == VolumeEventKind::block_stale) {
                EXPECT_EQ(event.place, box);
            }
        volume.expect_whole();
    });
}

TEST(FailureTable, Case28_ABoxIsPutBackFromAnOlderCopy_ItIsNoticedAndRebuiltWhole) {
    for_each_volume(6, [](ScriptedVolume& volume) {
        const auto box = volume.participants_of(at).back();
        const auto copy = volume.cluster.disk(box).image();
        volume.write({at, block});
        rest(volume);
        volume.cluster.put_back(box, copy);
        volume.cluster.bring(box);
        rest(volume);
        EXPECT_EQ(volume.count(VolumeEventKind::box_put_back), 1u) << volume.story();
        const auto* began = volume.last(VolumeEventKind::rebuild_began);
        ASSERT_NE(began, nullptr) << volume.story();
        EXPECT_EQ(began->number, ScriptedVolume::stripes) << "all of it";
        volume.expect_whole();
    });
}

/// Until then it is only known to have been away for a moment, and that is what the store has.
TEST(FailureTable, Case28_ABoxThatIsBeingCountedOutWasPutBack_TheNextControllerKnowsThatToo) {
    for_each_volume(6, [](ScriptedVolume& volume) {
        const auto box = volume.participants_of(at).back();
        const auto copy = volume.cluster.disk(box).image();
        volume.write({at, block});
        rest(volume);
        volume.cluster.store_is_away = true;
        volume.cluster.put_back(box, copy);
        volume.cluster.bring(box);
        volume.run_dry();
        ASSERT_EQ(volume.count(VolumeEventKind::box_put_back), 1u) << volume.story();
        volume.let_go();
        ASSERT_TRUE(volume.park(1, [](const RaidMessage& message) {
            return message.action == wire::ArrayAction::store_volume;
        })) << volume.story();
        volume.run_dry();
        EXPECT_TRUE(volume.cluster.is_noted_to_lack_all(static_cast<std::uint8_t>(box)));
        volume.cluster.take_over(false);
        volume.let_go();
        rest(volume);
        volume.expect_whole();
    });
}

/// No controller is left who would remember; the other boxes do.
TEST(FailureTable, Case28_ABoxIsPutBackWhileAllIsDark_TheOthersRememberWhatItHad) {
    for_each_volume(6, [](ScriptedVolume& volume) {
        const auto box = volume.participants_of(at).back();
        const auto copy = volume.cluster.disk(box).image();
        volume.write({at, block});
        rest(volume);
        for (unsigned i = 0; i < volume.cluster.boxes(); ++i) volume.cluster.cut_power(i);
        volume.cluster.put_back(box, copy);
        volume.cluster.take_over(false);
        for (unsigned i = 0; i < volume.cluster.boxes(); ++i) volume.cluster.bring(i);
        rest(volume);
        EXPECT_EQ(volume.count(VolumeEventKind::box_put_back), 1u) << volume.story();
        volume.expect_whole();
    });
}

}  // namespace
}  // namespace weft::sim
