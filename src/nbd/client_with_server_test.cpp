// SPDX-License-Identifier: Apache-2.0
// Our client against our server, joined by a pipe that moves bytes in random pieces. Random
// requests on a disk in memory, many at a time, and beside it a vector that says what must be read.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "nbd/client.hpp"
#include "nbd/server_connection.hpp"
#include "support/engine_pipe.hpp"
#include "support/held_disk.hpp"
#include "support/test_request.hpp"

namespace weft::nbd {
namespace {

using test::Bytes;
using test::TestRequest;

/// Requests under way at a time may be done in any order, so each keeps to a region of its own.
constexpr std::uint64_t region_size = 10'001;
constexpr std::uint64_t region_count = 150;  // more than the server takes at a time
constexpr std::uint64_t disk_size = region_size * region_count;

class Pair {
public:
    explicit Pair(std::uint32_t seed)
        : chance_(seed), disk_(memory_), pipe_(client_, server_, seed) {
        disk_.holding = false;
        disk_.lending = seed % 2 == 0;
        disk_.shown.read_only = false;
        EXPECT_TRUE(exports_.add({"disk", "", &disk_, false}).has_value());
        for (std::uint64_t i = 0; i < region_count; ++i) free_.push_back(i);
        disk_.holding = seed % 3 == 0;
    }

    void work(int rounds) {
        for (int i = 0; i < rounds && !testing::Test::HasFailure(); ++i) {
            for (auto count = chance_() % 40; count > 0 && !free_.empty(); --count) submit_one();
            pipe_.run(chance_() % 2000);
            while (disk_.held.size() > chance_() % 40) disk_.let_go(chance_() % disk_.held.size());
        }
    }
    void settle() {
        do {
            disk_.let_all_go();
            pipe_.run(~std::size_t{0});
        } while (!disk_.held.empty());
    }
    void expect_all_good() {
        for (const auto& one : jobs_) ASSERT_TRUE(one.request.succeeded());
        ASSERT_TRUE(test::contents(memory_) == expected_);
        EXPECT_EQ(opened_, 1);
    }
    void leave() {
        client_.disconnect();
        settle();
        EXPECT_TRUE(pipe_.closed());
        EXPECT_EQ(gone_, 1);
        EXPECT_EQ(server_.fault(), std::nullopt);
    }
    void lose_the_network() {
        pipe_.cut();
        for (const auto& one : jobs_) EXPECT_TRUE(one.request.done());
        disk_.let_all_go();
        EXPECT_EQ(gone_, 1);
    }
    const Statistics& statistics() const { return statistics_; }

private:
    struct Job {
        TestRequest request;
        std::uint64_t region = 0;
        Bytes memory;
        std::array<Buffer, 2> pieces;
        std::array<Extent, 6> extents;
    };

    void submit_one() {
        Job& job = jobs_.emplace_back();
        std::swap(free_[chance_() % free_.size()], free_.back());
        job.region = free_.back();
        free_.pop_back();
        auto& request = job.request;
        auto skip = chance_() % region_size;
        request.offset = job.region * region_size + skip;
        request.length = chance_() % (region_size - skip + 1);
        constexpr BlockOperation operations[] = {
            BlockOperation::read,         BlockOperation::read,  BlockOperation::write,
            BlockOperation::write,        BlockOperation::trim,  BlockOperation::status,
            BlockOperation::write_zeroes, BlockOperation::flush, BlockOperation::prefetch};
        request.operation = operations[chance_() % std::size(operations)];
        request.durable = chance_() % 4 == 0;
        request.keep_space = chance_() % 4 == 0;
        request.fast_only = chance_() % 4 == 0;
        request.then = [this, &job] { finish(job); };
        prepare(job);
        client_.submit(request);
    }
    void prepare(Job& job) {
        auto& request = job.request;
        auto here = expected_.begin() + static_cast<std::ptrdiff_t>(request.offset);
        auto length = static_cast<std::ptrdiff_t>(request.length);
        switch (request.operation) {
            case BlockOperation::write:
                std::generate(here, here + length,
                              [&] { return static_cast<std::byte>(chance_()); });
                job.memory.assign(here, here + length);
                break;
            case BlockOperation::read:
                job.memory.assign(request.length, std::byte{0xcc});
                break;
            case BlockOperation::trim:
            case BlockOperation::write_zeroes:
                std::fill(here, here + length, std::byte{0});
                break;
            case BlockOperation::status:
                request.length = std::max<std::uint64_t>(request.length, 1);
                request.offset = std::min(request.offset, disk_size - request.length);
                request.extents = job.extents;
                break;
            default:
                break;
        }
        auto cut = job.memory.empty() ? 0 : chance_() % job.memory.size();
        job.pieces = {Buffer(job.memory).first(cut), Buffer(job.memory).subspan(cut)};
        request.memory = job.pieces;
    }
    void finish(Job& job) {
        auto& request = job.request;
        free_.push_back(job.region);
        if (!request.succeeded()) return;
        if (request.operation == BlockOperation::read) {
            EXPECT_TRUE(
                std::equal(job.memory.begin(), job.memory.end(),
                           expected_.begin() + static_cast<std::ptrdiff_t>(request.offset)));
        }
        if (request.operation == BlockOperation::status) {
            ASSERT_GT(request.extent_count, 0u);
            std::uint64_t covered = 0;
            for (const auto& extent : request.extents.first(request.extent_count))
                covered += extent.length;
            EXPECT_LE(covered, request.length);
        }
    }

    std::mt19937 chance_;
    block::MemoryDisk memory_{std::make_unique<block::HeapMemory>(disk_size), disk_size};
    test::HeldDisk disk_;
    Exports exports_;
    block::BufferPool pool_{
        {.bytes = 256u << 20, .reserve_bytes = 64u << 10, .idle_bytes = 1u << 20}};
    Statistics statistics_;
    int gone_ = 0;
    int opened_ = 0;
    ServerConnection server_{exports_, pool_, statistics_, Instant{}, {[] {}, [this] { ++gone_; }}};
    Client client_{"disk", {[] {}, [this](Result<void> how) { opened_ += how ? 1 : 100; }}};
    test::EnginePipe pipe_;
    Bytes expected_ = Bytes(disk_size);
    std::deque<Job> jobs_;
    std::vector<std::uint64_t> free_;
};

class ClientWithServerTest : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ClientWithServerTest, DoesWhatTheModelDoes) {
    Pair pair(GetParam());
    pair.work(25);
    pair.settle();
    pair.expect_all_good();
    pair.leave();
    EXPECT_GT(pair.statistics().requests, 50u);
    EXPECT_EQ(pair.statistics().refused, 0u);
}

TEST_P(ClientWithServerTest, CompletesEachRequestOnceWhenTheNetworkFails) {
    Pair pair(GetParam());
    pair.work(static_cast<int>(GetParam() % 5));
    pair.lose_the_network();
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClientWithServerTest, testing::Range(1u, 13u));

}  // namespace
}  // namespace weft::nbd
