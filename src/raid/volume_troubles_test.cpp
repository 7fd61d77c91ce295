// SPDX-License-Identifier: Apache-2.0
// Boxes that are there, and have no room or do not reach somebody: requests wait or go around, and
// people are told once when it begins and once when it ends.
#include <gtest/gtest.h>

#include "support/managed_volume.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

using test::ManagedVolume;
using namespace std::chrono_literals;
using enum VolumeEventKind;

struct Troubled : ManagedVolume {
    explicit Troubled(std::uint64_t seed,
                      wire::ArrayConsistency consistency = wire::ArrayConsistency::journal)
        : ManagedVolume(Level::raid5, 5, seed, {}, consistency) {
        EXPECT_TRUE(run_until([&] { return is_healthy(); }));
    }
    void write_everywhere() {
        for (std::uint64_t i = 0; i < stripe_count; ++i)
            submit(HostOperation::write, {i * layout.stripe_bytes(), 4096});
    }
    void break_link(unsigned one, unsigned other) {
        boxes[one]->network.out_of_reach = identities[other];
        boxes[other]->network.out_of_reach = identities[one];
    }
    void fill_disk(unsigned i) {
        boxes[i]->disk.no_room_from = boxes[i]->box.superblock().data_offset;
    }
    bool all_have_prepared() const {
        return std::ranges::all_of(boxes, [](const auto& box) {
            return std::ranges::any_of(box->journaled->recall().transactions, [](const auto& each) {
                return each.state == wire::ArrayTransactionState::prepared;
            });
        });
    }
    void make_room() {
        for (auto& box : boxes) box->disk.no_room_from.reset();
    }
    void mend_links() {
        for (auto& box : boxes) box->network.out_of_reach.reset();
    }
};

TEST(ABoxWithoutRoom, HoldsWritesUpAndIsToldOfOnce) {
    Troubled volume(1);
    volume.boxes[2]->windows.refusals = 1'000'000;
    volume.write_everywhere();
    volume.pass(20s);
    EXPECT_FALSE(volume.all_answered());
    EXPECT_EQ(volume.count(journal_full), 1u) << volume.story();
    EXPECT_EQ(volume.count(has_room), 0u);
    EXPECT_TRUE(volume.manager->status().members[2].full);
    const auto said = std::ranges::find(volume.events, journal_full, &VolumeEvent::kind);
    ASSERT_NE(said, volume.events.end());
    EXPECT_GT(said->number, 0u) << "how many wait";
    volume.expect_nobody_counted_out();
    volume.boxes[2]->windows.refusals = 0;
    volume.pass(5s);
    volume.expect_all_right();
    EXPECT_EQ(volume.count(has_room), 1u);
    EXPECT_FALSE(volume.manager->status().members[2].full);
    volume.expect_whole();
}

TEST(ABoxWithoutRoom, IsNotToldOfWhereItHasSomeAtOnce) {
    Troubled volume(2);
    volume.boxes[2]->windows.refusals = 2;
    volume.write_everywhere();
    volume.pass(5s);
    volume.expect_all_right();
    EXPECT_EQ(volume.count(journal_full), 0u) << volume.story();
    EXPECT_EQ(volume.count(has_room), 0u);
}

TEST(ABoxWithoutRoom, IsNotSaidToHaveAFullJournalWhereItHasNone) {
    Troubled volume(3, wire::ArrayConsistency::none);
    volume.boxes[2]->windows.refusals = 1'000'000;
    volume.write_everywhere();
    volume.pass(5s);
    EXPECT_EQ(volume.count(journal_full), 0u);
    EXPECT_EQ(volume.count(windows_full), 1u);
    volume.boxes[2]->windows.refusals = 0;
    volume.pass(5s);
    volume.expect_all_right();
}

