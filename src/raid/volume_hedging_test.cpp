// SPDX-License-Identifier: Apache-2.0
// Boxes that are there and do not answer for a while: reads are served by the others, writes wait,
// and nobody is counted out.
#include <gtest/gtest.h>

#include "raid/checked_disk.hpp"
#include "support/managed_volume.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using test::boxes_of;
using test::level_of;
using test::ManagedVolume;
using namespace std::chrono_literals;
using enum VolumeEventKind;

wire::ArrayConsistency consistency_of(std::uint64_t seed) {
    return seed % 2 == 0 ? wire::ArrayConsistency::none : wire::ArrayConsistency::journal;
}

struct HedgedVolume : ManagedVolume {
    explicit HedgedVolume(std::uint64_t seed)
        : HedgedVolume(level_of(seed), boxes_of(seed), seed) {}
    HedgedVolume(Level level, std::uint8_t count, std::uint64_t seed)
        : ManagedVolume(level, count, seed, {}, consistency_of(seed)) {
        EXPECT_TRUE(run_until([&] { return is_healthy(); }));
        submit_randomly(10);
        read_all();
        expect_all_right();
        EXPECT_EQ(hedged(), 0u);
    }
    std::uint64_t hedged() const { return manager->status().counters.hedged_reads; }
    void read_all() {
        for (std::uint64_t at = 0; at < shadow.size(); at += 2 * slice_size)
            submit(HostOperation::read, {at, 2 * slice_size});
    }
    /// Whether a read of it asks this box, when all are there.
    std::uint64_t block_of(std::uint8_t box) const {
        for (std::uint64_t stripe = 0; stripe < stripe_count; ++stripe) {
            if (layout.level() == Level::mirror) {
                if (stripe % layout.boxes() == box) return stripe * layout.stripe_bytes();
                continue;
            }
            const auto column = layout.column_of(stripe, BoxIndex{box});
            if (column < layout.data_columns())
                return stripe * layout.stripe_bytes() + column * layout.chunk_bytes();
        }
        return 0;
    }
    bool is_slow(std::uint8_t box) const { return manager->status().members[box].slow; }
    void expect_quiet() {
        agenda.run();
        for (const auto& box : boxes) EXPECT_EQ(box->box.open_windows(), 0u);
    }
};

TEST(HedgedReads, AreServedByTheOthersWhileABoxDoesNotAnswer) {
    test::for_each_seed(12, [](std::uint64_t seed) {
        HedgedVolume volume(seed);
        const auto box = static_cast<std::uint8_t>(seed % boxes_of(seed));
        volume.hold(box);
        volume.read_all();
        volume.expect_all_right();
        EXPECT_GE(volume.hedged(), 1u);
        EXPECT_EQ(volume.count(box_slow), 1u) << volume.story();
        EXPECT_TRUE(volume.is_slow(box));
        for (int i = 0; i < 3; ++i) volume.read_all();
        volume.expect_all_right();
        EXPECT_EQ(volume.count(box_slow), 1u) << "once for each trouble";
        volume.expect_nobody_counted_out();
        volume.let_go(box);
        // It is asked for something now and then, and found to be well.
        for (int i = 0; i < 40 && volume.is_slow(box); ++i) {
            volume.read_all();
            volume.expect_all_right();
            volume.pass(110ms);
        }
        EXPECT_EQ(volume.count(box_quick), 1u) << volume.story();
        volume.expect_whole();
        volume.expect_quiet();
        volume.expect_nobody_counted_out();
    });
}

/// What was prepared to heal a block must be committed or undone, and not be left for the next
/// controller to find: it would undo what hosts have written there since.
TEST(HedgedReads, HealABlockToTheEndThoughTheLateBoxAnswers) {
    std::uint64_t healed = 0;
    test::for_each_seed(60, [&](std::uint64_t seed) {
        HedgedVolume volume(Level::raid6, 5, 2 * seed + 1);  // odd: it has a journal
        const auto late = static_cast<std::uint8_t>(seed % 5);
        const auto at = volume.block_of(late);
        const auto stripe = at / volume.layout.stripe_bytes();
        const auto column = volume.layout.column_of(stripe, BoxIndex{late});
        const Column beside = column == 0 ? 1 : 0;
        auto& box = *volume.boxes[number(volume.layout.box_of(stripe, beside))];
        const auto& known = box.box.superblock();
        const auto place = known.data_offset +
                           CheckedDisk::place_below(volume.layout.home_of(stripe), known.columns);
        for (auto* octets : {&box.disk.octets, &box.disk.lasting})
            octets->all()[place] ^= std::byte{0x5a};
        volume.hold(late);
        volume.submit(HostOperation::read, {at, slice_size});
        ASSERT_TRUE(volume.run_until([&] { return volume.hedged() == 1; }));
        for (auto steps = seed % 40; steps > 0; --steps) volume.agenda.step();
        volume.let_go(late);
        ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
        healed += volume.count(block_healed);
        volume.submit(HostOperation::write,
                      {stripe * volume.layout.stripe_bytes() + beside * volume.layout.chunk_bytes(),
                       slice_size});
        volume.expect_all_right();
        volume.replace_controller();
        volume.expect_whole();
    });
    if (test::runs_all_seeds()) {
        EXPECT_GT(healed, 20u);
    }
}

