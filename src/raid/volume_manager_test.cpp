// SPDX-License-Identifier: Apache-2.0
#include "raid/volume_manager.hpp"

#include <gtest/gtest.h>

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

TEST(VolumeManager, ServesWhenAllBoxesAreThere) {
    test::for_each_seed(10, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.submit_randomly(40);
        volume.expect_whole();
        EXPECT_EQ(volume.count(started), 1u);
        EXPECT_EQ(volume.manager->volume().generation, wire::Generation{1}) << "nothing changed";
    });
}

TEST(VolumeManager, GivesABoxThatWasAwayOnlyWhatItLacks) {
    ManagedVolume volume(Level::raid5, 5, 1);
    const std::uint64_t stripe = volume.layout.stripe_bytes();
    for (std::uint64_t i = 0; i < ManagedVolume::stripe_count; ++i)
        volume.submit(HostOperation::write, {i * stripe, stripe});
    volume.expect_all_right();
    // All boxes flush after a while: what is written before is not in question then.
    ASSERT_TRUE(volume.run_until([&] { return volume.boxes[0]->disk.flushes > 0; }));
    volume.expect_whole();
    volume.drop(2);
    volume.submit(HostOperation::write, {3 * stripe, 4096});
    volume.expect_all_right();
    volume.bring(2);
    volume.expect_whole();
    const auto began = std::ranges::find(volume.events, rebuild_began, &VolumeEvent::kind);
    ASSERT_NE(began, volume.events.end());
    EXPECT_EQ(began->number, 1u) << "one stripe was written meanwhile";
}

TEST(VolumeManager, GivesThePlaceOfADeadDiskToASpare) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        const unsigned spare = volume.add_spare_box();
        volume.spares.push_back(volume.identities[spare]);
        volume.submit_randomly(10);
        volume.boxes[box]->disk.broken = true;
        volume.submit_randomly(20);
        volume.expect_all_right();
        volume.submit(HostOperation::flush, {});  // it may not have been asked for anything yet
        volume.expect_whole();
        EXPECT_EQ(volume.manager->volume().members[box].box, volume.identities[spare]);
        EXPECT_EQ(volume.count(box_placed), 1u);
    });
}

TEST(VolumeManager, TriesTheNextSpareWhenOneHasNoRoom) {
    ManagedVolume volume(Level::raid5, 5, 3);
    const unsigned full = volume.add_spare_box(), other = volume.add_spare_box();
    volume.sessions[full].full = true;
    volume.spares = {volume.identities[full], volume.identities[other]};
    volume.submit_randomly(10);
    volume.drop(1);
    volume.expect_all_right();
    volume.expect_whole();
    EXPECT_EQ(volume.manager->volume().members[1].box, volume.identities[other]);
}

TEST(VolumeManager, FailsRequestsOnceItHasWaitedLongEnough) {
    VolumeManagerOptions options;
    options.request_patience = std::chrono::seconds(50);
    ManagedVolume volume(Level::raid5, 5, 1, options);
    ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
    volume.drop(0);
    volume.agenda.run();
    volume.drop(1);
    auto& request = volume.submit(HostOperation::read, {0, 65536});
    ASSERT_TRUE(volume.run_until([&] { return request.outcome.has_value(); }));
    EXPECT_EQ(request.outcome->error().code, Code::io_failed);
    EXPECT_EQ(volume.count(given_up), 1u);
    EXPECT_EQ(volume.submit(HostOperation::read, {0, 4096}).outcome->error().code, Code::io_failed);
    volume.requests.clear();
    volume.bring(1);
    volume.bring(0);
    volume.expect_whole();
}

TEST(VolumeManager, IsTheSameUnderTheNextController) {
    test::for_each_seed(40, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.submit_randomly(10);
        volume.replace_controller();
        volume.submit_randomly(10);
        volume.expect_whole();
    });
}

TEST(VolumeManager, GoesOnRebuildingUnderTheNextController) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.submit_randomly(20);
        volume.expect_all_right();
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        const unsigned spare = volume.add_spare_box();
        ASSERT_TRUE(
            volume.manager->replace(static_cast<std::uint8_t>(box), volume.identities[spare]));
        auto saved = [&] {
            for (const auto& [name, record] : volume.kept)
                if (auto found = parse_record<wire::ArrayRebuildRecord>(record);
                    found && found->stripes > 0)
                    return true;
            return false;
        };
        ASSERT_TRUE(volume.run_until(saved));
        volume.replace_controller();
        const auto rebuilds = volume.manager->status().rebuilds;
        ASSERT_EQ(rebuilds.size(), 1u);
        EXPECT_LT(rebuilds[0].to_do, ManagedVolume::stripe_count) << "not from the beginning";
        volume.submit_randomly(10);
        volume.expect_whole();
    });
}

