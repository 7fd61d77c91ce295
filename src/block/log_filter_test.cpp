// SPDX-License-Identifier: Apache-2.0
#include "block/log_filter.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/test_disk.hpp"
#include "support/test_request.hpp"

namespace weft::block {
namespace {

using test::TestDisk;
using test::TestRequest;

struct Logged : testing::Test {
    TestDisk disk{65536, TestDisk::Answers::at_once};
    std::vector<std::string> lines;
    LogFilter filter{disk, [this](std::string_view line) { lines.emplace_back(line); }};

    void submit(BlockOperation operation, std::uint64_t at, std::uint64_t count) {
        TestRequest request(operation, at, count);
        filter.submit(request);
    }
};
using LogFilterTest = Logged;

TEST_F(LogFilterTest, SaysWhatWasAskedAndHowItEnded) {
    submit(BlockOperation::read, 8192, 512);
    submit(BlockOperation::write, 0, 4096);
    submit(BlockOperation::flush, 0, 0);
    submit(BlockOperation::trim, 4096, 4096);
    submit(BlockOperation::prefetch, 0, 1);
    submit(BlockOperation::read, 65536, 1);
    EXPECT_EQ(lines, (std::vector<std::string>{
                         "read 512 bytes at 8192: done",
                         "write 4096 bytes at 0: done",
                         "flush: done",
                         "trim 4096 bytes at 4096: done",
                         "prefetch 1 bytes at 0: done",
                         "read 1 bytes at 65536: this lies outside the device",
                     }));
}

TEST_F(LogFilterTest, NamesTheWishesOfARequest) {
    TestRequest request(BlockOperation::write_zeroes, ~0ull, ~0ull);
    request.durable = request.keep_space = request.fast_only = true;
    filter.submit(request);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0],
              "write zeroes 18446744073709551615 bytes at 18446744073709551615, durable, keeping "
              "space, only if fast: this lies outside the device");
}

TEST_F(LogFilterTest, SpeaksWhenARequestCompletesAndBeforeItsMakerHears) {
    disk.answer_from_now_on(TestDisk::Answers::when_told);
    TestRequest request(BlockOperation::flush, 0, 0);
    std::size_t lines_when_heard = 0;
    request.then = [&] { lines_when_heard = lines.size(); };
    filter.submit(request);
    EXPECT_TRUE(lines.empty());
    disk.answer();
    EXPECT_EQ(lines_when_heard, 1u);
}

TEST_F(LogFilterTest, PassesDataAndMemoryThrough) {
    ASSERT_TRUE(test::write_text(filter, 16, "warp"));
    EXPECT_EQ(test::read_text(disk, 16, 4), "warp");
    EXPECT_EQ(filter.lend(BlockOperation::read, 0, 8).data(),
              disk.lend(BlockOperation::read, 0, 8).data());
}

}  // namespace
}  // namespace weft::block
