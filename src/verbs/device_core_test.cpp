// SPDX-License-Identifier: Apache-2.0
#include "verbs/device_core.hpp"

#include <gtest/gtest.h>

#include "support/manual_world.hpp"

namespace weft::verbs {
namespace {

class DeviceCoreTest : public testing::Test {
protected:
    void make(std::function<void(const AsyncEvent&)> on_event) {
        core = std::make_shared<DeviceCore>(world, DeviceOptions{.on_event = std::move(on_event)});
    }
    test::ManualWorld world;
    std::shared_ptr<DeviceCore> core;
};

TEST_F(DeviceCoreTest, TellsEventsInOrderAndNeverFromInsideTheCall) {
    std::vector<std::uint32_t> told;
    make([&](const AsyncEvent& event) {
        told.push_back(event.queue_pair);
        if (event.queue_pair == 1) core->raise({.queue_pair = 9});
    });
    core->raise({.queue_pair = 1});
    core->raise({.queue_pair = 2});
    EXPECT_TRUE(told.empty());
    world.advance({});
    EXPECT_EQ(told, (std::vector<std::uint32_t>{1, 2, 9}));
}

TEST_F(DeviceCoreTest, BearsThatWhoIsToldLetsGoOfIt) {
    int told = 0;
    auto token = std::make_shared<int>(3);
    make([this, &told, token](const AsyncEvent&) {
        core.reset();
        told += *token;
    });
    core->raise({});
    core->raise({});
    world.advance({});
    EXPECT_EQ(told, 6);
    EXPECT_EQ(token.use_count(), 1);
}

TEST_F(DeviceCoreTest, LosesTheLastOfTooManyEvents) {
    std::vector<std::uint32_t> told;
    make([&](const AsyncEvent& event) { told.push_back(event.queue_pair); });
    for (std::uint32_t i = 0; i < limits::events_waiting + 5; ++i) core->raise({.queue_pair = i});
    world.advance({});
    ASSERT_EQ(told.size(), limits::events_waiting);
    EXPECT_EQ(told.back(), limits::events_waiting - 1);
}

TEST_F(DeviceCoreTest, KeepsNoEventsForNobody) {
    make({});
    core->raise({});
    world.advance({});
}

TEST_F(DeviceCoreTest, LetsConnectionsDepartInBoundedNumbersAndNoneOnceTheDeviceIsGone) {
    struct Leaver final : Departing {
        explicit Leaver(int& counter) : left(counter) {}
        ~Leaver() override { ++left; }
        int& left;
    };
    make({});
    int left = 0;
    auto first = std::make_unique<Leaver>(left);
    auto& departing = *first;
    core->let_depart(std::move(first));
    EXPECT_EQ(left, 0);
    core->has_departed(departing);
    EXPECT_EQ(left, 1);
    for (std::size_t i = 0; i < limits::rejections_waiting; ++i)
        core->let_depart(std::make_unique<Leaver>(left));
    EXPECT_EQ(left, 1);
    core->let_depart(std::make_unique<Leaver>(left));
    EXPECT_EQ(left, 2) << "no room: it goes at once";
    core->device_is_gone();
    core->let_depart(std::make_unique<Leaver>(left));
    EXPECT_EQ(left, 3 + static_cast<int>(limits::rejections_waiting));
}

}  // namespace
}  // namespace weft::verbs
