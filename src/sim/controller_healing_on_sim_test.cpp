// SPDX-License-Identifier: Apache-2.0
// What an array does about boxes that are lost, and what management does with those that are there.
#include <gtest/gtest.h>

#include <set>

#include "support/array_cluster.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using raid::Level;
using raid::VolumeState;
using test::ArrayCluster;

constexpr std::uint64_t used = 6u << 20;
const std::vector<std::string> four{"oak", "elm", "ash", "fir"};

/// A volume, a host, and what should be there.
class Photos : public ArrayCluster {
public:
    explicit Photos(std::uint64_t seed) : ArrayCluster(seed) {
        volume_options.spare_patience = 3s;
        start_controller();
        for (const auto& name : four) add_box(name);
        const auto refusal = create("photos", Level::raid5, four, 16u << 10, used);
        EXPECT_FALSE(refusal) << *refusal;
        EXPECT_TRUE(becomes("photos", VolumeState::healthy));
        disk = &attach("photos");
        shadow.resize(used);
        scribble(40);
    }
    /// Writes here and there, and remembers it.
    void scribble(int count) {
        for (int i = 0; i < count; ++i) {
            const auto blocks = 1 + world.chance().below(24);
            const auto at = world.chance().below(used / 4096 - blocks) * 4096;
            std::vector<std::byte> octets(blocks * 4096);
            for (auto& octet : octets) octet = static_cast<std::byte>(world.random());
            std::copy(octets.begin(), octets.end(),
                      shadow.begin() + static_cast<std::ptrdiff_t>(at));
            write(*disk, at, octets);
        }
    }
    void check() {
        constexpr std::size_t step = 512u << 10;
        for (std::size_t at = 0; at < used; at += step) {
            const auto from = shadow.begin() + static_cast<std::ptrdiff_t>(at);
            ASSERT_TRUE(std::ranges::equal(read(*disk, at, step), std::span(from, step)))
                << "from " << at;
        }
    }
    void scrub_finds_nothing() {
        const auto refusal = refusal_of(
            [&](auto told) { controller->scrub("photos", false, false, std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(run_until([&] { return !status("photos").scrub.running; }));
        EXPECT_EQ(status("photos").scrub.mismatches, 0u);
        EXPECT_EQ(status("photos").scrub.done, status("photos").scrub.to_do);
    }

    std::optional<std::string> clean(const std::string& name, bool force) {
        return refusal_of([&](const node::ControllerNode::Told& told) {
            controller->clean_box(name, force, [this, told](auto refusal, const auto& parts) {
                removed = parts;
                told(refusal);
            });
        });
    }

    BlockDevice* disk = nullptr;
    std::vector<std::byte> shadow;
    std::vector<node::RemovedPart> removed;  ///< when a box was cleaned last
};

TEST(ControllerHealing, GoesOnWithoutABoxAndTakesItBack) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        Photos array(seed);
        const wire::ArrayConnectionEnd elm{.role = wire::ArrayRole::box,
                                           .identity = array.boxes["elm"]->facts().box};
        auto& links_of_oak = array.boxes["oak"]->links();
        EXPECT_TRUE(links_of_oak.knows(elm));
        array.cut_power("elm");
        array.scribble(20);
        EXPECT_EQ(array.status("photos").state, VolumeState::degraded);
        EXPECT_FALSE(links_of_oak.knows(elm)) << "what it still sends from before finds no door";
        array.check();
        array.start_box("elm");
        ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
        EXPECT_TRUE(links_of_oak.knows(elm));
        array.scrub_finds_nothing();
        array.cut_power("oak");  // now elm's share is needed
        array.check();
    });
}

