// SPDX-License-Identifier: Apache-2.0
// A whole array one of whose boxes finds that its journal is not what it was: what it had been told
// may be nowhere on its disk, so it is as good as empty, and nothing that was answered is lost.
#include <gtest/gtest.h>

#include <algorithm>

#include "raid/journal_format.hpp"
#include "support/scribbled_array.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using raid::VolumeState;
using test::ScribbledArray;
using wire::ArrayMemberState;

constexpr std::size_t elms_place = 1;

/// Its host has written, several writes at a time, and elm's journal can be damaged.
class DamagedJournal : public ScribbledArray {
public:
    explicit DamagedJournal(std::uint64_t seed) : ScribbledArray(seed) {
        volume = status("photos").volume.volume;
        begin_writes();
        check();
    }

    /// All is there, also where elm's share is needed for it.
    void all_is_there() {
        ASSERT_TRUE(becomes("photos", VolumeState::healthy));
        check();
        scrub_finds_nothing();
        cut_power("oak");
        check();
    }

    std::string part() { return "/elm/part-" + to_digits(volume); }
    wire::ArraySuperblock superblock() {
        std::array<std::byte, 2 * wire::superblock_size> both{};
        world.disk(part()).peek(0, both);
        const auto newest =
            raid::newest_superblock(ConstBuffer(both).first(wire::superblock_size),
                                    ConstBuffer(both).subspan(wire::superblock_size));
        EXPECT_TRUE(newest);
        return newest ? *newest : wire::ArraySuperblock{};
    }
    /// Every sector of the first so many octets of its journal.
    void damage(std::uint64_t octets) {
        const auto known = superblock();
        ASSERT_TRUE(raid::has_journal(known));
        for (std::uint64_t at = 0; at < std::min(octets, known.journal_length); at += 512)
            world.disk(part()).rot(known.journal_offset + at + 21, 3);
    }
    bool said(const std::string& what) const {
        return std::ranges::any_of(controller->events().events(), [&](const auto& each) {
            return each.box == "elm" && each.what.find(what) != std::string::npos;
        });
    }
    bool is_made_anew() { return world.disks().contains(part() + ".1"); }
    ArrayMemberState state_of_elm() const { return status("photos").members[elms_place].state; }

    wire::VolumeIdentity volume;
};

constexpr std::uint64_t all_of_it = ~std::uint64_t{0};

TEST(FailureTable, Case41_ABoxsJournalIsDamaged_ItIsRebuiltAsIfItsDiskWereLost) {
    for (const auto octets : {all_of_it, raid::journal_ring_offset})
        test::for_each_seed(3, [&](std::uint64_t seed) {
            DamagedJournal array(seed);
            array.begin_writes();
            ASSERT_TRUE(array.run_until([&] { return array.answered() > 3; }));
            array.cut_power("elm");
            array.damage(octets);
            array.start_box("elm");
            array.all_is_there();
            EXPECT_TRUE(array.said("its part of photos is damaged"));
            EXPECT_TRUE(array.is_made_anew());
            EXPECT_TRUE(array.world.disks().contains(array.part())) << "for who wants to look";
        });
}

/// Nobody is left who knows what was answered but the journals of the others.
TEST(FailureTable, Case41_AllGoesDarkAndAJournalIsDamaged_WhatWasAnsweredIsThere) {
    test::for_each_seed(8, [](std::uint64_t seed) {
        DamagedJournal array(seed);
        array.begin_writes();
        const auto some = static_cast<std::ptrdiff_t>(1 + array.world.chance().below(12));
        ASSERT_TRUE(array.run_until([&] { return array.answered() >= some; }));
        array.cut_power_of_controller();
        array.go_dark(ScribbledArray::members);
        array.damage(all_of_it);
        for (const auto& name : ScribbledArray::members) array.start_box(name);
        array.world.host("10.0.0.1").power_on();
        array.start_controller();
        array.all_is_there();
        EXPECT_TRUE(array.said("its part of photos is damaged"));
        EXPECT_TRUE(array.is_made_anew());
    });
}

TEST(FailureTable, Case41_AJournalIsDamagedWhileAnotherBoxIsAway_TheVolumeWaitsForThat) {
    DamagedJournal array(1);
    array.stop_controller();
    array.go_dark(ScribbledArray::members);
    array.damage(all_of_it);
    for (const auto& name : {"elm", "ash", "fir"}) array.start_box(name);
    array.start_controller();
    array.world.run_for(60s);
    EXPECT_EQ(array.status("photos").state, VolumeState::stopped);
    EXPECT_TRUE(array.said("its part of photos is damaged"));
    EXPECT_FALSE(array.is_made_anew());
    array.start_box("oak");
    array.all_is_there();
}

/// Its blocks may be right, or not: nothing is made of them, and nothing takes their place.
TEST(FailureTable, Case41_AJournalIsDamagedThatCannotBeSpared_NothingIsTouched) {
    DamagedJournal array(2);
    array.cut_power("oak");
    ASSERT_TRUE(array.becomes("photos", VolumeState::degraded));
    array.begin_writes();
    array.check();  // oak is counted out: elm cannot be spared
    array.cut_power("elm");
    array.damage(all_of_it);
    array.start_box("elm");
    array.start_box("oak");
    array.world.run_for(120s);
    EXPECT_EQ(array.status("photos").state, VolumeState::stopped);
    EXPECT_EQ(array.state_of_elm(), ArrayMemberState::current);
    EXPECT_FALSE(array.is_made_anew());
    EXPECT_TRUE(array.said("its part of photos is damaged"));
}

/// It may be whole.
TEST(FailureTable, Case41_AJournalCannotBeRead_NothingTakesItsPlace) {
    DamagedJournal array(3);
    array.cut_power("elm");
    const auto known = array.superblock();
    array.world.disk(array.part()).make_bad(known.journal_offset, 4096, BadFor::reads);
    array.start_box("elm");
    array.begin_writes();
    array.check();
    array.world.run_for(30s);
    EXPECT_EQ(array.state_of_elm(), ArrayMemberState::absent);
    EXPECT_FALSE(array.is_made_anew());
    EXPECT_FALSE(array.said("is damaged"));
    array.world.disk(array.part()).heal();
    array.cut_power("elm");
    array.start_box("elm");
    const auto refusal = array.refusal_of(
        [&](auto told) { array.controller->re_add_member("photos", "elm", std::move(told)); });
    EXPECT_FALSE(refusal) << *refusal;
    array.all_is_there();
    EXPECT_FALSE(array.is_made_anew());
}

}  // namespace
}  // namespace weft::sim
