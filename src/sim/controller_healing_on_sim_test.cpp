// SPDX-License-Identifier: Apache-2.0
// What an array does about boxes that are lost, and what management does with those that are there.
#include <gtest/gtest.h>

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

    BlockDevice* disk = nullptr;
    std::vector<std::byte> shadow;
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

TEST(ControllerHealing, PutsAVolumeTogetherFromItsBoxesAlone) {
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
    EXPECT_EQ(add("OAK", ArrayCluster::box_address("oak")),
              "'OAK' is no name for a box: small letters, digits, '-' and '.'");
    array.start_box("fir");
    EXPECT_TRUE(add("yew", ArrayCluster::box_address("fir"))) << "fir is not called yew";
    EXPECT_TRUE(add("yew", Address::tcp("10.0.0.77", 1))) << "nobody is there";
    EXPECT_EQ(array.create("Photos", Level::raid5, {"oak", "elm", "ash"}),
              "'Photos' is no name for a volume: small letters, digits, '-' and '.'");
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
