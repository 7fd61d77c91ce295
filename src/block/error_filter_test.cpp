// SPDX-License-Identifier: Apache-2.0
#include "block/error_filter.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/test_disk.hpp"
#include "support/test_request.hpp"

namespace weft::block {
namespace {

using test::TestDisk;
using test::TestRequest;

struct Faulty : testing::Test {
    TestDisk disk{65536};
    ErrorFilter filter{disk};

    void add(const ErrorRule& rule) { ASSERT_TRUE(filter.add(rule)); }
    /// The code the request fails with, if it does.
    std::optional<Code> failure(BlockOperation operation, std::uint64_t at, std::uint64_t count) {
        TestRequest request(operation, at, count);
        filter.submit(request);
        EXPECT_TRUE(request.outcome);
        return request.failure();
    }
    /// One letter per request: x failed, - passed.
    std::string pattern(int count) {
        std::string letters;
        for (int i = 0; i < count; ++i)
            letters += failure(BlockOperation::read, 0, 512) ? 'x' : '-';
        return letters;
    }
};
using ErrorFilterTest = Faulty;

TEST_F(ErrorFilterTest, PassesEverythingWithoutRules) {
    EXPECT_EQ(pattern(3), "---");
    EXPECT_EQ(disk.submitted, 3);
}

TEST_F(ErrorFilterTest, FailsOneKindOfOperation) {
    add({.operation = BlockOperation::write, .error = {.code = Code::exhausted}});
    EXPECT_EQ(failure(BlockOperation::write, 0, 512), Code::exhausted);
    EXPECT_EQ(failure(BlockOperation::read, 0, 512), std::nullopt);
    EXPECT_EQ(disk.submitted, 1) << "a request that failed must not reach the disk";
}

TEST_F(ErrorFilterTest, FailsWhateverTouchesARange) {
    add({.range = ErrorRule::Range{4096, 512}});
    EXPECT_EQ(failure(BlockOperation::read, 4095, 1), std::nullopt);
    EXPECT_EQ(failure(BlockOperation::read, 4095, 2), Code::io_failed);
    EXPECT_EQ(failure(BlockOperation::read, 0, 65536), Code::io_failed);
    EXPECT_EQ(failure(BlockOperation::read, 4607, 10), Code::io_failed);
    EXPECT_EQ(failure(BlockOperation::read, 4608, 10), std::nullopt);
    EXPECT_EQ(failure(BlockOperation::trim, 4200, 0), std::nullopt);
    EXPECT_EQ(failure(BlockOperation::flush, 0, 0), std::nullopt) << "a flush has no range";
}

TEST_F(ErrorFilterTest, IsNotFooledByOverflow) {
    add({.range = ErrorRule::Range{4096, ~0ull}});
    EXPECT_EQ(failure(BlockOperation::read, 8192, 1), Code::io_failed);
    EXPECT_EQ(failure(BlockOperation::trim, 0, ~0ull), Code::io_failed);
    EXPECT_EQ(failure(BlockOperation::read, 0, 4096), std::nullopt);
}

TEST_F(ErrorFilterTest, FailsEveryThird) {
    add({.every = 3});
    EXPECT_EQ(pattern(9), "--x--x--x");
}

TEST_F(ErrorFilterTest, FailsTheNextTwo) {
    add({.times = 2});
    EXPECT_EQ(pattern(5), "xx---");
}

TEST_F(ErrorFilterTest, FailsEverySecondTwice) {
    add({.every = 2, .times = 2});
    EXPECT_EQ(pattern(8), "-x-x----");
}

TEST_F(ErrorFilterTest, AsksRulesInOrder) {
    add({.times = 1, .error = {.code = Code::timed_out}});
    add({.every = 2, .error = {.code = Code::io_failed}});
    EXPECT_EQ(failure(BlockOperation::read, 0, 1), Code::timed_out);
    EXPECT_EQ(failure(BlockOperation::read, 0, 1), std::nullopt);
    EXPECT_EQ(failure(BlockOperation::read, 0, 1), Code::io_failed);
    filter.clear();
    EXPECT_EQ(pattern(4), "----");
}

TEST_F(ErrorFilterTest, HoldsABoundedNumberOfRules) {
    for (std::size_t i = 0; i < error_rules_max; ++i) add({.times = 0});
    EXPECT_EQ(filter.add({}).error().code, Code::exhausted);
    EXPECT_EQ(filter.add({.every = 0}).error().code, Code::malformed);
    EXPECT_EQ(pattern(2), "--");
}

TEST_F(ErrorFilterTest, LendsForReadingOnly) {
    EXPECT_EQ(filter.lend(BlockOperation::read, 0, 16).data(),
              disk.lend(BlockOperation::read, 0, 16).data());
    EXPECT_FALSE(filter.lend(BlockOperation::read, 0, 16).empty());
    EXPECT_TRUE(filter.lend(BlockOperation::write, 0, 16).empty());
}

}  // namespace
}  // namespace weft::block
