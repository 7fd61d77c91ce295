// SPDX-License-Identifier: Apache-2.0
// What is in question outlives controllers: what absent members lack, what was being written, and
// which boxes have begun anew meanwhile.
#include <gtest/gtest.h>

#include "raid/lasting_map.hpp"
#include "raid/volume_manager.hpp"
#include "support/managed_volume.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using test::boxes_of;
using test::level_of;
using test::ManagedVolume;
using wire::ArrayMemberState;
using enum VolumeEventKind;

std::optional<DirtyRecord> kept_map(const ManagedVolume& volume, std::uint8_t place) {
    const auto found = volume.kept.find(dirty_record_name(volume.manager->volume().volume, place));
    if (found == volume.kept.end()) return std::nullopt;
    auto record = parse_dirty_record(found->second);
    EXPECT_TRUE(record);
    return *record;
}

bool is_at_rest(const ManagedVolume& volume) {
    const auto intent = kept_map(volume, wire::intent_place);
    return volume.all_answered() && volume.is_healthy() && (!intent || intent->stripes.empty());
}

void fill(ManagedVolume& volume) {
    const std::uint64_t stripe = volume.layout.stripe_bytes();
    for (std::uint64_t i = 0; i < ManagedVolume::stripe_count; ++i)
        volume.submit(HostOperation::write, {i * stripe, stripe});
    // Long enough that all boxes have flushed.
    const auto then = volume.now + std::chrono::seconds(5);
    ASSERT_TRUE(volume.run_until([&] { return is_at_rest(volume) && volume.now >= then; }))
        << volume.story();
    volume.expect_all_right();
}

std::uint64_t stripes_to_rebuild(const ManagedVolume& volume) {
    const auto began = std::ranges::find(volume.events, rebuild_began, &VolumeEvent::kind);
    return began == volume.events.end() ? 0 : began->number;
}

TEST(LastingMap, HasOnlyWhatTheStoreHas) {
    LastingMap map(100);
    map.want(7);
    EXPECT_TRUE(map.is_due());
    EXPECT_FALSE(map.has(7));
    EXPECT_TRUE(map.begin().contains(7));
    map.want(9);  // too late for this one
    map.stored(true);
    EXPECT_TRUE(map.has(7));
    EXPECT_FALSE(map.has(9));
    EXPECT_TRUE(map.is_due());
    map.begin();
    map.stored(false);
    EXPECT_FALSE(map.has(9));
}

TEST(LastingMap, HasNothingThatTheStoreMayHaveForgotten) {
    LastingMap map(100);
    map.want(7);
    map.want(9);
    map.begin();
    map.stored(true);
    RegionMap needed(100);
    needed.add(9);
    map.want_only(needed);
    map.begin();
    EXPECT_FALSE(map.has(7)) << "the store may have done it already";
    map.want(7);
    map.stored(false);
    EXPECT_FALSE(map.has(7));
    EXPECT_TRUE(map.has(9));
}

class EveryConsistency : public ::testing::TestWithParam<wire::ArrayConsistency> {};
INSTANTIATE_TEST_SUITE_P(VolumeDirty, EveryConsistency,
                         ::testing::Values(wire::ArrayConsistency::none,
                                           wire::ArrayConsistency::journal));

TEST_P(EveryConsistency, GivesABoxWhatItLacksUnderTheNextControllerToo) {
    ManagedVolume volume(Level::raid5, 5, 1, {}, GetParam());
    const std::uint64_t stripe = volume.layout.stripe_bytes();
    fill(volume);
    volume.drop(2);
    volume.submit(HostOperation::write, {3 * stripe, 4096});
    volume.expect_all_right();
    volume.replace_controller();
    volume.submit(HostOperation::write, {5 * stripe, 4096});
    volume.expect_all_right();
    volume.replace_controller();
    volume.bring(2);
    volume.expect_whole();
    EXPECT_EQ(stripes_to_rebuild(volume), 2u) << "those that were written meanwhile";
    EXPECT_FALSE(kept_map(volume, 2)) << "it lacks nothing any more";
}

TEST_P(EveryConsistency, GivesABoxWithAnEmptyPartEverythingUnderTheNextControllerToo) {
    ManagedVolume volume(Level::raid5, 5, 1, {}, GetParam());
    fill(volume);
    volume.wipe(2);
    volume.submit(HostOperation::write, {0, 4096});
    volume.expect_all_right();
    volume.bring(2);
    ASSERT_TRUE(volume.run_until([&] { return volume.boxes[2] != nullptr; }));
    volume.replace_controller();  // to which it is a box like any other
    volume.expect_whole();
}

