// SPDX-License-Identifier: Apache-2.0
// What an array does about boxes that are lost, and what management does with those that are there.
#include <gtest/gtest.h>

#include <set>

#include "support/scribbled_array.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using raid::Level;
using raid::VolumeState;
using test::ArrayCluster;
using test::ScribbledArray;

TEST(ControllerHealing, GoesOnWithoutABoxAndTakesItBack) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        ScribbledArray array(seed);
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
        ScribbledArray array(seed);
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
        ScribbledArray array(seed);
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

std::vector<std::string> boxes_of(ArrayCluster& array, const std::string& volume) {
    for (const auto& each : array.controller->volumes())
        if (each.name == volume) return each.box_names;
    return {};
}

std::size_t events_about(ArrayCluster& array, const std::string& box, const std::string& begins) {
    const auto& events = array.controller->events().events();
    return static_cast<std::size_t>(std::ranges::count_if(events, [&](const auto& each) {
        return each.box == box && each.what.starts_with(begins);
    }));
}

TEST(ControllerHealing, GivesASpareThePlacesOfABoxInAllItsVolumes) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        ScribbledArray array(seed);
        ASSERT_FALSE(
            array.create("music", Level::raid5, {"ash", "oak", "elm"}, 16u << 10, 1 << 20));
        ASSERT_FALSE(array.create("films", Level::mirror, {"oak", "elm"}, 16u << 10, 1 << 20));
        ASSERT_FALSE(array.create("news", Level::mirror, {"fir", "ash"}, 16u << 10, 1 << 20));
        array.add_box("bay");
        array.add_box("cot");
        for (const auto* name : {"bay", "cot"})
            ASSERT_FALSE(array.refusal_of(
                [&](auto told) { array.controller->add_spare(name, std::move(told)); }));
        array.cut_power("ash");
        ASSERT_TRUE(array.becomes("photos", VolumeState::degraded));
        for (const auto* name : {"photos", "music", "news"})
            ASSERT_TRUE(array.becomes(name, VolumeState::healthy)) << name;
        const auto stand_in = boxes_of(array, "photos")[2];
        EXPECT_TRUE(stand_in == "bay" || stand_in == "cot");
        EXPECT_EQ(boxes_of(array, "music")[0], stand_in) << "one box for the one that is lost";
        EXPECT_EQ(boxes_of(array, "news")[1], stand_in);
        EXPECT_EQ(boxes_of(array, "films"), (std::vector<std::string>{"oak", "elm"}));
        for (const auto& box : array.controller->boxes())
            EXPECT_EQ(box.spare, box.name != stand_in && (box.name == "bay" || box.name == "cot"));
        array.scrub_finds_nothing();
        array.check();
    });
}

TEST(ControllerHealing, GivesASpareNoMorePlacesThanItHasRoomFor) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        ScribbledArray array(seed);
        ASSERT_FALSE(
            array.create("music", Level::raid5, {"ash", "oak", "elm"}, 16u << 10, 6 << 20));
        array.box_size = 9u << 20;  // a part of either is 6 MiB and some
        array.add_box("bay");
        ASSERT_FALSE(array.refusal_of(
            [&](auto told) { array.controller->add_spare("bay", std::move(told)); }));
        array.cut_power("ash");
        auto healthy = [&](const std::string& name) {
            return array.status(name).state == VolumeState::healthy;
        };
        ASSERT_TRUE(array.run_until([&] { return healthy("photos") != healthy("music"); }));
        array.world.run_for(30s);
        EXPECT_NE(healthy("photos"), healthy("music")) << "there is no room for both";
        array.add_box("cot");
        ASSERT_FALSE(array.refusal_of(
            [&](auto told) { array.controller->add_spare("cot", std::move(told)); }));
        ASSERT_TRUE(array.run_until([&] { return healthy("photos") && healthy("music"); }));
        array.scrub_finds_nothing();
        array.check();
    });
}

