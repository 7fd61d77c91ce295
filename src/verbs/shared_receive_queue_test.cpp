// SPDX-License-Identifier: Apache-2.0
#include "verbs/shared_receive_queue.hpp"

#include <gtest/gtest.h>

#include "support/manual_world.hpp"

namespace weft::verbs {
namespace {

constexpr std::size_t capacity = 4;

class SharedReceiveQueueTest : public testing::Test {
protected:
    /// A queue pair that takes what it waited for as soon as it is told.
    struct Pair final : ReceiveWaiter {
        explicit Pair(SharedReceiveQueueObject& from) : queue(from) {}
        void take() {
            slot = queue.take(*this);
            if (slot) got.push_back(slot->receive.id);
        }
        void receive_posted() override { take(); }

        SharedReceiveQueueObject& queue;
        ReceiveQueue::Slot* slot = nullptr;
        std::vector<std::uint64_t> got;
    };
    std::size_t low_events() {
        world.advance({});
        std::size_t count = 0;
        for (auto& event : events)
            count += event.kind == AsyncEvent::Kind::receives_low && event.receives == queue.get();
        return count;
    }

    test::ManualWorld world;
    std::vector<AsyncEvent> events;
    std::shared_ptr<DeviceCore> core = std::make_shared<DeviceCore>(
        world,
        DeviceOptions{.on_event = [this](const AsyncEvent& event) { events.push_back(event); }});
    std::shared_ptr<SharedReceiveQueueObject> queue =
        std::make_shared<SharedReceiveQueueObject>(core, capacity, 1);
    Pair one{*queue}, two{*queue}, three{*queue};
};

using Ids = std::vector<std::uint64_t>;

TEST_F(SharedReceiveQueueTest, ServesAllFromOneQueue) {
    for (std::uint64_t id : {1, 2, 3}) ASSERT_TRUE(queue->post({id, {}}));
    EXPECT_EQ(queue->posted(), 3u);
    two.take();
    one.take();
    two.take();
    EXPECT_EQ(two.got, (Ids{1, 3}));
    EXPECT_EQ(one.got, Ids{2});
}

TEST_F(SharedReceiveQueueTest, ServesThoseWhoWaitInTheOrderTheyCame) {
    two.take();
    one.take();
    two.take();  // asks again, and does not thereby lose or gain a place
    for (std::uint64_t id : {7, 8, 9}) ASSERT_TRUE(queue->post({id, {}}));
    EXPECT_EQ(two.got, Ids{7});
    EXPECT_EQ(one.got, Ids{8});
    EXPECT_EQ(queue->posted(), 1u);
}

TEST_F(SharedReceiveQueueTest, ForgetsWhoWaitsNoLonger) {
    one.take();
    {
        Pair gone{*queue};
        gone.take();
        two.take();
    }
    one.ReceiveWaiter::stop_waiting();
    ASSERT_TRUE(queue->post({7, {}}));
    EXPECT_EQ(one.got, Ids{});
    EXPECT_EQ(two.got, Ids{7});
}

TEST_F(SharedReceiveQueueTest, HasRoomAgainForWhatIsGivenBack) {
    for (std::uint64_t id = 0; id < capacity; ++id) ASSERT_TRUE(queue->post({id, {}}));
    one.take();
    auto refused = queue->post({9, {}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), (Error{.code = Code::exhausted, .where = capacity}));
    queue->give_back(*one.slot);
    EXPECT_TRUE(queue->post({9, {}}));
}

TEST_F(SharedReceiveQueueTest, RaisesItsEventOnceAndAsSoonAsItIsBelowTheMark) {
    for (std::uint64_t id = 0; id < capacity; ++id) ASSERT_TRUE(queue->post({id, {}}));
    ASSERT_TRUE(queue->set_low_water(3));
    one.take();
    EXPECT_EQ(low_events(), 0u) << "three are left";
    one.take();
    EXPECT_EQ(low_events(), 1u);
    one.take();
    one.take();
    EXPECT_EQ(low_events(), 1u);
    ASSERT_TRUE(queue->set_low_water(1));
    EXPECT_EQ(low_events(), 2u) << "it is below the new mark already";
}

TEST_F(SharedReceiveQueueTest, CountsWhatAWaitingOneTakesAtOnce) {
    ASSERT_TRUE(queue->post({1, {}}));
    ASSERT_TRUE(queue->set_low_water(1));
    one.take();
    EXPECT_EQ(low_events(), 1u);
    two.take();
    ASSERT_TRUE(queue->post({2, {}}));
    ASSERT_TRUE(queue->set_low_water(1));
    EXPECT_EQ(low_events(), 2u) << "what was posted went straight to who waited";
}

TEST_F(SharedReceiveQueueTest, RaisesNothingWithoutAMark) {
    ASSERT_TRUE(queue->set_low_water(2));
    EXPECT_EQ(low_events(), 1u);
    ASSERT_TRUE(queue->set_low_water(0));
    ASSERT_TRUE(queue->post({1, {}}));
    one.take();
    EXPECT_EQ(low_events(), 1u);
}

TEST_F(SharedReceiveQueueTest, RefusesAMarkItCannotReach) {
    auto refused = queue->set_low_water(capacity + 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), (Error{.code = Code::out_of_range, .where = capacity}));
}

TEST_F(SharedReceiveQueueTest, IsNotNamedByAnEventThatOutlivesIt) {
    ASSERT_TRUE(queue->set_low_water(1));
    queue.reset();
    world.advance({});
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].receives, nullptr);
}

}  // namespace
}  // namespace weft::verbs
