// SPDX-License-Identifier: Apache-2.0
// The failure table, cases 17 to 19, 21 to 23 and 36 to 38: who belongs to a volume when parts of
// it do not reach each other, too many are away, or come back from the past; and rebuilding.
// docs/failures.md has the table.
#include <gtest/gtest.h>

#include "support/scripted_volume.hpp"

namespace weft::sim {
namespace {

using namespace test;
using wire::ArrayMemberState;
constexpr auto block = ScriptedVolume::block;
constexpr std::uint64_t at = 4 * block;
constexpr std::uint8_t ann = 1, bob = 2;

unsigned any_box(ScriptedVolume& volume) {
    return static_cast<unsigned>(volume.agenda.random.below(volume.cluster.boxes()));
}
bool is_prepare_command(const RaidMessage& message) {
    return message.prepares() && !message.is_answer;
}

/// It was paused, and goes on with what it was doing as if nothing had happened.
TEST(FailureTable, Case17_AControllerOfThePastGoesOn_NobodyObeysIt) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        auto& past = volume.cluster.manager();
        auto& stale = volume.write({at, block}, ann);
        ASSERT_TRUE(volume.park(1, is_prepare_command));
        volume.cluster.take_over(true);
        auto& fresh = volume.write({at, block}, bob);
        std::size_t refusals = 0;
        volume.look([&](const RaidMessage& message) {
            if (message.outcome == wire::ArrayOutcome::other_epoch) ++refusals;
        });
        volume.let_go();
        ASSERT_TRUE(volume.run_until([&] { return fresh.outcome.has_value(); }));
        EXPECT_TRUE(fresh.is_ok());
        volume.run_dry();
        EXPECT_GT(refusals, 0u);
        EXPECT_FALSE(stale.is_ok());
        EXPECT_EQ(past.status().state, VolumeState::deposed);
        auto& late = volume.ask_of(past, {at, block}, ann);  // and it takes nothing more
        volume.run_dry();
        EXPECT_FALSE(late.is_ok());
        volume.expect_whole();
        EXPECT_EQ(volume.executions(stale), 0u);
        EXPECT_EQ(volume.executions(fresh), 1u);
    });
}

TEST(FailureTable, Case18_SomeBoxesAreOutOfTheControllersReach_TheVolumeGoesOnWithoutThem) {
    for_each_volume(6, [](ScriptedVolume& volume) {
        const auto first = any_box(volume);
        for (unsigned i = 0; i < volume.layout.spare_columns(); ++i)
            volume.cluster.drop((first + i) % volume.cluster.boxes());
        auto& write = volume.write({at, 3 * block});
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); }));
        EXPECT_TRUE(write.is_ok());
        EXPECT_EQ(volume.state(), VolumeState::degraded);
        volume.expect_data("without those");
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 1u);
    });
}

TEST(FailureTable, Case18_MoreBoxesAreOutOfReachThanCanBeSpared_TheVolumeWaitsForThem) {
    for_each_volume(6, [](ScriptedVolume& volume) {
        auto& write = volume.write({at, 3 * block});
        volume.some_steps(volume.agenda.random.below(30));
        const auto first = any_box(volume);
        const bool answered = write.is_ok();
        for (unsigned i = 0; i <= volume.layout.spare_columns(); ++i)
            volume.cluster.drop((first + i) % volume.cluster.boxes());
        auto& read = volume.read({at, 3 * block});
        ASSERT_TRUE(volume.run_until([&] { return volume.state() == VolumeState::stopped; }));
        volume.run_dry();
        EXPECT_FALSE(read.outcome) << "it could be of the past";
        EXPECT_EQ(write.is_ok(), answered);
        const auto generation = volume.generation();
        for (unsigned i = 0; i < volume.cluster.boxes(); ++i) volume.cluster.bring(i);
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); })) << volume.story();
        EXPECT_TRUE(write.is_ok() && read.is_ok());
        EXPECT_GE(volume.generation(), generation);
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 1u);
    });
}