TEST(HedgedReads, WaitWhereNobodyElseCanServeThem) {
    HedgedVolume volume(Level::raid5, 5, 1);
    volume.drop(3);
    ASSERT_TRUE(volume.run_until([&] { return volume.count(member_absent) == 1; }));
    volume.hold(1);
    auto& read = volume.submit(HostOperation::read, {0, volume.layout.stripe_bytes()});
    volume.pass(5s);
    EXPECT_FALSE(read.outcome);
    EXPECT_EQ(volume.hedged(), 0u);
    EXPECT_EQ(volume.count(box_slow), 0u);
    volume.let_go(1);
    volume.expect_all_right();
}

TEST(HedgedReads, LeaveWritesWaiting) {
    test::for_each_seed(10, [](std::uint64_t seed) {
        HedgedVolume volume(seed);
        const auto box = static_cast<std::uint8_t>(seed % boxes_of(seed));
        volume.hold(box);
        auto& write = volume.submit(HostOperation::write, {0, volume.layout.stripe_bytes()});
        volume.pass(5s);
        EXPECT_FALSE(write.outcome);
        // Reads of what is not being written go on, in windows that writes do not get.
        const auto at = volume.layout.stripe_bytes();
        volume.submit(HostOperation::read, {at, volume.layout.stripe_bytes()});
        volume.pass(5s);
        EXPECT_TRUE(volume.requests.back()->outcome);
        EXPECT_FALSE(write.outcome);
        volume.expect_nobody_counted_out();
        volume.let_go(box);
        volume.expect_all_right();
        volume.expect_whole();
    });
}

// The box has the order and is about to send when the host is answered: what it sends finds a tag
// that is closed, or is not sent at all.
TEST(HedgedReads, LeaveAHostsMemoryAloneWhenTheyAreAnswered) {
    test::for_each_seed(12, [](std::uint64_t seed) {
        HedgedVolume volume(seed);
        const auto box = static_cast<std::uint8_t>(seed % boxes_of(seed));
        auto& late = *volume.boxes[box];
        (seed % 4 < 2 ? late.disk.held : late.network.held) = true;
        auto& read = volume.submit(HostOperation::read, {volume.block_of(box), slice_size});
        ASSERT_TRUE(volume.run_until([&] { return read.outcome.has_value(); }));
        ASSERT_TRUE(*read.outcome);
        EXPECT_TRUE(read.bytes == read.expected);
        // Its maker has it for something else now.
        std::ranges::fill(read.bytes, std::byte{0x5a});
        read.expected = read.bytes;
        volume.submit(HostOperation::write, {volume.block_of(box), slice_size});
        late.disk.let_go();
        late.network.let_go();
        volume.expect_all_right();
        volume.expect_whole();
        volume.expect_quiet();
        EXPECT_EQ(volume.count(host_cut_off), 0u) << volume.story();
        volume.expect_nobody_counted_out();
    });
}

TEST(HedgedReads, TakeWhicheverAnswerComesFirst) {
    HedgedVolume volume(Level::raid5, 5, 1);
    volume.hold(1);
    auto& read = volume.submit(HostOperation::read, {volume.block_of(1), slice_size});
    volume.agenda.run();
    for (unsigned i = 0; i < 5; ++i)
        if (i != 1) volume.boxes[i]->disk.held = true;
    volume.pass(2s);
    ASSERT_EQ(volume.hedged(), 1u);
    EXPECT_FALSE(read.outcome);
    volume.let_go(1);
    volume.pass(2s);
    ASSERT_TRUE(read.outcome) << "the box that was late has brought it";
    EXPECT_EQ(volume.count(box_slow), 0u) << "the others were no quicker";
    for (auto& box : volume.boxes) box->disk.let_go();
    volume.expect_whole();
    volume.expect_quiet();
}