// Nothing of a write is accepted half: whoever reads finds all of it or nothing.
TEST(ABoxWithoutRoom, LeavesNoWriteHalfAccepted) {
    test::for_each_seed(12, [](std::uint64_t seed) {
        Troubled volume(seed);
        volume.write_everywhere();
        volume.expect_all_right();
        volume.boxes[seed % 5]->windows.refusals = 1'000'000;
        const auto before = volume.shadow;
        volume.write_everywhere();
        volume.pass(3s);
        // The controller is lost while they wait, and the hosts with it.
        std::vector<std::size_t> unanswered;
        for (std::size_t i = 0; i < volume.requests.size(); ++i)
            if (!volume.requests[i]->outcome) unanswered.push_back(i);
        volume.hosts_ask_again = false;
        for (auto i : unanswered) {
            auto& request = *volume.requests[i];
            request.outcome = Result<void>{};
            std::ranges::copy(
                std::span(before).subspan(request.range.offset, request.range.length),
                volume.shadow.begin() + static_cast<std::ptrdiff_t>(request.range.offset));
        }
        volume.boxes[seed % 5]->windows.refusals = 0;
        volume.replace_controller();
        volume.expect_whole();
    });
}

// The file system under a box has no room: nobody is counted out, what can be read is, and writes
// go on by themselves when there is room again. Of all boxes at once, too.
TEST(FailureTable, Case40_DisksAreFull_WritesWaitUntilThereIsRoom) {
    for (const unsigned boxes : {1u, 5u}) {
        Troubled volume(boxes);
        volume.write_everywhere();
        volume.expect_all_right();
        for (unsigned i = 0; i < boxes; ++i) volume.fill_disk(i);
        volume.write_everywhere();
        volume.write_everywhere();
        volume.pass(10s);
        EXPECT_FALSE(volume.all_answered());
        EXPECT_EQ(volume.count(disk_full), boxes) << volume.story();
        EXPECT_EQ(volume.count(journal_full), 0u) << volume.story();
        EXPECT_TRUE(volume.manager->status().members[0].full);
        volume.expect_nobody_counted_out();
        volume.make_room();
        volume.pass(5s);
        volume.expect_all_right();
        EXPECT_EQ(volume.count(has_room), boxes) << volume.story();
        EXPECT_FALSE(volume.manager->status().members[0].full);
        volume.expect_nobody_counted_out();
        volume.expect_whole();
    }
}

// The next controller may have to begin without who still owes something to its disk; it takes it
// back by itself.
TEST(FailureTable, Case40_TheControllerDiesWhileDisksAreFull_AllIsWholeOnceThereIsRoom) {
    test::for_each_seed(8, [](std::uint64_t seed) {
        Troubled volume(seed);
        volume.write_everywhere();
        volume.expect_all_right();
        for (unsigned i = 0; i < 1 + seed % 5; ++i) volume.fill_disk(i);
        volume.write_everywhere();
        volume.pass(3s);
        volume.replace_controller();
        volume.pass(20s);
        volume.make_room();
        EXPECT_TRUE(volume.run_until([&] { return volume.is_healthy(); })) << volume.story();
        volume.pass(5s);
        volume.expect_all_right();
        EXPECT_EQ(volume.count(box_failed), 0u) << volume.story();
        volume.expect_whole();
    });
}

// The same amid a write that all have prepared and none has heard the end of. It is for the next
// controller to say, and boxes that cannot do it for lack of room have not failed.
TEST(FailureTable, Case40_DisksAreFullWhenTheNextControllerEndsAWrite_NobodyHasFailed) {
    test::for_each_seed(10, [](std::uint64_t seed) {
        Troubled volume(seed);
        volume.write_everywhere();
        volume.expect_all_right();
        volume.submit(HostOperation::write, {0, volume.layout.stripe_bytes()});
        ASSERT_TRUE(volume.run_until([&] { return volume.all_have_prepared(); }));
        const unsigned full = 1 + seed % 5;
        for (unsigned i = 0; i < full; ++i) volume.fill_disk(i);
        volume.replace_controller();
        volume.pass(20s);
        EXPECT_EQ(volume.count(disk_full), full) << volume.story();
        // Without one of them it goes on; without more it cannot, and all wait.
        EXPECT_EQ(volume.all_answered(), full == 1) << volume.story();
        EXPECT_EQ(volume.count(member_absent), full == 1 ? 1u : 0u) << volume.story();
        volume.make_room();
        EXPECT_TRUE(volume.run_until([&] { return volume.is_healthy(); })) << volume.story();
        volume.pass(5s);
        EXPECT_EQ(volume.count(box_failed), 0u) << volume.story();
        EXPECT_EQ(volume.count(has_room), full) << volume.story();
        volume.expect_whole();
    });
}