/// What is written needs no store; who is a member does.
TEST(FailureTable, Case19_TheStoreIsOutOfReach_WritesGoOnUntilAMembershipMustChange) {
    for_each_volume(6, [](ScriptedVolume& volume) {
        volume.cluster.store_is_away = true;
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); }));
        EXPECT_TRUE(write.is_ok());
        const auto box = volume.box_of(at);
        const auto generation = volume.generation();
        volume.cluster.cut_power(box);
        auto& behind = volume.write({at, block});
        volume.run_dry();
        EXPECT_FALSE(behind.outcome) << "answered under a membership that nobody has kept";
        EXPECT_EQ(volume.generation(), generation);
        volume.let_go();
        ASSERT_TRUE(volume.run_until([&] { return behind.outcome.has_value(); }));
        EXPECT_TRUE(behind.is_ok());
        EXPECT_EQ(volume.member(box), ArrayMemberState::absent);
        volume.expect_data("without the box");
        volume.expect_whole();
    });
}

TEST(FailureTable, Case21_TwoBoxesDoNotReachEachOther_DataGoesAroundAndNobodyIsCountedOut) {
    for_each_volume(6, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto generation = volume.generation();
        volume.cluster.cut_link(all[0], all[1]);
        volume.cluster.cut_link(all[1], all[0]);
        auto& write = volume.write({at, block});
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); })) << volume.story();
        EXPECT_TRUE(write.is_ok());
        auto& stripe = volume.write({0, volume.layout.stripe_bytes()});
        ASSERT_TRUE(volume.run_until([&] { return stripe.outcome.has_value(); }));
        EXPECT_TRUE(stripe.is_ok());
        EXPECT_GE(volume.count(VolumeEventKind::link_broken), 1u) << volume.story();
        EXPECT_EQ(volume.count(VolumeEventKind::box_failed), 0u);
        EXPECT_EQ(volume.generation(), generation);
        EXPECT_TRUE(volume.is_healthy());
        volume.expect_data("around the link");
        volume.cluster.mend_links();
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 1u);
    });
}

TEST(FailureTable, Case22_ABoxDoesNotReachAHost_ItsDataGoesByWayOfTheController) {
    for_each_volume(6, [](ScriptedVolume& volume) {
        const auto box = volume.box_of(at);
        const auto generation = volume.generation();
        volume.cluster.cut_host_link(box, ann);
        auto& write = volume.write({at, block}, ann);
        ASSERT_TRUE(volume.run_until([&] { return write.outcome.has_value(); })) << volume.story();
        EXPECT_TRUE(write.is_ok());
        auto& stripe = volume.write({0, volume.layout.stripe_bytes()}, ann);
        ASSERT_TRUE(volume.run_until([&] { return stripe.outcome.has_value(); }));
        EXPECT_TRUE(stripe.is_ok());
        auto& read = volume.read({0, volume.layout.stripe_bytes()}, ann);
        ASSERT_TRUE(volume.run_until([&] { return read.outcome.has_value(); }));
        EXPECT_TRUE(read.is_ok());
        EXPECT_EQ(read.octets, stripe.octets);
        EXPECT_GE(volume.count(VolumeEventKind::host_cut_off), 1u) << volume.story();
        EXPECT_EQ(volume.generation(), generation);
        EXPECT_TRUE(volume.is_healthy());
        volume.cluster.mend_links();
        volume.expect_whole();
        EXPECT_EQ(volume.executions(write), 1u);
    });
}

