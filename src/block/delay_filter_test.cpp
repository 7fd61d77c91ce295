// SPDX-License-Identifier: Apache-2.0
#include "block/delay_filter.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/manual_world.hpp"
#include "support/test_disk.hpp"
#include "support/test_request.hpp"

namespace weft::block {
namespace {

using namespace std::chrono_literals;
using test::ManualWorld;
using test::TestDisk;
using test::TestRequest;

TEST(DelayFilter, HoldsARequestForItsTimeAndNoLonger) {
    ManualWorld world;
    TestDisk disk(4096);
    DelayFilter filter(disk, world, 5ms);
    TestRequest request(BlockOperation::flush, 0, 0);
    filter.submit(request);
    world.advance(5ms - 1ns);
    EXPECT_EQ(disk.submitted, 0);
    world.advance(1ns);
    EXPECT_TRUE(request.succeeded());
    EXPECT_FALSE(world.anything_set());
}

TEST(DelayFilter, HoldsEachFromItsOwnBeginning) {
    ManualWorld world;
    TestDisk disk(4096);
    DelayFilter filter(disk, world, 5ms);
    TestRequest first(BlockOperation::flush, 0, 0), second(BlockOperation::flush, 0, 0);
    filter.submit(first);
    world.advance(3ms);
    filter.submit(second);
    world.advance(2ms);
    EXPECT_TRUE(first.succeeded());
    EXPECT_FALSE(second.outcome);
    world.advance(3ms);
    EXPECT_TRUE(second.succeeded());
}

TEST(DelayFilter, KeepsTheOrder) {
    ManualWorld world;
    TestDisk disk(4096);
    DelayFilter filter(disk, world, 1ms);
    std::vector<std::unique_ptr<TestRequest>> requests;
    std::vector<int> order;
    for (int i = 0; i < 10; ++i) {
        requests.push_back(std::make_unique<TestRequest>(BlockOperation::flush, 0, 0));
        requests.back()->then = [&order, i] { order.push_back(i); };
        filter.submit(*requests.back());
    }
    world.advance(1ms);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(DelayFilter, NeverAnswersFromInsideSubmit) {
    ManualWorld world;
    TestDisk disk(4096);
    for (auto delay : {Duration(0), Duration(-1)}) {
        DelayFilter filter(disk, world, delay);
        TestRequest request(BlockOperation::flush, 0, 0);
        filter.submit(request);
        EXPECT_FALSE(request.outcome);
        world.advance(0ns);
        EXPECT_TRUE(request.succeeded());
    }
}

TEST(DelayFilter, LetsTheRestWaitForAPlace) {
    ManualWorld world;
    TestDisk disk(4096);
    DelayFilter filter(disk, world, 1ms);
    std::vector<std::unique_ptr<TestRequest>> requests;
    for (std::size_t i = 0; i < delay_places + 10; ++i) {
        requests.push_back(std::make_unique<TestRequest>(BlockOperation::flush, 0, 0));
        filter.submit(*requests.back());
    }
    world.advance(1ms);
    EXPECT_EQ(disk.submitted, static_cast<int>(delay_places));
    EXPECT_FALSE(requests.back()->outcome);
    world.advance(1ms);
    for (auto& request : requests) EXPECT_TRUE(request->succeeded());
}

TEST(DelayFilter, TakesRequestsFromInsideACompletion) {
    ManualWorld world;
    TestDisk disk(4096);
    DelayFilter filter(disk, world, 1ms);
    TestRequest first(BlockOperation::flush, 0, 0), second(BlockOperation::flush, 0, 0);
    first.then = [&] { filter.submit(second); };
    filter.submit(first);
    world.advance(1ms);
    EXPECT_TRUE(first.succeeded());
    EXPECT_FALSE(second.outcome);
    world.advance(1ms);
    EXPECT_TRUE(second.succeeded());
}

TEST(DelayFilter, ChangesNothingElse) {
    ManualWorld world;
    TestDisk disk(4096);
    DelayFilter filter(disk, world, 1ms);
    EXPECT_EQ(filter.traits().size, 4096u);
    EXPECT_EQ(filter.lend(BlockOperation::write, 8, 8).data(),
              disk.lend(BlockOperation::write, 8, 8).data());
    TestRequest outside(BlockOperation::read, 4096, 1);
    filter.submit(outside);
    world.advance(1ms);
    EXPECT_EQ(outside.failure(), Code::out_of_range);
}

}  // namespace
}  // namespace weft::block
