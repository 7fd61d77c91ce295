// SPDX-License-Identifier: Apache-2.0
#include "block/patient_filter.hpp"

#include <gtest/gtest.h>

#include "block/error_filter.hpp"
#include "support/manual_world.hpp"
#include "support/test_disk.hpp"
#include "support/test_request.hpp"

namespace weft::block {
namespace {

using namespace std::chrono_literals;
using test::TestRequest;

struct AFullDisk : testing::Test {
    test::ManualWorld world;
    test::TestDisk disk{65536};
    ErrorFilter room{disk};
    PatientFilter filter{room, world};
    std::string heard;

    AFullDisk() {
        filter.be_patient();
        filter.on_change([this](bool full) { heard += full ? 'f' : '.'; });
        EXPECT_TRUE(room.add({.operation = BlockOperation::write,
                              .range = ErrorRule::Range{4096, 4096},
                              .error = {.code = Code::exhausted}}));
    }
};

TEST_F(AFullDisk, HoldsWritesUntilThereIsRoom) {
    TestRequest first(BlockOperation::write, 4096, 512), second(BlockOperation::write, 8000, 512);
    filter.submit(first);
    filter.submit(second);
    world.advance(10s);
    EXPECT_FALSE(first.done() || second.done());
    EXPECT_TRUE(filter.is_full());
    EXPECT_EQ(heard, "f") << "told once, however often it is tried";
    room.clear();
    world.advance(1s);
    EXPECT_TRUE(first.succeeded() && second.succeeded());
    EXPECT_FALSE(filter.is_full());
    EXPECT_EQ(heard, "f.");
    world.advance(1s);
    EXPECT_FALSE(world.anything_set());
}

TEST_F(AFullDisk, DoesAllElseMeanwhile) {
    std::vector<std::unique_ptr<TestRequest>> waiting;
    for (std::size_t i = 0; i < 2 * relay_places; ++i)
        filter.submit(
            *waiting.emplace_back(std::make_unique<TestRequest>(BlockOperation::write, 4096, 512)));
    TestRequest read(BlockOperation::read, 4096, 512), flush(BlockOperation::flush, 0, 0);
    filter.submit(read);
    filter.submit(flush);
    EXPECT_TRUE(read.succeeded() && flush.succeeded());
    room.clear();
    world.advance(1s);
    for (auto& each : waiting) EXPECT_TRUE(each->succeeded());
}

TEST_F(AFullDisk, WaitsForNothingElse) {
    room.clear();
    ASSERT_TRUE(room.add({.error = {.code = Code::io_failed}}));
    TestRequest write(BlockOperation::write, 0, 512);
    filter.submit(write);
    EXPECT_EQ(write.failure(), Code::io_failed);
    room.clear();
    ASSERT_TRUE(room.add({.error = {.code = Code::exhausted}}));
    TestRequest flush(BlockOperation::flush, 0, 0);
    filter.submit(flush);
    EXPECT_EQ(flush.failure(), Code::exhausted) << "what it was for may be lost already";
}

TEST_F(AFullDisk, TellsWhoCanAskAgain) {
    filter.be_patient({.begin = 4096, .end = 65536});
    TestRequest refused(BlockOperation::write, 4096, 512), elsewhere(BlockOperation::write, 0, 512),
        again(BlockOperation::write, 4096, 512);
    filter.submit(refused);
    EXPECT_EQ(refused.failure(), Code::exhausted);
    EXPECT_TRUE(filter.is_full());
    filter.submit(elsewhere);
    EXPECT_TRUE(elsewhere.succeeded());
    EXPECT_TRUE(filter.is_full()) << "it had its room already";
    room.clear();
    filter.submit(again);
    EXPECT_TRUE(again.succeeded());
    EXPECT_FALSE(filter.is_full());
    EXPECT_EQ(heard, "f.");
}

TEST_F(AFullDisk, IsGivenUpWhenPatienceEnds) {
    TestRequest write(BlockOperation::write, 4096, 512), later(BlockOperation::write, 4096, 512);
    filter.submit(write);
    filter.give_up();
    EXPECT_EQ(write.failure(), Code::exhausted);
    filter.submit(later);
    EXPECT_EQ(later.failure(), Code::exhausted);
    EXPECT_EQ(heard, "f.");
}

}  // namespace
}  // namespace weft::block