/// One after another loses its power while there is always something being written. Those who were
/// counted out come back first: what they know is old, and nothing is made of it.
TEST(FailureTable, Case23_TooManyAreGone_OnlyThoseWhoKnowTheLastStateBringItBack) {
    for_each_volume(12, [](ScriptedVolume& volume) {
        const auto boxes = volume.cluster.boxes();
        const auto first = any_box(volume);
        const auto spare = volume.layout.spare_columns();
        for (unsigned i = 0; i < spare; ++i) {
            const auto box = (first + i) % boxes;
            volume.cluster.cut_power(box);
            auto& write = volume.write({at, 2 * block});
            ASSERT_TRUE(volume.run_until(
                [&] { return write.outcome && volume.member(box) == ArrayMemberState::absent; }));
            EXPECT_TRUE(write.is_ok());
        }
        const auto needed = (first + spare) % boxes;
        const auto before = volume.expected({at, 2 * block});
        auto& write = volume.write({at, 2 * block});
        volume.some_steps(volume.agenda.random.below(40));
        const bool answered = write.is_ok();
        volume.cluster.cut_power(needed);
        const bool another = volume.agenda.random.chance(50);
        if (another) volume.cluster.take_over(false);
        for (unsigned i = 0; i < spare; ++i) volume.cluster.bring((first + i) % boxes);
        auto& read = volume.read({at, 2 * block});
        volume.run_dry();
        EXPECT_FALSE(read.is_ok()) << "it is made of what is old";
        EXPECT_TRUE(volume.state() == VolumeState::stopped ||
                    volume.state() == VolumeState::starting)
            << volume.story();
        volume.cluster.bring(needed);
        ASSERT_TRUE(volume.run_until([&] { return read.outcome && volume.is_healthy(); }))
            << volume.story();
        auto& now = volume.read({at, 2 * block});
        ASSERT_TRUE(volume.run_until([&] { return now.outcome.has_value(); }));
        ASSERT_TRUE(now.is_ok());
        if (answered || write.is_ok()) {
            EXPECT_EQ(now.octets, write.octets);
        }
        EXPECT_TRUE(now.octets == write.octets || now.octets == before);
        volume.expect_of({at, 2 * block}, now.octets);
        volume.expect_whole();
    });
}

/// It was counted out with something prepared that was then undone, since its host is gone; and
/// others have written since. What it has looks newer than it is.
TEST(FailureTable, Case36_ABoxReturnsWithWhatWasNeverDecided_ItIsDroppedAndRebuilt) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto all = volume.participants_of(at);
        const auto before = volume.expected({at, block});
        const auto away = all[volume.agenda.random.below(all.size())];
        auto& write = volume.write({at, block}, ann);
        ASSERT_TRUE(volume.park(1, [=](const RaidMessage& message) {
            return message.box == away && message.prepares() && message.is_answer;
        }));
        volume.run_dry();
        volume.lose_host(ann);
        volume.expect_of({at, block}, before);
        volume.cluster.cut_power(away);
        EXPECT_EQ(volume.in_doubt(away), 1u);
        volume.let_go();
        ASSERT_TRUE(volume.run_until(
            [&] { return write.outcome && volume.member(away) == ArrayMemberState::absent; }));
        // Its memory was gone; where all others had prepared, nobody needed it any more.
        if (write.is_ok()) volume.expect_of({at, block}, write.octets);
        volume.expect_data("before it is back");
        if (volume.agenda.random.chance(50)) volume.cluster.take_over(false);
        volume.cluster.bring(away);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        EXPECT_EQ(volume.in_doubt(away), 0u);
        volume.expect_whole();
    });
}

/// A disk put back as it was before its box was counted out: all of it is of the past.
TEST(FailureTable, Case36_ADiskIsPutBackFromThePast_AllOfItIsRebuilt) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto box = any_box(volume);
        const auto disk = volume.cluster.disk(box).stable();
        const std::vector<std::byte> past(disk.begin(), disk.end());
        volume.cluster.cut_power(box);
        volume.write({0, 2 * volume.layout.stripe_bytes()}, bob);
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        volume.cluster.bring(box);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        volume.write({0, 3 * volume.layout.stripe_bytes()}, bob);
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered() && volume.is_quiet(); }));
        volume.cluster.drop(box);
        std::ranges::copy(past, volume.cluster.disk(box).octets().begin());
        volume.cluster.disk(box).make_stable();
        volume.cluster.cut_power(box);
        if (volume.agenda.random.chance(50)) volume.cluster.take_over(false);
        volume.cluster.bring(box);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); })) << volume.story();
        const auto* began = volume.last(VolumeEventKind::rebuild_began);
        ASSERT_TRUE(began);
        EXPECT_EQ(began->number, ScriptedVolume::stripes) << volume.story();
        volume.expect_whole();
    });
}

