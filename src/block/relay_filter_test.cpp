// SPDX-License-Identifier: Apache-2.0
// The rules of RelayFilter that its kinds share, seen through the one that says every request.
#include "block/relay_filter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "support/test_disk.hpp"
#include "support/test_request.hpp"

namespace weft::block {
namespace {

using test::TestDisk;
using test::TestRequest;
using Answers = test::TestDisk::Answers;

class Plain final : public RelayFilter {
public:
    using RelayFilter::RelayFilter;
};

std::vector<std::unique_ptr<TestRequest>> flushes(std::size_t count) {
    std::vector<std::unique_ptr<TestRequest>> requests;
    for (std::size_t i = 0; i < count; ++i)
        requests.push_back(std::make_unique<TestRequest>(BlockOperation::flush, 0, 0));
    return requests;
}

TEST(RelayFilter, LetsTheRestWaitWhenItsPlacesAreTaken) {
    TestDisk disk(4096, Answers::when_told);
    Plain filter(disk, 3);
    auto requests = flushes(10);
    for (auto& request : requests) filter.submit(*request);
    EXPECT_EQ(disk.held(), 3u);
    disk.answer(1);
    EXPECT_EQ(disk.held(), 3u);
    EXPECT_TRUE(requests[1]->succeeded());
    EXPECT_FALSE(requests[0]->outcome);
    disk.answer_all();
    for (auto& request : requests) EXPECT_TRUE(request->succeeded());
}

TEST(RelayFilter, SendsDownInTheOrderRequestsCame) {
    TestDisk disk(4096, Answers::when_told);
    Plain filter(disk, 1);
    auto requests = flushes(5);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        requests[i]->then = [&order, i] { order.push_back(i); };
        filter.submit(*requests[i]);
    }
    disk.answer_all();
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(RelayFilter, DoesNotNestWhenALongLineCompletesAtOnce) {
    TestDisk disk(4096, Answers::when_told);
    Plain filter(disk, 1);
    auto requests = flushes(1000);
    std::vector<std::uintptr_t> stack;  // where it stood when each request completed
    for (auto& request : requests) {
        request->then = [&] {
            stack.push_back(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
        };
        filter.submit(*request);
    }
    disk.answer_from_now_on(Answers::at_once);
    disk.answer();
    for (auto& request : requests) ASSERT_TRUE(request->succeeded());
    auto [lowest, highest] = std::ranges::minmax(stack);
    EXPECT_LT(highest - lowest, 4096u) << "the stack grows with the line";
}

TEST(RelayFilter, TakesRequestsFromInsideACompletion) {
    TestDisk disk(4096, Answers::when_told);
    Plain filter(disk, 1);
    auto requests = flushes(3);
    requests[0]->then = [&] { filter.submit(*requests[2]); };
    filter.submit(*requests[0]);
    filter.submit(*requests[1]);
    disk.answer_all();
    for (auto& request : requests) EXPECT_TRUE(request->succeeded());
}

TEST(RelayFilter, MayBeDestroyedByTheLastCompletion) {
    for (auto answers : {Answers::at_once, Answers::when_told}) {
        TestDisk disk(4096, answers);
        auto filter = std::make_unique<Plain>(disk, 1);
        TestRequest request(BlockOperation::flush, 0, 0);
        request.then = [&] { filter.reset(); };
        filter->submit(request);
        disk.answer_all();
        EXPECT_TRUE(request.succeeded());
        EXPECT_FALSE(filter);
    }
}

TEST(RelayFilterDeathTest, MustBeEmptyWhenDestroyed) {
    auto leave_one = [] {
        TestDisk disk(4096, Answers::when_told);
        Plain filter(disk, 1);
        TestRequest request(BlockOperation::flush, 0, 0);
        filter.submit(request);
    };
    EXPECT_DEATH(leave_one(), "this must hold");
}

}  // namespace
}  // namespace weft::block