/// Only its connection with the controller is lost: it is not told, and what it was doing for the
/// host it goes on doing.
TEST(ControllerHealing, ClosesHostsToABoxThatWasCountedOut) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        std::set<LinkId> between;  // outlives who watches
        Photos array(seed);
        array.world.network().watch([&](const Network::Sending& sending) {
            if (sending.sender == "10.0.0.1" && sending.receiver == "10.0.0.11")
                between.insert(sending.link);
        });
        array.scribble(10);
        array.check();
        const auto& links = array.hosts["10.0.0.50"]->links();
        ASSERT_EQ(links.links(), 4u) << "all boxes have put something into its memory";
        const auto session = array.controller->hosts().front().session;
        const auto elm = wire::box_end(array.boxes["elm"]->facts().box);
        ASSERT_FALSE(between.empty());
        for (auto link : between)
            for (auto side : {Side::connector, Side::acceptor})
                array.world.network().partition(link, side);
        ASSERT_TRUE(array.becomes("photos", VolumeState::degraded));
        array.read(*array.disk, 0, 4096);
        EXPECT_EQ(links.links(), 3u);
        EXPECT_TRUE(links.is_barred(wire::host_end(session), elm));

        ASSERT_TRUE(array.becomes("photos", VolumeState::healthy)) << "it is found again";
        array.scribble(10);
        array.check();
        EXPECT_FALSE(links.is_barred(wire::host_end(session), elm));
        EXPECT_EQ(links.links(), 4u);
        EXPECT_EQ(array.controller->hosts().front().session, session);
        array.scrub_finds_nothing();
    });
}

TEST(ControllerHealing, GivesASpareThePlaceOfABoxThatStaysAway) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        Photos array(seed);
        array.add_box("bay");
        auto refusal = array.refusal_of(
            [&](auto told) { array.controller->add_spare("bay", std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        array.cut_power("ash");
        array.scribble(20);
        ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
        EXPECT_EQ(array.controller->volumes().front().box_names,
                  (std::vector<std::string>{"oak", "elm", "bay", "fir"}));
        for (const auto& box : array.controller->boxes()) EXPECT_FALSE(box.spare) << box.name;
        array.scrub_finds_nothing();
        array.cut_power("fir");
        array.check();
    });
}

TEST(ControllerHealing, ReplacesABoxOnRequestAndLetsItGo) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        Photos array(seed);
        array.add_box("bay");
        auto& controller = *array.controller;
        auto refusal = array.refusal_of(
            [&](auto told) { controller.replace_member("photos", "elm", "bay", std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        array.scribble(10);
        ASSERT_TRUE(array.run_until([&] {
            return array.status("photos").state == VolumeState::healthy &&
                   controller.volumes().front().box_names[1] == "bay";
        }));
        refusal =
            array.refusal_of([&](auto told) { controller.remove_box("elm", std::move(told)); });
        EXPECT_FALSE(refusal) << *refusal;
        refusal =
            array.refusal_of([&](auto told) { controller.remove_box("oak", std::move(told)); });
        EXPECT_EQ(refusal, "oak is part of a volume; replace it there first");
        array.scrub_finds_nothing();
        array.check();
    });
}

TEST(ControllerHealing, FailsAMemberAndAddsItAgain) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        Photos array(seed);
        auto& controller = *array.controller;
        auto refusal = array.refusal_of(
            [&](auto told) { controller.fail_member("photos", "2", std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(array.becomes("photos", VolumeState::degraded));
        array.scribble(1);
        EXPECT_TRUE(array.hosts["10.0.0.50"]->links().is_barred(
            wire::host_end(controller.hosts().front().session),
            wire::box_end(array.boxes["ash"]->facts().box)));
        refusal = array.refusal_of(
            [&](auto told) { controller.fail_member("photos", "fir", std::move(told)); });
        EXPECT_EQ(refusal, "photos could not do without it");
        array.scribble(10);
        refusal = array.refusal_of(
            [&](auto told) { controller.re_add_member("photos", "ash", std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
        array.scrub_finds_nothing();
        array.check();
    });
}

/// The host repeats what was not answered; the controller knows of the absence from its store.
TEST(ControllerHealing, RemembersWhoIsAbsentWhenItComesBack) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        Photos array(seed);
        array.cut_power("elm");
        array.scribble(5);
        array.stop_controller();
        array.start_controller();
        ASSERT_TRUE(array.becomes("photos", VolumeState::degraded));
        array.scribble(5);
        array.start_box("elm");
        ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
        array.scrub_finds_nothing();
        array.check();
    });
}