/// A spare takes the place of a box that is lost for good, and anybody is lost meanwhile.
TEST(FailureTable, Case37_ARebuildIsInterrupted_ItGoesOnFromWhatIsLasting) {
    for_each_seed(10, [](std::uint64_t seed) {
        for (const Level level : {Level::mirror, Level::raid5, Level::raid6}) {
            SCOPED_TRACE("level " + std::to_string(static_cast<int>(level)));
            ScriptedVolume volume({.level = level, .seed = seed, .spares = 1});
            const auto lost = any_box(volume);
            const auto spare = volume.cluster.boxes();
            volume.cluster.cut_power(lost);
            ASSERT_TRUE(
                volume.run_until([&] { return volume.member(lost) == ArrayMemberState::absent; }));
            ASSERT_TRUE(volume.cluster.replace(static_cast<std::uint8_t>(lost)));
            ASSERT_TRUE(volume.run_until([&] { return volume.state() == VolumeState::rebuilding; }))
                << volume.story();
            for (int i = 0; i < 4; ++i) {
                volume.some_steps(volume.agenda.random.below(250));
                const auto fate = volume.agenda.random.below(3);
                const auto other = (lost + 1) % volume.cluster.boxes();
                const auto box = fate == 0 || volume.layout.spare_columns() < 2 ? spare : other;
                if (fate == 2) {
                    volume.cluster.take_over(false);
                    continue;
                }
                volume.cluster.cut_power(box);
                if (volume.agenda.random.chance(50)) volume.some_steps(20);
                volume.cluster.bring(box);
            }
            ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); })) << volume.story();
            EXPECT_EQ(volume.cluster.machine_at(static_cast<std::uint8_t>(lost)), spare);
            volume.cluster.check_dirty();
            volume.expect_whole();
        }
    });
}

/// What is said to be rebuilt outlives the power of who was rebuilt: the next controller believes
/// it.
TEST(FailureTable, Case37_ARebuildIsTakenOver_ItDoesNotBeginAnew) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto box = any_box(volume);
        volume.cluster.cut_power(box);
        volume.write({0, volume.shadow.size() / 2});
        volume.write({volume.shadow.size() / 2, volume.shadow.size() / 2});
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        volume.cluster.bring(box);
        ASSERT_TRUE(volume.run_until([&] { return volume.cluster.rebuild_mark(box) >= 3; }));
        ASSERT_FALSE(volume.is_healthy());
        volume.cluster.check_dirty();
        volume.cluster.disk(box).when_power_goes = RaidDisk::Unstable::lost;
        volume.cluster.cut_power(box);
        volume.cluster.take_over(false);
        volume.cluster.bring(box);
        const auto rebuilds = [&] { return volume.cluster.manager().status().rebuilds; };
        ASSERT_TRUE(volume.run_until([&] { return !rebuilds().empty(); })) << volume.story();
        const auto left = rebuilds().front();
        EXPECT_LE(left.to_do - left.done, ScriptedVolume::stripes - 3) << "it begins anew";
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); })) << volume.story();
        volume.expect_whole();
    });
}

/// A stripe's rebuilding is stopped before it is written, and a host writes there.
TEST(FailureTable, Case38_AHostWritesWhatIsBeingRebuilt_ItsWriteIsWhatIsThere) {
    for_each_volume(8, [](ScriptedVolume& volume) {
        const auto box = any_box(volume);
        volume.cluster.cut_power(box);
        for (std::uint64_t stripe = 0; stripe < ScriptedVolume::stripes; ++stripe)
            volume.write({stripe * volume.layout.stripe_bytes(), block}, bob);
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        volume.cluster.bring(box);
        ASSERT_TRUE(volume.park(1, [=](const RaidMessage& message) {
            return message.box == box && is_prepare_command(message) &&
                   message.order.host_command == 0;
        }));
        for (std::uint64_t stripe = 0; stripe < ScriptedVolume::stripes; ++stripe)
            volume.write({stripe * volume.layout.stripe_bytes(), 2 * block}, ann);
        volume.some_steps(volume.agenda.random.below(100));
        volume.let_go();
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        for (const auto& request : volume.requests) EXPECT_TRUE(request.is_ok());
        volume.expect_whole();
    });
}

}  // namespace
}  // namespace weft::sim
