// SPDX-License-Identifier: Apache-2.0
#include "verbs/receive_queue.hpp"

#include <gtest/gtest.h>

#include <array>

namespace weft::verbs {
namespace {

constexpr std::size_t capacity = 3, pieces = 2;

class ReceiveQueueTest : public testing::Test {
protected:
    Result<void> post(std::uint64_t id) {
        std::array local{LocalMemory{id, 8, SteeringTag{0x100}}};
        return queue.post({id, local});
    }
    ReceiveQueue queue{capacity, pieces};
};

TEST_F(ReceiveQueueTest, GivesTheOldestFirst) {
    EXPECT_EQ(queue.take(), nullptr);
    for (std::uint64_t id : {5, 4}) ASSERT_TRUE(post(id));
    EXPECT_EQ(queue.posted(), 2u);
    EXPECT_EQ(queue.take()->receive.id, 5u);
    EXPECT_EQ(queue.take()->receive.id, 4u);
    EXPECT_EQ(queue.take(), nullptr);
}

TEST_F(ReceiveQueueTest, RefusesWhatItHasNoRoomForAndCountsTheTakenToo) {
    for (std::uint64_t id = 0; id < capacity; ++id) ASSERT_TRUE(post(id));
    auto* taken = queue.take();
    auto refused = post(9);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), (Error{.code = Code::exhausted, .where = capacity}));
    queue.give_back(*taken);
    EXPECT_TRUE(post(9));
}

TEST_F(ReceiveQueueTest, RefusesMorePiecesThanItWasMadeFor) {
    std::array<LocalMemory, pieces + 1> local{};
    auto refused = queue.post({1, local});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), (Error{.code = Code::out_of_range, .where = pieces}));
    EXPECT_EQ(queue.posted(), 0u);
}

TEST_F(ReceiveQueueTest, RefusesMoreThanAMessageCanHave) {
    std::array local{LocalMemory{0, 0xffff'ffff, {}}, LocalMemory{0, 1, {}}};
    auto refused = queue.post({1, local});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::out_of_range);
}

TEST_F(ReceiveQueueTest, CopiesThePiecesAndKeepsThemUntilTheReceiveIsGivenBack) {
    {
        std::array local{LocalMemory{1, 2, SteeringTag{3}}, LocalMemory{4, 5, SteeringTag{6}}};
        ASSERT_TRUE(queue.post({1, local}));
    }
    auto& taken = queue.take()->receive;
    for (std::uint64_t id = 1; id < capacity; ++id) ASSERT_TRUE(post(id + 100));
    ASSERT_EQ(taken.local.size(), 2u);
    EXPECT_EQ(taken.local[0].address, 1u);
    EXPECT_EQ(taken.local[1].address, 4u);
    EXPECT_EQ(taken.local[1].tag, SteeringTag{6});
}

TEST_F(ReceiveQueueTest, TakesReceivesOfNoBytes) {
    ASSERT_TRUE(queue.post({7, {}}));
    EXPECT_TRUE(queue.take()->receive.local.empty());
}

TEST_F(ReceiveQueueTest, UsesItsPlacesAgainInWhateverOrderTheyComeBack) {
    std::uint64_t posted = 0, taken = 0;
    std::vector<ReceiveQueue::Slot*> out;
    for (int round = 0; round < 1000; ++round) {
        while (post(posted)) ++posted;
        while (auto* slot = queue.take()) {
            ASSERT_EQ(slot->receive.id, taken);
            ASSERT_EQ(slot->receive.local[0].address, taken++);
            out.push_back(slot);
        }
        auto keep = static_cast<std::size_t>(round) % capacity;
        while (out.size() > keep) queue.give_back(*out.back()), out.pop_back();
    }
    EXPECT_GT(taken, 1000u);
}

TEST(ReceiveQueue, OfNoRoomRefusesEverything) {
    ReceiveQueue none(0, 4);
    auto refused = none.post({1, {}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::exhausted);
    EXPECT_EQ(none.take(), nullptr);
}

}  // namespace
}  // namespace weft::verbs
