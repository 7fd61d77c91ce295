// SPDX-License-Identifier: Apache-2.0
// A volume whose boxes are lost and come back: their sessions, their power, their links, what they
// had staged. Whatever happens, what hosts read is what they wrote.
#include <gtest/gtest.h>

#include <set>

#include "raid/volume_manager.hpp"
#include "raid/volume_status.hpp"
#include "support/managed_volume.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using test::boxes_of;
using test::level_of;
using test::ManagedVolume;
using wire::ArrayMemberState;
using enum VolumeEventKind;

TEST(VolumeLosses, GoesOnWithoutABoxAndHasItBackWithWhatItMissed) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        volume.submit_randomly(10);
        volume.drop(box);
        volume.submit_randomly(10);
        volume.expect_all_right();
        EXPECT_EQ(volume.manager->status().state, VolumeState::degraded);
        volume.submit_randomly(5);
        volume.bring(box);
        volume.submit_randomly(10);
        volume.expect_whole();
        EXPECT_GE(volume.count(member_current), 1u);
    });
}

TEST(VolumeLosses, OutlivesALossOfPowerOfOneBox) {
    test::for_each_seed(40, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        volume.submit_randomly(15);
        volume.cut_power(box);
        volume.some_steps(seed % 50);
        volume.bring(box);  // so soon that nobody may have noticed
        volume.submit_randomly(10);
        volume.expect_whole();
    });
}

TEST(VolumeLosses, OutlivesALossOfPowerOfABoxThatIsBeingRebuilt) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        volume.submit_randomly(20);
        volume.expect_all_right();
        volume.drop(box);
        volume.submit_randomly(20);
        volume.expect_all_right();
        volume.bring(box);
        const auto some = 1 + seed % 4;
        ASSERT_TRUE(volume.run_until([&] {
            const auto status = volume.manager->status();
            return volume.is_healthy() ||
                   (!status.rebuilds.empty() && status.rebuilds[0].done >= some);
        }));
        volume.cut_power(box);
        volume.submit_randomly(5);
        volume.bring(box);
        volume.expect_whole();
    });
}

TEST(VolumeLosses, EndsWhatABoxWasDoingHoweverOftenItIsLost) {
    test::for_each_seed(40, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        volume.submit_randomly(10);
        for (int i = 0; i < 4; ++i) {  // each time before all it was asked to end has ended
            volume.drop(box);
            volume.some_steps(seed % 5);
            volume.bring(box);
            volume.some_steps(seed % 7);
        }
        volume.submit_randomly(20);
        volume.expect_whole();
        EXPECT_EQ(volume.count(box_failed), 0u) << volume.story();
    });
}

TEST(VolumeLosses, DoesNotWaitForABoxThatWasReplacedAndIsGone) {
    test::for_each_seed(40, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const unsigned spare = volume.add_spare_box();
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        volume.submit_randomly(10);
        ASSERT_TRUE(
            volume.manager->replace(static_cast<std::uint8_t>(box), volume.identities[spare]));
        volume.sessions[box].mute = true;  // it owes answers
        volume.submit_randomly(10);
        volume.some_steps(seed * 20);
        volume.drop(box);
        volume.expect_whole();
    });
}

TEST(VolumeLosses, KnowsWhatABoxMayLoseWhileItIsCountedOut) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        volume.submit_randomly(10);
        volume.expect_all_right();
        ASSERT_TRUE(volume.manager->fail(static_cast<std::uint8_t>(box)));
        volume.agenda.run();
        volume.cut_power(box);  // what it answered for before it was counted out
        volume.bring(box);
        ASSERT_TRUE(volume.manager->re_add(static_cast<std::uint8_t>(box)));
        volume.expect_whole();
    });
}

TEST(VolumeLosses, BelievesABoxThatWasAwayOnlyWhenItWasCountedOut) {
    ManagedVolume volume(Level::mirror, 2, 1);
    volume.submit(HostOperation::write, {0, volume.shadow.size()});
    ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
    volume.cut_power(0);  // nothing was flushed
    volume.store_fails = 3;
    volume.bring(0);
    auto& read = volume.submit(HostOperation::read, {0, volume.shadow.size()});
    volume.agenda.run();
    EXPECT_FALSE(read.outcome) << "it is back, and what it has forgotten nobody knows yet";
    volume.expect_whole();
}

