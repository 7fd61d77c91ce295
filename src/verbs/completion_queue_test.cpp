// SPDX-License-Identifier: Apache-2.0
#include "verbs/completion_queue.hpp"

#include <gtest/gtest.h>

#include <array>

#include "support/manual_world.hpp"

namespace weft::verbs {
namespace {

using Wanted = CompletionQueue::Wanted;

class CompletionQueueTest : public testing::Test {
protected:
    bool push(std::uint64_t id, Status status = Status::success, bool solicited = false) {
        return queue->push({.id = id, .status = status, .solicited = solicited, .queue_pair = 9},
                           nullptr);
    }
    std::vector<std::uint64_t> poll(std::size_t room = 16) {
        std::vector<Completion> into(room);
        std::vector<std::uint64_t> ids;
        for (std::size_t i = 0, count = queue->poll(into); i < count; ++i)
            ids.push_back(into[i].id);
        return ids;
    }
    /// How often notify() was called since the last time it was asked.
    int notified() {
        world.advance({});
        return std::exchange(notified_, 0);
    }

    test::ManualWorld world;
    std::vector<AsyncEvent> events;
    std::shared_ptr<DeviceCore> core = std::make_shared<DeviceCore>(
        world,
        DeviceOptions{.on_event = [this](const AsyncEvent& event) { events.push_back(event); }});
    int notified_ = 0;
    std::shared_ptr<CompletionQueueObject> queue =
        std::make_shared<CompletionQueueObject>(core, 4, [this] { ++notified_; });
};

using Ids = std::vector<std::uint64_t>;

TEST_F(CompletionQueueTest, GivesTheOldestFirstAndAsManyAsFit) {
    EXPECT_EQ(poll(), Ids{});
    for (std::uint64_t id : {3, 1, 2}) ASSERT_TRUE(push(id));
    EXPECT_EQ(poll(0), Ids{});
    EXPECT_EQ(poll(2), (Ids{3, 1}));
    EXPECT_EQ(poll(), Ids{2});
}

TEST_F(CompletionQueueTest, CountsForWhoeverAsksWhatWasNotPolledYet) {
    std::uint32_t ones = 0, others = 0;
    ASSERT_TRUE(queue->push({.id = 1}, &ones));
    ASSERT_TRUE(queue->push({.id = 2}, &others));
    ASSERT_TRUE(queue->push({.id = 3}, &ones));
    EXPECT_EQ(ones, 2u);
    EXPECT_EQ(poll(1), Ids{1});
    EXPECT_EQ(ones, 1u);
    EXPECT_EQ(others, 1u);
    ASSERT_TRUE(queue->resize(8));
    queue->forget(ones);
    EXPECT_EQ(poll(), (Ids{2, 3}));
    EXPECT_EQ(ones, 1u) << "who has gone is not told";
    EXPECT_EQ(others, 0u);
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(push(1));
    EXPECT_FALSE(queue->push({.id = 4}, &others));
    EXPECT_EQ(others, 0u) << "it is lost, and nobody will poll it";
}

TEST_F(CompletionQueueTest, NotifiesNobodyWhoDidNotAsk) {
    push(1);
    EXPECT_EQ(notified(), 0);
}

TEST_F(CompletionQueueTest, NotifiesOnceForTheNextThatComesNotForThoseThatAreThere) {
    push(1);
    queue->arm(Wanted::any);
    EXPECT_EQ(notified(), 0);
    push(2);
    push(3);
    EXPECT_EQ(notified(), 1);
    push(4);
    EXPECT_EQ(notified(), 0) << "it must be asked again";
}

TEST_F(CompletionQueueTest, WaitsForASolicitedOneIfThatIsWanted) {
    queue->arm(Wanted::solicited);
    push(1);
    EXPECT_EQ(notified(), 0);
    push(2, Status::success, true);
    EXPECT_EQ(notified(), 1);
}

TEST_F(CompletionQueueTest, CountsFailuresAsSolicited) {
    for (auto status : {Status::flushed, Status::remote_access, Status::local_length}) {
        queue->arm(Wanted::solicited);
        push(1, status);
        EXPECT_EQ(notified(), 1);
    }
}

TEST_F(CompletionQueueTest, KeepsTheWiderOfTwoWishes) {
    queue->arm(Wanted::any);
    queue->arm(Wanted::solicited);
    push(1);
    EXPECT_EQ(notified(), 1);
    queue->arm(Wanted::solicited);
    queue->arm(Wanted::any);
    push(2);
    EXPECT_EQ(notified(), 1);
}

TEST_F(CompletionQueueTest, MayBeDestroyedByWhomItNotifies) {
    auto token = std::make_shared<int>(7);
    int seen = 0;
    std::shared_ptr<CompletionQueueObject> doomed;
    doomed = std::make_shared<CompletionQueueObject>(core, 4, [&seen, &doomed, token] {
        doomed.reset();
        seen = *token;  // what it holds is still there
    });
    auto* there = doomed.get();
    there->arm(Wanted::any);
    there->push({}, nullptr);
    world.advance({});
    EXPECT_EQ(seen, 7);
    EXPECT_EQ(token.use_count(), 1);
}

TEST_F(CompletionQueueTest, IsSilentOnceItIsGone) {
    queue->arm(Wanted::any);
    push(1);
    queue.reset();
    EXPECT_EQ(notified(), 0);
}

TEST_F(CompletionQueueTest, KeepsWhatItHoldsWhenResized) {
    for (std::uint64_t id = 1; id <= 5; ++id) {  // around the end of the ring
        ASSERT_TRUE(push(id));
        if (id <= 2) poll();
    }
    ASSERT_TRUE(queue->resize(8));
    EXPECT_EQ(queue->capacity(), 8u);
    for (std::uint64_t id = 6; id <= 10; ++id) ASSERT_TRUE(push(id));
    EXPECT_EQ(poll(), (Ids{3, 4, 5, 6, 7, 8, 9, 10}));
    ASSERT_TRUE(queue->resize(1));
    EXPECT_EQ(queue->capacity(), 1u);
}

TEST_F(CompletionQueueTest, IsNotMadeTooSmallForWhatItHoldsNorTooLarge) {
    push(1);
    push(2);
    auto small = queue->resize(1);
    ASSERT_FALSE(small);
    EXPECT_EQ(small.error(), (Error{.code = Code::out_of_range, .where = 2}));
    EXPECT_FALSE(queue->resize(0));
    auto large = queue->resize(limits::completions + 1);
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error(), (Error{.code = Code::out_of_range, .where = limits::completions}));
    EXPECT_EQ(queue->capacity(), 4u);
    EXPECT_EQ(poll(), (Ids{1, 2}));
}

TEST_F(CompletionQueueTest, SaysOnceThatItOverflowed) {
    for (std::uint64_t id = 1; id <= 4; ++id) ASSERT_TRUE(push(id));
    EXPECT_FALSE(push(5));
    EXPECT_FALSE(push(6));
    world.advance({});
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].kind, AsyncEvent::Kind::completions_overflowed);
    EXPECT_EQ(events[0].completions, queue.get());
    EXPECT_EQ(events[0].queue_pair, 9u);
    EXPECT_EQ(poll(), (Ids{1, 2, 3, 4}));
}

TEST_F(CompletionQueueTest, IsNotNamedByAnEventThatOutlivesIt) {
    for (std::uint64_t id = 1; id <= 5; ++id) push(id);
    queue.reset();
    world.advance({});
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].completions, nullptr);
}

}  // namespace
}  // namespace weft::verbs
