// SPDX-License-Identifier: Apache-2.0
// A volume with journals, real boxes and real disks: sessions, power and controllers are lost at
// any moment, several at once, and what was answered is there; what was not is there as a whole or
// not at all; and nothing was done twice.
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

struct JournaledVolume final : ManagedVolume {
    JournaledVolume(Level level, std::uint8_t box_count, std::uint64_t seed)
        : ManagedVolume(level, box_count, seed, {}, wire::ArrayConsistency::journal) {}
    std::uint64_t random(std::uint64_t below) { return agenda.random() % below; }
    void expect_nothing_twice() {
        for (const auto& [command, transactions] : executions)
            EXPECT_LE(transactions.size(), 1u) << "command " << command;
    }
    void expect_nothing_lost() {
        expect_whole();
        expect_nothing_twice();
        EXPECT_EQ(count(audit_failed), 0u);
        EXPECT_EQ(count(scrub_unrepaired), 0u);
    }
};

TEST(VolumeJournal, ServesRequestsAsIfOneAfterAnother) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        JournaledVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.in_band_too = seed % 2 == 0;
        volume.submit_randomly(40);
        volume.expect_nothing_lost();
        for (const auto& box : volume.boxes) EXPECT_EQ(box->box.open_windows(), 0u);
    });
}

TEST(VolumeJournal, LosesNothingWhenAllLoseTheirPowerAtOnce) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        JournaledVolume volume(level_of(seed), boxes_of(seed), seed);
        for (int i = 0; i < 3; ++i) {
            volume.submit_randomly(6);
            volume.cut_all_power();
            for (unsigned box = 0; box < boxes_of(seed); ++box) volume.bring(box);
        }
        volume.submit_randomly(5);
        volume.expect_nothing_lost();
        EXPECT_EQ(volume.count(member_absent), 0u) << "all came back: nobody had to be counted out";
    });
}

TEST(VolumeJournal, HasNoWriteHoleWhenOneDoesNotComeBack) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        JournaledVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.submit_randomly(10);
        volume.cut_all_power();
        const unsigned away = static_cast<unsigned>(seed % boxes_of(seed));
        for (unsigned box = 0; box < boxes_of(seed); ++box)
            if (box != away) volume.bring(box);
        volume.submit_randomly(5);
        volume.expect_all_right();
        volume.bring(away);
        volume.submit_randomly(5);
        volume.expect_nothing_lost();
    });
}

TEST(VolumeJournal, LeavesAWriteThatNobodyAsksForAgainWholeOrUndone) {
    test::for_each_seed(45, [](std::uint64_t seed) {
        JournaledVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.submit_randomly(8);
        volume.expect_all_right();
        const Range range = volume.draw();
        const auto old =
            std::vector(volume.shadow.begin() + static_cast<long>(range.offset),
                        volume.shadow.begin() + static_cast<long>(range.offset + range.length));
        auto& write = volume.submit(HostOperation::write, range);
        volume.some_steps(volume.random(120));
        const bool answered = write.outcome.has_value();
        volume.hosts_ask_again = false;  // its host is gone
        const bool box_too = seed % 2 == 0;
        const unsigned away = static_cast<unsigned>(seed / 2 % boxes_of(seed));
        if (seed % 3 == 0)
            volume.replace_controller();
        else
            volume.cut_all_power();
        if (seed % 3 == 0 && box_too) volume.drop(away);
        for (unsigned box = 0; box < boxes_of(seed); ++box)
            if (!box_too || box != away) volume.bring(box);
        if (!write.outcome) write.outcome.emplace();  // nobody waits for it
        auto& read = volume.submit(HostOperation::read, range);
        ASSERT_TRUE(volume.run_until([&] { return read.outcome.has_value(); })) << volume.story();
        ASSERT_TRUE(*read.outcome);
        const bool is_new = read.bytes == write.bytes, is_old = read.bytes == old;
        EXPECT_TRUE(is_new || is_old) << "half of it";
        if (answered) {
            EXPECT_TRUE(is_new) << "it was answered";
        }
        if (!is_new)
            std::ranges::copy(old, volume.shadow.begin() + static_cast<long>(range.offset));
        read.expected = read.bytes;
        if (box_too) volume.bring(away);
        volume.expect_nothing_lost();
    });
}

TEST(VolumeJournal, ExecutesNoWriteTwiceThoughItsAnswerWasLost) {
    test::for_each_seed(15, [](std::uint64_t seed) {
        JournaledVolume volume(level_of(seed), boxes_of(seed), seed);
        const Range range{0, 8192};
        auto& first = volume.submit(HostOperation::write, range);
        volume.expect_all_right();
        volume.submit(HostOperation::write, range);  // by somebody who heard the answer
        volume.expect_all_right();
        if (seed % 3 == 1) volume.replace_controller();
        if (seed % 3 == 2) {
            volume.cut_all_power();
            for (unsigned box = 0; box < boxes_of(seed); ++box) volume.bring(box);
        }
        first.outcome.reset();
        first.repeated = true;
        volume.manager->submit(first);
        volume.expect_all_right();
        volume.expect_nothing_lost();  // and so the second is what is there
    });
}