TEST(VolumeLosses, WaitsForABoxItCannotDoWithout) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        ManagedVolume volume(Level::raid5, 5, seed);
        volume.submit_randomly(10);
        volume.expect_all_right();
        volume.drop(1);
        volume.submit_randomly(5);
        volume.expect_all_right();
        volume.drop(3);
        auto& waiting = volume.submit(HostOperation::read, {0, volume.shadow.size() / 2});
        volume.agenda.run();
        EXPECT_FALSE(waiting.outcome) << "two of five are away";
        EXPECT_EQ(volume.manager->status().state, VolumeState::stopped);
        EXPECT_EQ(volume.manager->volume().members[3].state, ArrayMemberState::current);
        volume.bring(3);
        volume.bring(1);
        volume.expect_whole();
    });
}

TEST(VolumeLosses, RemovesNobodyWhomTheOthersCannotReach) {
    test::for_each_seed(10, [](std::uint64_t seed) {
        ManagedVolume volume(Level::raid5, 5, seed);
        volume.submit_randomly(5);
        // One box reaches nobody, and nobody reaches it; the controller does.
        for (unsigned i = 0; i < 5; ++i)
            if (i != 2) volume.boxes[i]->network.out_of_reach = volume.identities[2];
        volume.boxes[2]->network.reaches_no_box = seed % 2 == 0;
        volume.submit_randomly(30);
        volume.expect_all_right();
        EXPECT_EQ(volume.count(box_failed), 0u) << volume.story();
        EXPECT_EQ(volume.count(member_absent), 0u) << volume.story();
        EXPECT_GT(volume.count(link_broken), 0u);
        for (auto& box : volume.boxes) box->network.out_of_reach.reset();
        volume.boxes[2]->network.reaches_no_box = false;
        volume.expect_whole();
    });
}

TEST(VolumeLosses, DoesAWriteAnewThatWasCutShortAmidItsCommit) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        ManagedVolume volume(seed % 2 ? Level::raid5 : Level::raid6, 5, seed);
        volume.submit_randomly(5);
        volume.lost_commits = static_cast<int>(1 + seed % 3);
        volume.submit_randomly(10);
        volume.expect_whole();
        EXPECT_EQ(volume.count(box_failed), 0u);
    });
}

TEST(VolumeLosses, LosesNothingWhenTouchIsLostWhileItIsDegraded) {
    test::for_each_seed(60, [](std::uint64_t seed) {
        ManagedVolume volume(seed % 2 ? Level::raid5 : Level::raid6, 5, seed);
        volume.submit_randomly(10);
        for (unsigned away = 0; away < volume.layout.spare_columns(); ++away) volume.drop(away);
        volume.submit_randomly(5);
        volume.expect_all_right();
        for (int i = 0; i < 6; ++i) {
            volume.submit_randomly(4);
            const unsigned box = 2 + static_cast<unsigned>(volume.agenda.random() % 3);
            volume.drop(box);
            for (auto steps = seed % 9; steps > 0; --steps) volume.agenda.step();
            volume.bring(box);
        }
        volume.expect_all_right();
        EXPECT_EQ(volume.count(scrub_unrepaired), 0u) << volume.story();
        for (unsigned away = 0; away < volume.layout.spare_columns(); ++away) volume.bring(away);
        volume.expect_whole();
    });
}

/// A write that was begun before a change, and is begun again at once after it, must not be planned
/// with a box that has just gone.
TEST(VolumeLosses, LosesNothingWhenASecondBoxGoesWhileTheFirstReturns) {
    test::for_each_seed(200, [](std::uint64_t seed) {
        ManagedVolume volume(Level::raid6, 6, seed);
        volume.submit_randomly(10);
        volume.drop(0);
        volume.submit_randomly(8);
        volume.bring(0);
        volume.submit_randomly(2);
        volume.some_steps(seed % 20);
        volume.cut_power(1);
        volume.submit_randomly(3);
        volume.bring(1);
        volume.expect_whole();
        EXPECT_EQ(volume.count(scrub_unrepaired), 0u) << volume.story();
    });
}