TEST_P(EveryConsistency, BeginsAgainWithABoxThatLosesItsDiskWhileItIsRebuilt) {
    ManagedVolume volume(Level::raid5, 5, 1, {}, GetParam());
    fill(volume);
    volume.wipe(2);
    volume.pass(std::chrono::seconds(1));
    volume.bring(2);
    auto saved = [&] {
        const auto record =
            volume.kept.find(rebuild_record_name(volume.manager->volume().volume, 2));
        return record != volume.kept.end() &&
               parse_record<wire::ArrayRebuildRecord>(record->second)->stripes >= 3;
    };
    ASSERT_TRUE(volume.run_until(saved));
    volume.wipe(2);
    volume.replace_controller();  // which has not seen it go
    volume.bring(2);
    volume.expect_whole();
}

TEST(VolumeDirty, GoesOnGivingABoxWhatItLacks) {
    ManagedVolume volume(Level::raid5, 5, 1);
    const std::uint64_t stripe = volume.layout.stripe_bytes();
    fill(volume);
    volume.drop(2);
    for (std::uint64_t i : {0, 1, 2, 3, 6}) volume.submit(HostOperation::write, {i * stripe, 4096});
    volume.expect_all_right();
    volume.bring(2);
    auto saved = [&] {
        const auto name = rebuild_record_name(volume.manager->volume().volume, 2);
        const auto record = volume.kept.find(name);
        return record != volume.kept.end() &&
               parse_record<wire::ArrayRebuildRecord>(record->second)->stripes >= 3;
    };
    ASSERT_TRUE(volume.run_until(saved));
    volume.replace_controller();
    const auto rebuilds = volume.manager->status().rebuilds;
    ASSERT_EQ(rebuilds.size(), 1u);
    EXPECT_LE(rebuilds[0].to_do, 2u);
    EXPECT_GE(rebuilds[0].to_do, 1u);
    volume.expect_whole();
}

TEST(VolumeDirty, AnswersNoWriteThatTheNextControllerWouldNotKnowOf) {
    ManagedVolume volume(Level::raid5, 5, 1);
    const std::uint64_t stripe = volume.layout.stripe_bytes();
    fill(volume);
    volume.drop(2);
    volume.submit(HostOperation::write, {3 * stripe, 4096});
    volume.expect_all_right();
    volume.store_fails = 1'000;
    auto& known = volume.submit(HostOperation::write, {3 * stripe + 8192, 4096});
    auto& unknown = volume.submit(HostOperation::write, {4 * stripe, 4096});
    auto& read = volume.submit(HostOperation::read, {5 * stripe, 4096});
    for (int i = 0; i < 20; ++i) {
        volume.agenda.run();
        volume.pass_time();
    }
    EXPECT_TRUE(known.outcome) << "its region is in the store already";
    EXPECT_TRUE(read.outcome);
    EXPECT_FALSE(unknown.outcome);
    volume.store_fails = 0;
    volume.expect_all_right();
    EXPECT_TRUE(kept_map(volume, 2)->stripes.contains(4));
    EXPECT_FALSE(kept_map(volume, 2)->stripes.contains(5));
    volume.bring(2);
    volume.expect_whole();
}

/// Whatever the boxes lack is in the store at every moment, or they are given all.
TEST(VolumeDirty, LosesNothingWhenControllersAndBoxesComeAndGo) {
    test::for_each_seed(60, [](std::uint64_t seed) {
        const auto consistency =
            seed % 2 == 0 ? wire::ArrayConsistency::none : wire::ArrayConsistency::journal;
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed, {}, consistency);
        const auto box = static_cast<unsigned>(seed / 2 % boxes_of(seed));
        auto random = [&](std::uint64_t below) { return volume.agenda.random() % below; };
        for (int i = 0; i < 20; ++i) {
            volume.submit_randomly(static_cast<int>(random(4)));
            switch (random(4)) {
                case 0:
                    volume.drop(box);
                    break;
                case 1:
                    volume.cut_power(box);
                    break;
                case 2:
                    volume.bring(box);
                    break;
                case 3:  // with a journal amid everything
                    if (consistency == wire::ArrayConsistency::none) volume.expect_all_right();
                    if (random(2) == 0) volume.cut_power(box);
                    volume.replace_controller();
                    break;
            }
        }
        volume.bring(box);
        volume.expect_whole();
    });
}