TEST(VolumeManager, AnswersNothingWhileTheStoreCannotKeepWhatMustLast) {
    ManagedVolume volume(Level::raid5, 5, 1);
    ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
    volume.store_fails = 1'000;
    volume.drop(2);
    volume.submit(HostOperation::write, {0, volume.layout.stripe_bytes()});
    for (int i = 0; i < 20; ++i) {
        volume.agenda.run();
        volume.pass_time();
    }
    EXPECT_FALSE(volume.requests[0]->outcome) << "the store does not know who is in it";
    EXPECT_GE(volume.count(store_failed), 2u);
    volume.store_fails = 0;
    volume.expect_all_right();
    volume.bring(2);
    volume.expect_whole();
}

TEST(VolumeManager, BacksOffFromABoxWithoutRoom) {
    ManagedVolume volume(Level::raid5, 5, 1);
    ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
    for (auto& box : volume.boxes) box->windows.refusals = 6;
    volume.submit(HostOperation::write, {0, volume.layout.stripe_bytes()});
    volume.agenda.run();
    EXPECT_LT(volume.commands, 20u) << "it waits before it asks again";
    volume.expect_whole();
    EXPECT_EQ(volume.count(box_failed), 0u) << "nobody has failed";
}

TEST(VolumeManager, FindsAndNamesWhatDoesNotAgreeAndMendsIt) {
    test::for_each_seed(9, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.submit_randomly(20);
        volume.expect_whole();
        const std::uint64_t stripe = seed % ManagedVolume::stripe_count;
        // The last column is parity, or a copy: the data is right.
        const auto box =
            number(volume.layout.box_of(stripe, static_cast<Column>(volume.layout.boxes() - 1)));
        volume.boxes[box]->disk.octets.all()[2 * 4096 + stripe * 8192 + 5000] ^= std::byte{8};
        auto scrub = [&](bool repair) {
            volume.events.clear();
            EXPECT_TRUE(volume.manager->scrub(repair));
            EXPECT_FALSE(volume.manager->scrub(repair)) << "one at a time";
            EXPECT_TRUE(volume.run_until([&] { return !volume.manager->status().scrub.running; }));
            return volume.manager->status().scrub;
        };
        EXPECT_EQ(scrub(false).mismatches, 1u);
        const auto named = std::ranges::find(volume.events, scrub_mismatch, &VolumeEvent::kind);
        ASSERT_NE(named, volume.events.end());
        EXPECT_EQ(named->number, stripe);
        // A mirror is mended from the copy that reads go to, whichever that is.
        if (volume.layout.level() == Level::mirror && stripe % 3 == box) return;
        const auto mended = scrub(true);
        EXPECT_EQ(mended.mismatches, 1u);
        EXPECT_EQ(mended.repaired, 1u);
        volume.expect_whole();
    });
}

TEST(VolumeManager, DoesAsManagementSays) {
    ManagedVolume volume(Level::raid5, 5, 1);
    volume.submit_randomly(10);
    ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
    auto& manager = *volume.manager;
    EXPECT_EQ(manager.fail(7).error().code, Code::not_found);
    EXPECT_EQ(manager.re_add(1).error().code, Code::unsupported) << "it has not failed";
    ASSERT_TRUE(manager.pause_rebuild(true));
    ASSERT_TRUE(manager.fail(1));
    EXPECT_EQ(manager.fail(2).error().code, Code::io_failed) << "one of five is all it can lose";
    volume.submit_randomly(10);
    volume.expect_all_right();
    EXPECT_EQ(manager.status().members[1].state, ArrayMemberState::absent);
    EXPECT_EQ(manager.replace(0, volume.identities[1]).error().code, Code::unsupported);
    ASSERT_TRUE(manager.re_add(1));
    volume.agenda.run();
    ASSERT_EQ(manager.status().rebuilds.size(), 1u);
    EXPECT_TRUE(manager.status().rebuilds[0].paused);
    EXPECT_EQ(manager.status().rebuilds[0].octets, 0u);
    ASSERT_TRUE(manager.pause_rebuild(false));
    volume.expect_whole();
}