TEST(FailureTable, Case20_TheStoreIsLost_TheBoxesAloneMakeTheVolumeAgain) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        Photos array(seed);
        array.cut_power("elm");
        array.scribble(5);  // elm's superblock is of yesterday now
        array.stop_controller();
        array.records = {};
        array.start_controller();
        auto& controller = *array.controller;
        auto add = [&](const std::string& name, bool join) {
            return array.refusal_of([&](auto told) {
                controller.add_box(name, ArrayCluster::box_address(name), join, std::move(told));
            });
        };
        auto assemble = [&] {
            return array.refusal_of(
                [&](auto told) { controller.assemble_volume("photos", false, std::move(told)); });
        };
        EXPECT_EQ(assemble(), "no box that is up has a part of photos");
        array.start_box("elm");
        for (const auto& name : {"elm", "oak"}) {
            const auto refusal = add(name, true);
            ASSERT_FALSE(refusal) << *refusal;
        }
        EXPECT_EQ(assemble(), "too few boxes that have the newest of photos are up");
        for (const auto& name : {"ash", "fir"}) {
            const auto refusal = add(name, true);
            ASSERT_FALSE(refusal) << *refusal;
        }
        ASSERT_TRUE(array.run_until([&] {
            return std::ranges::all_of(controller.boxes(), [](const auto& box) { return box.up; });
        }));
        const auto refusal = assemble();
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(array.becomes("photos", VolumeState::healthy)) << "elm is rebuilt";
        array.check();
        array.scrub_finds_nothing();
    });
}

TEST(ControllerHealing, DeletesAVolumeAndHasItsRoomAgain) {
    Photos array(6);
    auto& controller = *array.controller;
    auto remove = [&] {
        return array.refusal_of(
            [&](auto told) { controller.delete_volume("photos", std::move(told)); });
    };
    EXPECT_EQ(remove(), "photos is in use by 10.0.0.50");
    auto& host = *array.hosts["10.0.0.50"];
    host.leave();
    ASSERT_TRUE(array.run_until([&] { return host.finished() && controller.hosts().empty(); }));
    array.hosts.clear();
    const auto refusal = remove();
    ASSERT_FALSE(refusal) << *refusal;
    ASSERT_TRUE(array.run_until([&] {
        return std::ranges::all_of(controller.boxes(), [](const auto& box) {
            return box.volumes.empty() && box.free == box.size;
        });
    }));
    EXPECT_EQ(remove(), "there is no volume photos");
    const auto again = array.create("photos", Level::raid6, four, 16u << 10);
    EXPECT_FALSE(again) << *again;
}

TEST(ControllerHealing, RemovesWhatNoVolumeClaimsWhenAsked) {
    Photos array(8);
    auto& controller = *array.controller;
    auto clean = [&](const std::string& name, bool force = false) {
        return array.clean(name, force);
    };
    auto report = [&](const std::string& name) {
        for (auto& box : controller.boxes())
            if (box.name == name) return box;
        return node::BoxReport{};
    };
    EXPECT_EQ(clean("oak"), std::nullopt) << "it is as was wished";
    EXPECT_EQ(clean("yew"), "there is no box yew");

    // Another has its place, and what it had is of no use to anybody.
    array.add_box("bay");
    auto refusal = array.refusal_of(
        [&](auto told) { controller.replace_member("photos", "elm", "bay", std::move(told)); });
    ASSERT_FALSE(refusal) << *refusal;
    ASSERT_TRUE(array.run_until([&] {
        return array.status("photos").state == VolumeState::healthy &&
               controller.volumes().front().box_names[1] == "bay";
    }));
    EXPECT_EQ(report("elm").unclaimed, std::vector<std::string>{"photos"});
    EXPECT_TRUE(report("elm").volumes.empty());
    EXPECT_EQ(clean("bay"), std::nullopt);
    EXPECT_TRUE(array.removed.empty());
    const auto taken = report("elm").size - report("elm").free;
    EXPECT_EQ(clean("elm"), std::nullopt);
    ASSERT_EQ(array.removed.size(), 1u);
    EXPECT_EQ(array.removed[0].volume, "photos");
    EXPECT_EQ(array.removed[0].octets, taken);
    EXPECT_TRUE(report("elm").unclaimed.empty());
    EXPECT_EQ(report("elm").free, report("elm").size);
    array.check();
    refusal = array.refusal_of(
        [&](auto told) { controller.replace_member("photos", "bay", "elm", std::move(told)); });
    EXPECT_EQ(refusal, std::nullopt) << "its place is given back to it";
    ASSERT_TRUE(array.run_until([&] {
        return array.status("photos").state == VolumeState::healthy &&
               controller.volumes().front().box_names[1] == "elm";
    }));
    refusal = array.refusal_of(
        [&](auto told) { controller.replace_member("photos", "elm", "bay", std::move(told)); });
    EXPECT_EQ(refusal, "bay has an old part of photos: weft box clean bay removes it");

    // It was away when its volume was deleted.
    array.cut_power("fir");
    array.scribble(3);
    EXPECT_EQ(report("fir").volumes, std::vector<std::string>{"photos"}) << "absent, and claimed";
    auto& host = *array.hosts["10.0.0.50"];
    host.leave();
    ASSERT_TRUE(array.run_until([&] { return host.finished() && controller.hosts().empty(); }));
    array.hosts.clear();
    refusal =
        array.refusal_of([&](auto told) { controller.delete_volume("photos", std::move(told)); });
    ASSERT_FALSE(refusal) << *refusal;
    EXPECT_NE(clean("fir"), std::nullopt) << "it is still away";
    array.start_box("fir");
    ASSERT_TRUE(array.run_until([&] { return report("fir").up; }));
    EXPECT_EQ(report("fir").unclaimed, std::vector<std::string>{"photos"});
    EXPECT_EQ(clean("fir"), std::nullopt);
    EXPECT_EQ(report("fir").free, report("fir").size);
}