TEST(VolumeLosses, DoesNotTakeAnEmptyPartForAMember) {
    ManagedVolume volume(Level::raid5, 5, 1);
    volume.submit_randomly(10);
    volume.expect_all_right();
    volume.drop(1);
    volume.agenda.run();
    volume.drop(3);
    auto kept = std::move(volume.boxes[3]);
    volume.bring(3);  // its folder was emptied, and nobody can be spared
    auto& read = volume.submit(HostOperation::read, {0, volume.shadow.size() / 2});
    volume.agenda.run();
    EXPECT_FALSE(read.outcome);
    EXPECT_EQ(volume.manager->status().state, VolumeState::stopped);
    volume.drop(3);
    volume.boxes[3] = std::move(kept);
    volume.bring(3);
    volume.bring(1);
    volume.expect_whole();
}

TEST(VolumeLosses, RebuildsABoxOfThePastInFull) {
    ManagedVolume volume(Level::raid5, 5, 1);
    volume.submit(HostOperation::write, {0, volume.shadow.size()});
    volume.expect_all_right();
    const auto old = volume.boxes[2]->disk.octets;
    volume.drop(0);  // so that the volume is another
    volume.agenda.run();
    volume.bring(0);
    volume.expect_whole();
    volume.boxes[2]->disk.lasting = old;  // somebody puts back a copy of yesterday
    volume.cut_power(2);
    volume.events.clear();
    volume.bring(2);
    volume.expect_whole();
    const auto began = std::ranges::find(volume.events, rebuild_began, &VolumeEvent::kind);
    ASSERT_NE(began, volume.events.end());
    EXPECT_EQ(began->number, ManagedVolume::stripe_count);
}

TEST(VolumeLosses, ReplacesABoxAmidEverything) {
    test::for_each_seed(40, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const unsigned spare = volume.add_spare_box();
        volume.submit_randomly(10);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        volume.submit_randomly(10);
        ASSERT_TRUE(volume.manager->replace(static_cast<std::uint8_t>(seed % boxes_of(seed)),
                                            volume.identities[spare]));
        volume.submit_randomly(20);
        volume.expect_whole();
    });
}

TEST(VolumeLosses, DoesNotBlameBoxesForAHostThatIsGone) {
    ManagedVolume volume(Level::raid5, 5, 1);
    ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
    for (auto operation : {HostOperation::read, HostOperation::write}) {
        ManagedVolume::Request request;
        request.operation = operation;
        request.range = {0, 65536};
        request.memory.tag = SteeringTag{0xdead'0000};
        volume.manager->submit(request);
        ASSERT_TRUE(volume.run_until([&] { return request.outcome.has_value(); }));
        EXPECT_EQ(request.outcome->error().code, Code::disconnected);
    }
    EXPECT_EQ(volume.count(box_failed), 0u);
    volume.expect_whole();
}

TEST(VolumeLosses, OutlivesAStorm) {
    test::for_each_seed(60, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.in_band_too = seed % 2 == 0;
        const unsigned most = volume.layout.spare_columns();
        std::set<unsigned> away, disturbed;
        auto random = [&](std::uint64_t below) { return volume.agenda.random() % below; };
        for (int i = 0; i < 30; ++i) {
            volume.submit_randomly(static_cast<int>(random(4)));
            const auto box = static_cast<unsigned>(random(boxes_of(seed)));
            const auto what = random(6);
            if (volume.is_healthy()) disturbed.clear();
            if (what < 2 && !away.empty()) {
                const auto back = *away.begin();
                away.erase(back);
                volume.bring(back);
            } else if (what < 4 && !away.contains(box) &&
                       (disturbed.size() < most || disturbed.contains(box))) {
                if (what == 2)
                    volume.drop(box);
                else
                    volume.cut_power(box);
                away.insert(box);
                disturbed.insert(box);
            } else if (what == 4) {
                volume.boxes[box]->windows.refusals = static_cast<int>(random(5));
            } else if (what == 5 && disturbed.empty()) {
                volume.replace_controller();
                volume.expect_all_right();
            }
        }
        for (auto box : away) volume.bring(box);
        volume.submit_randomly(5);
        volume.expect_whole();
    });
}

}  // namespace
}  // namespace weft::raid