TEST(VolumeJournal, LosesNothingWhenABoxItCannotDoWithoutLosesItsPower) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        JournaledVolume volume(seed % 2 ? Level::raid5 : Level::raid6, 5, seed);
        volume.submit_randomly(10);
        for (unsigned away = 0; away < volume.layout.spare_columns(); ++away) volume.drop(away);
        volume.submit_randomly(5);
        volume.expect_all_right();
        for (int i = 0; i < 6; ++i) {
            volume.submit_randomly(4);
            const unsigned box = 2 + static_cast<unsigned>(volume.random(3));
            if (i % 2)
                volume.drop(box);
            else
                volume.cut_power(box);
            for (auto steps = seed % 9; steps > 0; --steps) volume.agenda.step();
            volume.bring(box);
            if (i == 3) volume.replace_controller();
        }
        volume.expect_all_right();
        for (unsigned away = 0; away < volume.layout.spare_columns(); ++away) volume.bring(away);
        volume.expect_nothing_lost();
    });
}

TEST(VolumeJournal, ChangesNothingUnrelatedWhenTwoBoxesLoseTheirPowerWithinAMoment) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        JournaledVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.submit_randomly(8);
        const auto first = static_cast<unsigned>(seed % boxes_of(seed));
        const auto second = static_cast<unsigned>((first + 1 + seed / 3 % 2) % boxes_of(seed));
        auto a_moment = [&] {  // in which nobody's patience ends
            for (auto steps = volume.random(40); steps > 0; --steps) volume.agenda.step();
        };
        volume.submit(HostOperation::write, volume.draw());
        a_moment();
        volume.cut_power(first);
        a_moment();
        volume.cut_power(second);
        a_moment();
        volume.bring(seed % 2 ? first : second);
        a_moment();
        if (seed % 5 == 0) volume.replace_controller();
        volume.bring(seed % 2 ? second : first);
        volume.submit_randomly(5);
        volume.expect_nothing_lost();
    });
}

TEST(VolumeJournal, DoesAWriteAgainWithoutTheBoxThatWasLostOverIt) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        JournaledVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        for (int i = 0; i < 4; ++i) {
            volume.submit_randomly(3);
            if (volume.random(2))
                volume.drop(box);
            else
                volume.cut_power(box);
            volume.submit_randomly(3);
            volume.some_steps(volume.random(60));
            volume.bring(box);
            volume.some_steps(volume.random(60));
        }
        volume.expect_nothing_lost();
        EXPECT_EQ(volume.count(box_failed), 0u) << volume.story();
    });
}

/// Its journal takes nothing any more until it is started anew. People are told, though nobody can
/// do without it.
TEST(VolumeJournal, SaysThatABoxHasFailedThatItCannotDoWithout) {
    ManagedVolume volume(Level::raid5, 3, 1, {}, wire::ArrayConsistency::journal);
    volume.submit_randomly(10);
    volume.drop(2);
    volume.submit_randomly(5);
    volume.expect_all_right();
    auto failed = [&] { return volume.manager->status().members[0].needs_repair; };
    EXPECT_FALSE(failed());
    volume.boxes[0]->disk.broken = true;
    volume.submit(HostOperation::write, {0, volume.layout.stripe_bytes()});
    ASSERT_TRUE(volume.run_until(failed)) << volume.story();
    EXPECT_GE(volume.count(VolumeEventKind::box_failed), 1u);
    EXPECT_EQ(volume.manager->volume().members[0].state, wire::ArrayMemberState::current);
    volume.boxes[0]->disk.broken = false;
    volume.cut_power(0);
    volume.bring(0);
    volume.bring(2);
    EXPECT_FALSE(failed());
    ASSERT_TRUE(volume.run_until([&] { return volume.all_answered() && volume.is_healthy(); }))
        << volume.story();
}

TEST(VolumeJournal, RebuildsASpare) {
    test::for_each_seed(9, [](std::uint64_t seed) {
        JournaledVolume volume(level_of(seed), boxes_of(seed), seed);
        const unsigned spare = volume.add_spare_box();
        volume.submit_randomly(15);
        ASSERT_TRUE(volume.manager->replace(static_cast<std::uint8_t>(seed % boxes_of(seed)),
                                            volume.identities[spare]));
        volume.submit_randomly(15);
        volume.expect_nothing_lost();
    });
}

TEST(VolumeJournal, OutlivesAStorm) {
    test::for_each_seed(25, [](std::uint64_t seed) {
        JournaledVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.in_band_too = seed % 2 == 0;
        const unsigned most = volume.layout.spare_columns();
        std::set<unsigned> away, disturbed;
        for (int i = 0; i < 30; ++i) {
            volume.submit_randomly(static_cast<int>(volume.random(4)));
            const auto box = static_cast<unsigned>(volume.random(boxes_of(seed)));
            const auto what = volume.random(8);
            if (away.empty() && volume.random(2)) {
                ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }))
                    << volume.story();
                volume.expect_all_right();
                disturbed.clear();
            }
            if (what < 2 && !away.empty()) {
                const auto back = *away.begin();
                away.erase(back);
                volume.bring(back);
            } else if (what < 5 && !away.contains(box) &&
                       (disturbed.size() < most || disturbed.contains(box))) {
                if (what == 2)
                    volume.drop(box);
                else
                    volume.cut_power(box);
                away.insert(box);
                disturbed.insert(box);
            } else if (what == 5) {
                volume.boxes[box]->windows.refusals = static_cast<int>(volume.random(5));
            } else if (what == 6) {
                volume.replace_controller();
            } else if (what == 7) {  // a session breaks, and is there again before anybody knows
                if (away.contains(box) || (disturbed.size() >= most && !disturbed.contains(box)))
                    continue;
                volume.drop(box);
                volume.bring(box);
                disturbed.insert(box);
            }
        }
        for (auto box : away) volume.bring(box);
        volume.submit_randomly(5);
        volume.expect_nothing_lost();
    });
}

}  // namespace
}  // namespace weft::raid