TEST(ControllerHealing, ShowsAPartThatIsDamagedAndNobodyClaims) {
    Photos array(10);
    auto& controller = *array.controller;
    auto report = [&] {
        for (auto& box : controller.boxes())
            if (box.name == "elm") return box;
        return node::BoxReport{};
    };
    const auto identity = array.status("photos").volume.volume;
    const auto path = "/elm/part-" + to_digits(identity);
    array.cut_power("elm");
    array.add_box("bay");
    auto refusal = array.refusal_of(
        [&](auto told) { controller.replace_member("photos", "elm", "bay", std::move(told)); });
    ASSERT_FALSE(refusal) << *refusal;
    ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
    for (const std::uint64_t copy : {0u, 1u})
        array.world.disk(path).rot(copy * wire::superblock_size + 99, 3);
    array.start_box("elm");
    ASSERT_TRUE(array.run_until([&] { return report().up; }));
    EXPECT_EQ(report().unclaimed, std::vector<std::string>{"photos"});
    const auto taken = report().size - report().free;
    EXPECT_GT(taken, 0u);
    refusal = array.refusal_of(
        [&](auto told) { controller.replace_member("photos", "bay", "elm", std::move(told)); });
    EXPECT_EQ(refusal, "elm has an old part of photos: weft box clean elm removes it");
    refusal = array.clean("elm", false);
    EXPECT_FALSE(refusal) << *refusal;
    ASSERT_EQ(array.removed.size(), 1u);
    EXPECT_EQ(array.removed[0].octets, taken);
    EXPECT_TRUE(report().unclaimed.empty());
    EXPECT_EQ(report().free, report().size);
    EXPECT_FALSE(array.world.disks().contains(path));
    array.check();
}

TEST(ControllerHealing, TakesABoxForAwayThatCannotReadItsPart) {
    Photos array(11);
    const auto path = "/elm/part-" + to_digits(array.status("photos").volume.volume);
    array.cut_power("elm");
    array.world.disk(path).make_bad(0, 512, BadFor::reads);
    array.start_box("elm");
    array.world.run_for(30s);
    array.scribble(10);
    EXPECT_EQ(array.status("photos").members[1].state, wire::ArrayMemberState::absent)
        << "its part is not written over";
    EXPECT_FALSE(array.world.disks().contains(path + ".1"));
    array.world.disk(path).heal();
    array.cut_power("elm");
    array.start_box("elm");
    EXPECT_TRUE(array.becomes("photos", VolumeState::healthy));
    array.check();
    array.scrub_finds_nothing();
}