// What nobody writes is read meanwhile.
TEST(FailureTable, Case40_DisksAreFull_TheyAreReadFrom) {
    Troubled volume(7);
    volume.write_everywhere();
    volume.expect_all_right();
    for (unsigned i = 0; i < 5; ++i) volume.fill_disk(i);
    volume.submit(HostOperation::write, {0, 4096});
    volume.pass(3s);
    const auto& read = volume.submit(HostOperation::read, {3 * volume.layout.stripe_bytes(), 4096});
    volume.pass(3s);
    EXPECT_TRUE(read.outcome && *read.outcome);
    volume.make_room();
    volume.pass(3s);
    volume.expect_all_right();
}

TEST(ABrokenLink, IsToldOfOnceHoweverLongItIsBroken) {
    Troubled volume(4);
    volume.break_link(0, 1);
    for (int minute = 0; minute < 6; ++minute) {
        volume.write_everywhere();
        volume.expect_all_right();
        volume.pass(61s);
    }
    EXPECT_EQ(volume.count(link_broken), 1u) << volume.story();
    EXPECT_EQ(volume.count(link_mended), 0u);
    EXPECT_EQ(volume.manager->status().members[0].unreached, only(1));
    EXPECT_EQ(volume.manager->status().members[1].unreached, only(0));
    volume.expect_nobody_counted_out();
    volume.mend_links();
    volume.pass(61s);
    volume.write_everywhere();
    volume.expect_all_right();
    EXPECT_EQ(volume.count(link_mended), 1u) << volume.story();
    EXPECT_EQ(volume.manager->status().members[0].unreached, 0u);
    volume.expect_whole();
}

TEST(ABrokenLinkToAHost, IsToldOfOnceAndWhenItIsMended) {
    Troubled volume(5);
    volume.boxes[3]->network.reaches_no_host = true;
    for (int minute = 0; minute < 4; ++minute) {
        volume.write_everywhere();
        volume.submit(HostOperation::read, {0, volume.shadow.size() / 2});
        volume.expect_all_right();
        volume.pass(61s);
    }
    EXPECT_EQ(volume.count(host_cut_off), 1u) << volume.story();
    EXPECT_TRUE(volume.manager->status().members[3].misses_host);
    volume.expect_nobody_counted_out();
    volume.boxes[3]->network.reaches_no_host = false;
    const auto relayed = volume.manager->status().counters.payload_octets;
    EXPECT_GT(relayed, 0u);
    volume.submit(HostOperation::read, {0, volume.shadow.size() / 2});
    volume.expect_all_right();
    EXPECT_EQ(volume.count(host_reached), 1u) << volume.story();
    EXPECT_FALSE(volume.manager->status().members[3].misses_host);
    EXPECT_EQ(volume.manager->status().counters.payload_octets, relayed);
    volume.expect_whole();
}

TEST(AVolumesEvents, AreSentencesWithTheirFigures) {
    EXPECT_EQ(to_text({.kind = box_slow, .place = 1, .took = 180ms, .others = 2ms}, ""),
              "box answers slowly (no answer for 180 ms, others take 2 ms): reads go around it");
    EXPECT_EQ(to_text({.kind = box_slow, .place = 1, .took = 12s, .others = 350us}, ""),
              "box answers slowly (no answer for 12 s, others take 350 us): reads go around it");
    EXPECT_EQ(to_text({.kind = box_slow, .place = 1, .took = 3s}, ""),
              "box answers slowly (no answer for 3000 ms): writes wait for it");
    EXPECT_EQ(to_text({.kind = journal_full, .place = 1, .number = 12}, ""),
              "box's journal is full: writes wait for room (12)");
    EXPECT_EQ(to_text({.kind = disk_full, .place = 1, .number = 3}, ""),
              "box's disk is full: writes wait for room (3)");
    EXPECT_EQ(to_text({.kind = link_broken, .place = 1, .number = 2}, "elm"),
              "box and elm do not reach each other: their data goes by way of the controller");
    EXPECT_EQ(to_text({.kind = link_mended, .place = 1, .number = 2}, "elm"),
              "box and elm reach each other again");
    EXPECT_EQ(to_text({.kind = scrub_ended, .place = {}, .number = 3}, ""), "scrub ended (3)");
}

}  // namespace
}  // namespace weft::raid