TEST(VolumeDirty, KnowsABoxThatLostItsPowerWhileNobodyLooked) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        fill(volume);
        volume.submit(HostOperation::write, {0, volume.layout.stripe_bytes()});
        volume.expect_all_right();  // and nobody has flushed
        volume.cut_power(box);
        volume.replace_controller();
        volume.bring(box);
        volume.expect_whole();
        EXPECT_LE(stripes_to_rebuild(volume), 1u);
    });
}

TEST(VolumeDirty, BelievesABoxThatWasThereAllTheTime) {
    ManagedVolume volume(Level::raid5, 5, 1);
    fill(volume);
    volume.submit(HostOperation::write, {0, 4096});
    volume.expect_all_right();
    volume.replace_controller();
    volume.expect_whole();
    EXPECT_EQ(volume.count(member_absent), 0u);
    EXPECT_EQ(volume.count(writes_lost), 0u);
}

/// What it lacked is known, and was given to it: it is not in question when a controller is lost.
TEST(VolumeDirty, BelievesABoxThatLostItsPowerAndIsWholeAgain) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        fill(volume);
        volume.submit(HostOperation::write, {0, volume.layout.stripe_bytes()});
        volume.expect_all_right();
        volume.cut_power(box);
        if (seed % 2 == 0) volume.agenda.run();  // it is counted out before it is back
        volume.bring(box);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); })) << volume.story();
        ASSERT_GE(volume.count(member_current), 1u);
        // Under way when the controller is lost: who counted a box out now would lose what it has.
        for (int i = 0; i < 3; ++i)
            volume.submit(HostOperation::write, {0, volume.layout.stripe_bytes() / 2});
        for (auto steps = seed * 7 % 101; steps > 0; --steps) volume.agenda.step();
        volume.events.clear();
        volume.replace_controller();
        volume.expect_whole();
        EXPECT_EQ(volume.count(member_absent) + volume.count(rebuild_began), 0u) << volume.story();
        EXPECT_EQ(volume.count(writes_lost), 0u) << volume.story();
    });
}

/// A host that has written and flushed hears of it where what it wrote may be gone.
TEST(VolumeDirty, SaysOnceThatABoxThatCannotBeSparedMayHaveLostWrites) {
    for (const bool controller_too : {false, true}) {
        ManagedVolume volume(Level::raid5, 5, 1);
        fill(volume);
        volume.drop(0);
        volume.submit(HostOperation::write, {0, 2 * volume.layout.stripe_bytes()});
        volume.expect_all_right();
        volume.cut_power(3);
        if (controller_too) volume.replace_controller();
        volume.bring(3);
        auto& first = volume.submit(HostOperation::flush, {});
        auto& read = volume.submit(HostOperation::read, {0, 4096});
        ASSERT_TRUE(volume.run_until([&] { return first.outcome && read.outcome; }));
        EXPECT_FALSE(*first.outcome) << "controller too: " << controller_too;
        EXPECT_EQ(volume.count(writes_lost), 1u) << volume.story();
        auto& second = volume.submit(HostOperation::flush, {});
        ASSERT_TRUE(volume.run_until([&] { return second.outcome.has_value(); }));
        EXPECT_TRUE(*second.outcome) << "it was said";
        volume.bring(0);
        ASSERT_TRUE(volume.run_until([&] { return is_at_rest(volume); })) << volume.story();
        ASSERT_TRUE(volume.manager->scrub(false));
        ASSERT_TRUE(volume.run_until([&] { return !volume.manager->status().scrub.running; }));
        EXPECT_EQ(volume.manager->status().scrub.mismatches, 0u) << "parity is as the data";
    }
}

TEST(VolumeDirty, SaysNothingOfABoxThatOnlyLostItsSession) {
    ManagedVolume volume(Level::raid5, 5, 1);
    fill(volume);
    volume.drop(0);
    volume.submit(HostOperation::write, {0, volume.layout.stripe_bytes()});
    volume.expect_all_right();
    volume.drop(3);
    volume.agenda.run();
    volume.bring(3);
    volume.submit(HostOperation::flush, {});
    volume.expect_all_right();
    EXPECT_EQ(volume.count(writes_lost), 0u);
    volume.bring(0);
    volume.expect_whole();
}