TEST(ControllerHealing, KeepsWhatCouldStillBeAssembledUnlessForced) {
    Photos array(9);
    array.stop_controller();
    array.records = {};
    array.start_controller();
    auto& controller = *array.controller;
    for (const auto& name : four) {
        const auto refusal = array.refusal_of([&](auto told) {
            controller.add_box(name, ArrayCluster::box_address(name), true, std::move(told));
        });
        ASSERT_FALSE(refusal) << *refusal;
    }
    ASSERT_TRUE(array.run_until([&] {
        return std::ranges::all_of(controller.boxes(), [](const auto& box) { return box.up; });
    }));
    auto clean = [&](const std::string& name, bool force) { return array.clean(name, force); };
    EXPECT_EQ(clean("oak", false),
              "boxes that are up have all of photos: assemble it, and delete it then if that is "
              "wished; or say --force");
    EXPECT_EQ(clean("oak", true), std::nullopt);
    EXPECT_NE(clean("elm", false), std::nullopt) << "three of four are enough";
    EXPECT_EQ(clean("elm", true), std::nullopt);
    EXPECT_EQ(clean("ash", false), std::nullopt) << "two are not";
}

TEST(ControllerHealing, FindsABoxAgainThatHasMoved) {
    Photos array(11);
    auto& controller = *array.controller;
    auto add = [&](const std::string& name, const Address& where) {
        return array.refusal_of(
            [&](auto told) { controller.add_box(name, where, false, std::move(told)); });
    };
    const auto elsewhere = Address::tcp(ArrayCluster::machine_of("elm"), 4000);
    EXPECT_EQ(add("elm", elsewhere), "there is a box elm already");
    array.cut_power("elm");
    array.scribble(5);
    EXPECT_TRUE(add("elm", ArrayCluster::box_address("oak"))) << "that is another box";
    array.start_box("elm", elsewhere);
    EXPECT_EQ(add("elm", elsewhere), std::nullopt);
    ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
    array.scrub_finds_nothing();
    array.cut_power("oak");
    array.check();
    array.start_box("oak");
    array.stop_controller();
    array.start_controller();
    ASSERT_TRUE(array.becomes("photos", VolumeState::healthy)) << "that is remembered";
}

TEST(ControllerHealing, RefusesWhatMakesNoSense) {
    ArrayCluster array(7);
    array.start_controller();
    auto& controller = *array.controller;
    auto add = [&](const std::string& name, const Address& address) {
        return array.refusal_of(
            [&](auto told) { controller.add_box(name, address, false, std::move(told)); });
    };
    for (const auto& name : {"oak", "elm", "ash"}) array.add_box(name);
    EXPECT_EQ(add("oak", ArrayCluster::box_address("oak")), "there is a box oak already");
    EXPECT_EQ(add("2", ArrayCluster::box_address("oak")),
              "'2' is no name for a box: it could be taken for a place");
    EXPECT_EQ(add("OAK", ArrayCluster::box_address("oak")),
              "'OAK' is no name for a box: small letters, digits, '-' and '.', 63 at most");
    array.start_box("fir");
    EXPECT_TRUE(add("yew", ArrayCluster::box_address("fir"))) << "fir is not called yew";
    EXPECT_TRUE(add("yew", Address::tcp("10.0.0.77", 1))) << "nobody is there";
    EXPECT_EQ(array.create("Photos", Level::raid5, {"oak", "elm", "ash"}),
              "'Photos' is no name for a volume: small letters, digits, '-' and '.', 63 at most");
    EXPECT_EQ(array.create("photos", Level::raid5, {"oak", "elm"}),
              "RAID 5 has 3 to 17 boxes, and not 2");
    EXPECT_EQ(array.create("photos", Level::raid5, {"oak", "elm", "yew"}), "there is no box yew");
    EXPECT_EQ(array.create("photos", Level::raid5, {"oak", "elm", "oak"}), "oak is named twice");
    EXPECT_EQ(array.create("photos", Level::raid5, {"oak", "elm", "ash"}, 5000),
              "a chunk is a multiple of 4 KiB, and 16 MiB at most");
    EXPECT_TRUE(array.create("photos", Level::raid5, {"oak", "elm", "ash"}, 32u << 10, 1u << 30));
    EXPECT_TRUE(controller.volumes().empty());
    for (const auto& box : controller.boxes()) EXPECT_EQ(box.free, box.size) << box.name;

    // Another cluster's box: its controller is gone, its belonging is not.
    array.stop_controller();
    array.records = {};
    array.start_controller();
    EXPECT_EQ(array.refusal_of([&](auto told) {
        array.controller->add_box("oak", ArrayCluster::box_address("oak"), false, std::move(told));
    }),
              "oak at 10.0.0.10:3260: it belongs to another cluster");
}

}  // namespace
}  // namespace weft::sim
