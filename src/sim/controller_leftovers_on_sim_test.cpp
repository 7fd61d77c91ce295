// SPDX-License-Identifier: Apache-2.0
// What boxes still have of volumes that are gone, or that have given their place to another box.
#include <gtest/gtest.h>

#include "support/scribbled_array.hpp"

namespace weft::sim {
namespace {

using raid::Level;
using raid::VolumeState;
using test::ArrayCluster;
using test::ScribbledArray;

const auto& four = ScribbledArray::members;

TEST(ControllerLeftovers, DeletesAVolumeAndHasItsRoomAgain) {
    ScribbledArray array(6);
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

TEST(ControllerLeftovers, RemovesWhatNoVolumeClaimsWhenAsked) {
    ScribbledArray array(8);
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

TEST(ControllerLeftovers, ShowsAPartThatIsDamagedAndNobodyClaims) {
    ScribbledArray array(10);
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

TEST(ControllerLeftovers, KeepsWhatCouldStillBeAssembledUnlessForced) {
    ScribbledArray array(9);
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

}  // namespace
}  // namespace weft::sim