/// Nobody asks again for a write that was under way: its host is gone too.
TEST(VolumeDirty, MakesParityAnewOfWhatWasBeingWritten) {
    std::size_t doubtful = 0;
    test::for_each_seed(60, [&](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        fill(volume);
        for (int i = 0; i < 3; ++i) volume.submit(HostOperation::write, volume.draw());
        for (auto steps = seed * 7 % 101; steps > 0; --steps) volume.agenda.step();
        auto forgotten = std::move(volume.requests);
        volume.requests.clear();
        volume.replace_controller();
        ASSERT_TRUE(volume.run_until([&] { return is_at_rest(volume); })) << volume.story();
        ASSERT_TRUE(volume.manager->scrub(false));
        ASSERT_TRUE(volume.run_until([&] { return !volume.manager->status().scrub.running; }));
        EXPECT_EQ(volume.manager->status().scrub.mismatches, 0u) << volume.story();
        doubtful += volume.count(stripes_doubtful);
    });
    EXPECT_GT(doubtful, 10u);
}

TEST(VolumeDirty, HasNothingInQuestionOnceAllIsFlushed) {
    ManagedVolume volume(Level::raid5, 5, 1);
    fill(volume);
    volume.replace_controller();
    volume.expect_whole();
    EXPECT_EQ(volume.count(stripes_doubtful), 0u);
}

TEST(VolumeDirty, WritesTheStoreOnlyWhereARegionIsNew) {
    ManagedVolume volume(Level::raid5, 5, 1);
    ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
    volume.submit(HostOperation::write, {0, 4096});
    volume.expect_all_right();
    volume.store_fails = 1'000;
    for (int i = 0; i < 20; ++i) volume.submit(HostOperation::write, {0, 8192});
    ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
    EXPECT_EQ(volume.count(store_failed), 0u);
}

/// The rules of flushing: nobody is counted on before what it was given is lasting.
TEST(VolumeDirty, FlushesAMemberBeforeItIsCurrent) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        fill(volume);
        volume.drop(box);
        volume.submit(HostOperation::write, {0, volume.shadow.size() / 2});
        ASSERT_TRUE(volume.run_until([&] {  // and all that was written meanwhile is flushed
            const auto intent = kept_map(volume, wire::intent_place);
            return volume.all_answered() && intent && intent->stripes.empty();
        }));
        volume.bring(box);
        ASSERT_TRUE(volume.run_until([&] { return volume.count(member_current) > 0; }));
        volume.cut_power(box);
        volume.events.clear();
        volume.bring(box);
        volume.expect_whole();
        EXPECT_LE(stripes_to_rebuild(volume), 0u) << "nothing was written since";
    });
}

TEST(VolumeDirty, BeginsAtStripeNoughtWithEveryBoxThatTakesAPlace) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        const auto place = static_cast<std::uint8_t>(box);
        fill(volume);
        const unsigned spare = volume.add_spare_box(), other = volume.add_spare_box();
        ASSERT_TRUE(volume.manager->replace(place, volume.identities[spare]));
        auto saved = [&] {
            const auto name = rebuild_record_name(volume.manager->volume().volume, place);
            const auto record = volume.kept.find(name);
            return record != volume.kept.end() &&
                   parse_record<wire::ArrayRebuildRecord>(record->second)->stripes >= 3;
        };
        ASSERT_TRUE(volume.run_until(saved));
        // Its power goes: what was flushed by then need not be given again, and all else must.
        volume.events.clear();
        volume.cut_power(spare);
        volume.bring(spare);
        ASSERT_TRUE(volume.run_until([&] { return volume.count(rebuild_began) > 0; }));
        EXPECT_LT(stripes_to_rebuild(volume), ManagedVolume::stripe_count);
        EXPECT_GT(stripes_to_rebuild(volume), 0u);
        // Another box takes its place, of which nothing is known.
        volume.events.clear();
        ASSERT_TRUE(volume.manager->replace(place, volume.identities[other]));
        ASSERT_TRUE(volume.run_until([&] { return volume.count(rebuild_began) > 0; }));
        EXPECT_EQ(stripes_to_rebuild(volume), ManagedVolume::stripe_count);
        EXPECT_FALSE(kept_map(volume, place)) << "what the one lacked says nothing of the other";
        if (seed % 2 == 0) volume.replace_controller();
        volume.expect_whole();
    });
}

}  // namespace
}  // namespace weft::raid
