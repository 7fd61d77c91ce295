// SPDX-License-Identifier: Apache-2.0
#include "block/hang_filter.hpp"

#include <gtest/gtest.h>

#include "support/held_disk.hpp"
#include "support/manual_world.hpp"
#include "support/test_disk.hpp"
#include "support/test_request.hpp"

namespace weft::block {
namespace {

using namespace std::chrono_literals;
using test::TestRequest;

struct ADiskThatHangs : testing::Test {
    test::ManualWorld world;
    test::TestDisk under{65536};
    test::HeldDisk disk{under};
    HangFilter filter{disk, world, 30s};
    std::string heard;

    ADiskThatHangs() {
        filter.on_change([this](bool hangs) { heard += hangs ? 'h' : '.'; });
    }
};

TEST_F(ADiskThatHangs, IsNoticedWhenItsOldestRequestHasTakenTooLong) {
    TestRequest first(BlockOperation::read, 0, 512), second(BlockOperation::flush, 0, 0);
    filter.submit(first);
    world.advance(10s);
    filter.submit(second);
    world.advance(10s);
    disk.let_go(0);
    EXPECT_TRUE(first.succeeded());
    world.advance(20s - 1ns);
    EXPECT_EQ(heard, "");
    world.advance(1ns);
    EXPECT_EQ(heard, "h");
    EXPECT_TRUE(filter.hangs());
    EXPECT_FALSE(second.done()) << "its memory is the disk's until that answers";
    disk.let_go(0);
    EXPECT_TRUE(second.succeeded());
    world.advance(0s);
    EXPECT_EQ(heard, "h.");
    EXPECT_FALSE(world.anything_set());
}

TEST_F(ADiskThatHangs, HangsUntilNoRequestHasTakenTooLong) {
    TestRequest first(BlockOperation::read, 0, 512), second(BlockOperation::read, 0, 512);
    filter.submit(first);
    filter.submit(second);
    world.advance(31s);
    disk.let_go(0);
    world.advance(1s);
    EXPECT_EQ(heard, "h");
    disk.let_go(0);
    world.advance(1s);
    EXPECT_EQ(heard, "h.");
}

TEST_F(ADiskThatHangs, CostsNoTimerWhileItIsIdle) {
    disk.holding = false;
    for (int i = 0; i < 100; ++i) {
        TestRequest read(BlockOperation::read, 0, 512);
        filter.submit(read);
        EXPECT_TRUE(read.succeeded());
        EXPECT_FALSE(world.anything_set());
    }
}

TEST_F(ADiskThatHangs, LetsMoreRequestsWaitThanItHasPlacesFor) {
    std::vector<std::unique_ptr<TestRequest>> reads;
    for (std::size_t i = 0; i < 2 * hang_places; ++i)
        filter.submit(
            *reads.emplace_back(std::make_unique<TestRequest>(BlockOperation::read, 0, 512)));
    EXPECT_EQ(disk.held.size(), hang_places);
    disk.let_all_go();
    for (const auto& read : reads) EXPECT_TRUE(read->succeeded());
    EXPECT_FALSE(world.anything_set());
}

}  // namespace
}  // namespace weft::block