TEST(HedgedReads, BlameNobodyForAHostThatTakesNothing) {
    HedgedVolume volume(Level::raid6, 5, 2);
    for (auto& box : volume.boxes) box->network.holds_for_hosts = true;
    for (int i = 0; i < 3; ++i) volume.read_all();
    volume.pass(20s);
    EXPECT_FALSE(volume.all_answered());
    EXPECT_EQ(volume.count(box_slow), 0u) << volume.story();
    EXPECT_LE(volume.hedged(), 2u * 4u) << "no more than windows, twice";
    for (auto& box : volume.boxes) {
        box->network.holds_for_hosts = false;
        box->network.let_go();
    }
    volume.expect_whole();
    volume.expect_quiet();
}

TEST(HedgedReads, AreFewWhereABoxAnswersLateButAnswers) {
    HedgedVolume volume(Level::raid5, 5, 4);
    std::size_t reads = 0;
    for (int i = 0; i < 50; ++i) {
        volume.hold(2);
        for (int k = 0; k < 10; ++k, ++reads) volume.submit(HostOperation::read, volume.draw());
        volume.pass(60ms);
        volume.let_go(2);
        volume.expect_all_right();
        volume.pass(20ms);
    }
    EXPECT_EQ(volume.count(box_slow), 1u);
    EXPECT_EQ(volume.count(box_quick), 0u);
    EXPECT_LE(volume.hedged(), reads / 10);
    volume.expect_nobody_counted_out();
    volume.expect_whole();
}

TEST(HedgedReads, EndWithABoxThatIsLost) {
    test::for_each_seed(12, [](std::uint64_t seed) {
        HedgedVolume volume(seed);
        const auto box = static_cast<std::uint8_t>(seed % boxes_of(seed));
        volume.hold(box);
        volume.read_all();
        if (seed % 2 == 0) volume.expect_all_right();
        volume.drop(box);
        volume.expect_all_right();
        volume.submit_randomly(10);
        volume.sessions[box].held = false;
        if (seed % 3 == 0) volume.cut_power(box);
        volume.bring(box);
        volume.expect_whole();
        volume.expect_quiet();
        EXPECT_FALSE(volume.is_slow(box));
    });
}

/// It has refused what it was late with, and has its window open until all who were late have
/// answered. Nobody would end it any more: what it is asked next is of a transaction it does not
/// know.
TEST(HedgedReads, EndWithABoxThatIsLostAfterItRefusedItsPart) {
    for (std::uint64_t seed : {1u, 2u}) {  // with a journal and without
        HedgedVolume volume(Level::mirror, 3, seed);
        volume.hold(0);
        volume.hold(1);
        // And so what is asked instead is late, too.
        volume.boxes[2]->network.holds_for_hosts = true;
        volume.submit(HostOperation::read, {0, 2 * volume.layout.stripe_bytes()});
        ASSERT_TRUE(volume.run_until([&] { return volume.hedged() > 0; }));
        volume.boxes[0]->network.reaches_no_host = true;
        volume.let_go(0);
        volume.agenda.run();
        ASSERT_EQ(volume.boxes[0]->box.open_windows(), 1u);
        volume.drop(0);
        volume.boxes[0]->network.reaches_no_host = false;
        volume.bring(0);
        volume.let_go(1);
        volume.boxes[2]->network.holds_for_hosts = false;
        volume.boxes[2]->network.let_go();
        volume.submit_randomly(10);
        volume.expect_whole();
        volume.expect_quiet();
        EXPECT_EQ(volume.count(box_failed), 0u) << volume.story();
    }
}

TEST(HedgedReads, CanBeTurnedOff) {
    VolumeManagerOptions options;
    options.hedge.at_least = {};
    ManagedVolume volume(Level::raid5, 5, 1, options);
    volume.submit(HostOperation::read, {0, volume.shadow.size() / 2});
    volume.expect_all_right();
    volume.hold(1);
    auto& read = volume.submit(HostOperation::read, {0, volume.layout.stripe_bytes()});
    for (int i = 0; i < 100 && volume.pass_time(); ++i) volume.agenda.run();
    EXPECT_FALSE(read.outcome);
    volume.let_go(1);
    volume.expect_all_right();
    EXPECT_EQ(volume.manager->status().counters.hedged_reads, 0u);
}

}  // namespace
}  // namespace weft::raid