TEST(ControllerHealing, TellsOnceThatABoxIsAway) {
    ScribbledArray array(3);
    array.cut_power("elm");
    array.scribble(5);
    array.world.run_for(60s);
    EXPECT_EQ(events_about(array, "elm", "down: "), 1u);
    array.start_box("elm");
    ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
    EXPECT_EQ(events_about(array, "elm", "up"), 1u);
    array.cut_power("elm");
    array.scribble(5);
    array.world.run_for(60s);
    EXPECT_EQ(events_about(array, "elm", "down: "), 2u) << "that is another time";
    array.check();
}

TEST(ControllerHealing, ShowsTheMembersOfANewVolumeUp) {
    test::for_each_seed(20, [](std::uint64_t seed) {
        ScribbledArray array(seed);
        array.add_box("bay");
        ASSERT_FALSE(
            array.create("music", Level::raid5, {"bay", "oak", "elm"}, 16u << 10, 1 << 20));
        for (const auto& member : array.status("music").members)
            EXPECT_TRUE(member.up) << int{member.place};
    });
}

TEST(ControllerHealing, ReplacesABoxOnRequestAndLetsItGo) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        ScribbledArray array(seed);
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

/// Its session has not ended yet, and what it said when it came is still known.
TEST(ControllerHealing, KeepsAMemberWhoseHeirDoesNotAnswer) {
    ScribbledArray array(5);
    array.add_box("bay");
    auto& controller = *array.controller;
    std::optional<std::optional<std::string>> refusal;
    array.cut_power("bay");
    controller.replace_member("photos", "elm", "bay", [&](auto told) { refusal = told; });
    ASSERT_TRUE(array.run_until([&] { return refusal.has_value(); }));
    EXPECT_TRUE(*refusal) << "it was accepted";
    array.scribble(5);
    EXPECT_EQ(array.status("photos").state, VolumeState::healthy);
    EXPECT_EQ(controller.volumes().front().box_names[1], "elm");
    array.check();
}

/// It was promised a place, and has nothing yet: no reason to count it out for good.
TEST(ControllerHealing, RebuildsAnHeirThatWasLostBeforeItHadItsPart) {
    test::for_each_seed(40, [](std::uint64_t seed) {
        ScribbledArray array(seed);
        array.add_box("bay");
        auto& controller = *array.controller;
        const auto refusal = array.refusal_of(
            [&](auto told) { controller.replace_member("photos", "elm", "bay", std::move(told)); });
        ASSERT_FALSE(refusal) << *refusal;
        array.world.run_for(Duration(array.world.chance().below(3'000'000)));
        array.cut_power("bay");
        array.world.run_for(Duration(array.world.chance().below(4'000'000'000)));
        array.start_box("bay");
        ASSERT_TRUE(array.run_until([&] {
            return array.status("photos").state == VolumeState::healthy &&
                   controller.volumes().front().box_names[1] == "bay";
        })) << "seed "
            << seed;
        array.check();
    });
}

TEST(ControllerHealing, FailsAMemberAndAddsItAgain) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        ScribbledArray array(seed);
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
        ScribbledArray array(seed);
        array.cut_power("elm");
        array.scribble(5);
        array.stop_controller();
        array.start_controller();
        ASSERT_TRUE(array.becomes("photos", VolumeState::degraded));
        const auto& book = array.controller->events();
        EXPECT_TRUE(std::ranges::any_of(book.events(), [&](const node::ControllerEvent& event) {
            return event.number < book.first_own() && event.box == "elm" &&
                   event.what == "member absent";
        })) << "it does not know since when";
        array.scribble(5);
        array.start_box("elm");
        ASSERT_TRUE(array.becomes("photos", VolumeState::healthy));
        array.scrub_finds_nothing();
        array.check();
    });
}

TEST(FailureTable, Case20_TheStoreIsLost_TheBoxesAloneMakeTheVolumeAgain) {
    test::for_each_seed(4, [](std::uint64_t seed) {
        ScribbledArray array(seed);
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

TEST(ControllerHealing, TakesABoxForAwayThatCannotReadItsPart) {
    ScribbledArray array(11);
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

TEST(ControllerHealing, FindsABoxAgainThatHasMoved) {
    ScribbledArray array(11);
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