TEST(VolumeManager, LeavesOutWhoHasFailedUnderTheNextControllerToo) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        const auto box = static_cast<std::uint8_t>(seed % boxes_of(seed));
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        if (seed % 2 == 0) {
            ASSERT_TRUE(volume.manager->fail(box));
        } else {
            volume.boxes[box]->disk.broken = true;
            volume.submit(HostOperation::flush, {});
        }
        auto is_out = [&] {
            const auto member = volume.manager->status().members[box];
            return member.state == ArrayMemberState::absent && member.failed;
        };
        ASSERT_TRUE(volume.run_until(is_out));
        volume.expect_all_right();
        volume.boxes[box]->disk.broken = false;  // which nobody knows
        volume.replace_controller();
        volume.submit_randomly(10);
        volume.expect_all_right();
        EXPECT_TRUE(is_out()) << volume.story();
        EXPECT_EQ(volume.count(rebuild_began), 0u) << "nobody has said that it may";
        ASSERT_TRUE(volume.manager->re_add(box));
        volume.expect_whole();
        EXPECT_FALSE(volume.manager->volume().members[box].failed);
    });
}

TEST(VolumeManager, CountsOnlyTheWorkOfTheScrubThatRuns) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        for (std::uint64_t i = 0; i < ManagedVolume::stripe_count; ++i)
            volume.boxes[1]->disk.octets.all()[2 * 4096 + i * 8192 + 5] ^= std::byte{8};
        for (int i = 0; i < 4; ++i) {
            ASSERT_TRUE(volume.manager->scrub(seed % 2 != 0));
            volume.some_steps(5 + seed % 30);
            (void)volume.manager->stop_scrub();
        }
        volume.events.clear();
        ASSERT_TRUE(volume.manager->scrub(false));
        ASSERT_TRUE(volume.run_until([&] { return !volume.manager->status().scrub.running; }));
        const auto scrub = volume.manager->status().scrub;
        EXPECT_EQ(scrub.done, ManagedVolume::stripe_count);
        EXPECT_EQ(volume.count(scrub_mismatch), scrub.mismatches);
        if (seed % 2 == 0) {
            EXPECT_EQ(scrub.mismatches, ManagedVolume::stripe_count) << "none is left out";
        }
    });
}

TEST(VolumeManager, KeepsToTheRateItIsGiven) {
    ManagedVolume volume(Level::raid5, 5, 1);
    volume.submit_randomly(10);
    ASSERT_TRUE(volume.run_until([&] { return volume.all_answered() && volume.is_healthy(); }));
    const unsigned spare = volume.add_spare_box();
    ASSERT_TRUE(volume.manager->limit_rebuild(8192));  // a chunk in a second
    const auto before = volume.now;
    ASSERT_TRUE(volume.manager->replace(2, volume.identities[spare]));
    volume.expect_whole();
    EXPECT_GE(volume.now - before, std::chrono::seconds(ManagedVolume::stripe_count - 1));
}

/// Its data went home and its parity did not, or the other way: a difference would be added to the

/// wrong sum.

/// No box can be spared any more, and one is out of touch for a moment amid a commit: it still has

/// what it was to write, and is asked again.

TEST(VolumeManager, TellsThoseWhoWaitWhenAnotherIsInOffice) {
    ManagedVolume volume(Level::raid5, 5, 1);
    ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
    // Somebody else's new_epoch, and we have not heard of it.
    auto address = volume.address_of(3);
    address.epoch = wire::Epoch{9};
    volume.tell(3, wire::ArrayAction::new_epoch, 0, encoded(address));
    volume.submit(HostOperation::write, {0, volume.layout.stripe_bytes()});
    volume.submit(HostOperation::read, {0, volume.layout.stripe_bytes()});
    ASSERT_TRUE(volume.run_until([&] { return volume.all_answered(); }));
    for (auto& request : volume.requests)
        EXPECT_EQ(request->outcome->error().code, Code::disconnected);
    EXPECT_EQ(volume.count(deposed), 1u);
    EXPECT_EQ(volume.count(member_absent), 0u) << "it is not ours to change any more";
}

TEST(VolumeManager, FlushesWhatAScrubRepaired) {
    ManagedVolume volume(Level::raid5, 5, 1);
    ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
    volume.boxes[4]->disk.octets.all()[2 * 4096 + 5] ^= std::byte{8};
    volume.boxes[4]->disk.lasting = volume.boxes[4]->disk.octets;
    ASSERT_TRUE(volume.manager->scrub(true));
    ASSERT_TRUE(volume.run_until([&] { return !volume.manager->status().scrub.running; }));
    volume.cut_power(4);
    volume.bring(4);
    volume.expect_whole();
}

TEST(VolumeManager, GrowsWhenItsBoxesCan) {
    test::for_each_seed(9, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        for (auto& box : volume.boxes) box->room = 1 << 20;
        volume.submit_randomly(10);
        ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
        EXPECT_EQ(volume.manager->grow(3).error().code, Code::unsupported) << "it has eight";
        ASSERT_TRUE(volume.manager->grow(13));
        volume.submit_randomly(10);
        const std::uint64_t larger = 13 * volume.layout.stripe_bytes();
        ASSERT_TRUE(volume.run_until([&] { return volume.manager->size() == larger; }));
        volume.shadow.resize(larger);
        volume.submit_randomly(20);
        volume.expect_whole();
        volume.drop(1);
        volume.submit_randomly(10);
        volume.bring(1);
        volume.expect_whole();
    });
}

TEST(VolumeManager, StaysAsItIsWhenABoxHasNoRoomToGrow) {
    ManagedVolume volume(Level::raid5, 5, 1);
    for (auto& box : volume.boxes) box->room = 1 << 20;
    volume.boxes[3]->room = 0;
    ASSERT_TRUE(volume.run_until([&] { return volume.is_healthy(); }));
    const auto before = volume.manager->size();
    ASSERT_TRUE(volume.manager->grow(13));
    volume.submit_randomly(10);
    volume.expect_whole();
    EXPECT_EQ(volume.count(grow_refused), 1u);
    EXPECT_EQ(volume.count(member_absent), 0u);
    EXPECT_EQ(volume.manager->size(), before);
    EXPECT_EQ(volume.manager->volume().stripes, ManagedVolume::stripe_count);
}

TEST(VolumeManager, CarriesNoDataUnlessItIsAskedTo) {
    ManagedVolume volume(Level::raid5, 5, 1);
    volume.submit_randomly(20);
    volume.expect_all_right();
    EXPECT_EQ(volume.manager->status().counters.payload_octets, 0u);
    EXPECT_EQ(volume.manager->status().counters.requests, 20u);
    EXPECT_EQ(volume.manager->status().counters.orders, volume.commands);
    volume.submit(HostOperation::read, {0, 8192}, true);
    volume.expect_all_right();
    EXPECT_EQ(volume.manager->status().counters.payload_octets, 2u * 8192u) << "in, and out";
}

TEST(VolumeManager, ServesByWayOfTheControllerToo) {
    test::for_each_seed(30, [](std::uint64_t seed) {
        ManagedVolume volume(level_of(seed), boxes_of(seed), seed);
        volume.in_band_too = true;
        const auto box = static_cast<unsigned>(seed % boxes_of(seed));
        volume.submit_randomly(20);
        volume.drop(box);
        volume.submit_randomly(20);
        volume.bring(box);
        volume.submit_randomly(20);
        volume.expect_whole();
    });
}

TEST(VolumeManager, ServesAHostThatIsTheControllerItself) {
    ManagedVolume volume(Level::raid6, 6, 1);
    std::vector<std::byte> written(5 * 4096), read(5 * 4096);
    for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<std::byte>(i * 7);
    auto ask = [&](HostOperation operation, std::vector<std::byte>& memory) {
        ManagedVolume::Request request;
        request.operation = operation;
        request.range = {8192, memory.size()};
        request.in_band = true;
        request.local = memory;
        volume.manager->submit(request);
        EXPECT_TRUE(volume.run_until([&] { return request.outcome.has_value(); }));
        EXPECT_TRUE(*request.outcome);
    };
    ask(HostOperation::write, written);
    ask(HostOperation::read, read);
    EXPECT_EQ(read, written);
}

/// Everything at once, as long as the code can bear it. A box lost while a write that was cut short

/// by the loss of the controller is not yet done again is more than parity can: that needs a

/// journal.

}  // namespace
}  // namespace weft::raid
