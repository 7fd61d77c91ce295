// SPDX-License-Identifier: Apache-2.0
#include "sim/disk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <memory>
#include <set>
#include <string>

#include "sim/world.hpp"
#include "support/seeds.hpp"
#include "support/test_request.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::for_each_seed;
using test::TestRequest;

constexpr std::uint64_t plenty = 1'000'000;  // events

/// One disk of one mebibyte, and a device open on it.
struct Bench {
    explicit Bench(std::uint64_t seed, const DiskSpec& spec = {})
        : world(seed), disk(world.make_disk("disk", spec)) {
        reopen();
    }
    void reopen() {
        device.reset();
        device = std::move(*world.open_disk({.path = "disk"}));
    }

    Result<void> run(TestRequest& request) {
        device->submit(request);
        EXPECT_TRUE(world.run_until_quiet(plenty));
        return request.outcome.value();
    }
    Result<void> write(std::uint64_t offset, std::uint64_t length, int fill, bool durable = false) {
        TestRequest request(BlockOperation::write, offset, length);
        std::fill(request.octets.begin(), request.octets.end(), static_cast<std::byte>(fill));
        request.durable = durable;
        return run(request);
    }
    Result<void> simple(BlockOperation operation, std::uint64_t offset, std::uint64_t length) {
        TestRequest request(operation, offset, length);
        return run(request);
    }
    Result<void> flush() { return simple(BlockOperation::flush, 0, 0); }

    /// One character per sector: its fill as a digit, or '?' if it is not all the same.
    std::string read(std::uint64_t offset, std::uint64_t length) {
        TestRequest request(BlockOperation::read, offset, length);
        if (!run(request)) return "error";
        std::string digits;
        for (auto at = request.octets.begin(); at != request.octets.end(); at += sector_bytes) {
            bool same = std::all_of(at, at + sector_bytes, [&](std::byte b) { return b == *at; });
            digits += same ? static_cast<char>('0' + std::to_integer<int>(*at)) : '?';
        }
        return digits;
    }

    World world;
    Disk& disk;
    std::unique_ptr<BlockDevice> device;
};

TEST(Disk, IsFoundByItsName) {
    World world(1);
    auto missing = world.open_disk({.path = "no such disk"});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::not_found);
    world.make_disk("disk", {.size = 4096});
    auto found = world.open_disk({.path = "disk", .read_only = true});
    ASSERT_TRUE(found);
    EXPECT_EQ((*found)->traits().size, 4096u);
    EXPECT_TRUE((*found)->traits().read_only);
}

TEST(Disk, ReadsBackWhatWasWritten) {
    Bench bench(1);
    EXPECT_EQ(bench.read(0, 1024), "00");
    EXPECT_TRUE(bench.write(512, 1024, 7));
    EXPECT_EQ(bench.read(0, 2048), "0770");
}

TEST(Disk, GathersAndScattersInPieces) {
    Bench bench(1);
    TestRequest write(BlockOperation::write, 0, 1024), read(BlockOperation::read, 0, 1024);
    for (std::size_t i = 0; i < 1024; ++i) write.octets[i] = static_cast<std::byte>(i * 3);
    std::array written{Buffer(write.octets).first(100), Buffer(write.octets).subspan(100)};
    std::array filled{Buffer(read.octets).first(700), Buffer(read.octets).subspan(700)};
    write.memory = written;
    read.memory = filled;
    EXPECT_TRUE(bench.run(write));
    EXPECT_TRUE(bench.run(read));
    EXPECT_EQ(read.octets, write.octets);
}

TEST(Disk, RefusesWhatIsOutOfRangeMisalignedOrNotAllowed) {
    Bench bench(1);
    EXPECT_EQ(bench.write((1 << 20) - 512, 1024, 1).error().code, Code::out_of_range);
    EXPECT_EQ(bench.write(UINT64_MAX - 511, 512, 1).error().code, Code::out_of_range);
    EXPECT_EQ(bench.write(1, 512, 1).error().code, Code::malformed);
    bench.device = std::move(*bench.world.open_disk({.path = "disk", .read_only = true}));
    EXPECT_EQ(bench.write(0, 512, 1).error().code, Code::access_denied);
    EXPECT_EQ(bench.read(0, 512), "0");
}

TEST(Disk, CompletesInAnyOrderAndSometimesInsideSubmit) {
    std::set<std::vector<int>> orders;
    int inside = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Bench bench(seed, {.queue_depth = 3});
        std::list<TestRequest> requests;
        std::vector<int> order;
        for (int i = 0; i < 6; ++i) {
            auto& request = requests.emplace_back(BlockOperation::read, i * 512, 512);
            request.then = [&order, i] { order.push_back(i); };
            bench.device->submit(request);
            inside += request.outcome.has_value();
        }
        ASSERT_TRUE(bench.world.run_until_quiet(plenty));
        ASSERT_EQ(order.size(), 6u);
        orders.insert(order);
    }
    EXPECT_GT(orders.size(), 10u);
    EXPECT_GT(inside, 0);
}

TEST(Disk, TakesItsTime) {
    DiskSpec spec;
    spec.shortest_latency = spec.longest_latency = 3ms;
    spec.shortest_flush = spec.longest_flush = 9ms;
    spec.immediate_percent = 0;
    Bench bench(1, spec);
    bench.write(0, 512, 1).has_value();
    EXPECT_EQ(bench.world.now(), Instant{} + 3ms);
    bench.flush().has_value();
    EXPECT_EQ(bench.world.now(), Instant{} + 12ms);
}

TEST(Disk, KeepsWhatWasFlushedThroughAPowerCut) {
    for_each_seed(50, [](std::uint64_t seed) {
        Bench bench(seed);
        EXPECT_TRUE(bench.write(0, 2048, 1));
        EXPECT_TRUE(bench.flush());
        EXPECT_TRUE(bench.write(8192, 2048, 2, true));
        bench.disk.power_cut(AfterPowerCut::requests_fail);
        bench.reopen();
        EXPECT_EQ(bench.read(0, 2048), "1111");
        EXPECT_EQ(bench.read(8192, 2048), "2222");
    });
}

TEST(Disk, KeepsLosesOrTearsWhatWasNotFlushed) {
    std::set<std::string> seen;
    for_each_seed(100, [&](std::uint64_t seed) {
        Bench bench(seed);
        EXPECT_TRUE(bench.write(0, 1536, 1));
        EXPECT_TRUE(bench.flush());
        EXPECT_TRUE(bench.write(0, 1536, 2));
        EXPECT_EQ(bench.read(0, 1536), "222");
        bench.disk.power_cut(AfterPowerCut::requests_fail);
        bench.reopen();
        auto found = bench.read(0, 1536);
        EXPECT_EQ(found.find_first_not_of("12"), std::string::npos) << found;
        seen.insert(found);
    });
    EXPECT_TRUE(seen.contains("111"));
    EXPECT_TRUE(seen.contains("222"));
    EXPECT_GT(seen.size(), 4u) << "torn in several ways";
}

TEST(Disk, DoesNotBringBackOlderBytesOverADurableWrite) {
    for_each_seed(50, [](std::uint64_t seed) {
        Bench bench(seed);
        EXPECT_TRUE(bench.write(0, 1024, 1));
        EXPECT_TRUE(bench.write(0, 512, 2, true));
        bench.disk.power_cut(AfterPowerCut::requests_fail);
        bench.reopen();
        EXPECT_EQ(bench.read(0, 512), "2");
    });
}

TEST(Disk, FailsRequestsInFlightAtAPowerCutAndCutsTheDeviceOff) {
    Bench bench(1, {.immediate_percent = 0, .queue_depth = 1});
    TestRequest served(BlockOperation::write, 0, 512), waiting(BlockOperation::write, 512, 512);
    TestRequest late(BlockOperation::read, 0, 512);
    bench.device->submit(served);
    bench.device->submit(waiting);
    bench.disk.power_cut(AfterPowerCut::requests_fail);
    bench.device->submit(late);
    ASSERT_TRUE(bench.world.run_until_quiet(plenty));
    for (auto* request : {&served, &waiting, &late}) {
        ASSERT_TRUE(request->outcome);
        EXPECT_EQ(request->outcome->error().code, Code::disconnected);
    }
    bench.reopen();
    EXPECT_NE(bench.read(0, 512), "error");
}

TEST(Disk, NeverCompletesRequestsOfAHostThatWentDark) {
    Bench bench(1, {.immediate_percent = 0});
    TestRequest request(BlockOperation::write, 0, 512);
    bench.device->submit(request);
    bench.world.host("local").power_cut();
    bench.world.run_for(1h);
    EXPECT_FALSE(request.outcome);
    bench.reopen();
    EXPECT_NE(bench.read(0, 512), "error");
}

TEST(Disk, FailsChosenRangesUntilHealed) {
    Bench bench(1);
    bench.disk.make_bad(1024, 512, BadFor::reads);
    bench.disk.make_bad(4096, 512, BadFor::all);
    EXPECT_EQ(bench.read(512, 512), "0");
    EXPECT_EQ(bench.read(512, 1024), "error");
    EXPECT_EQ(bench.read(1536, 512), "0");
    EXPECT_TRUE(bench.write(1024, 512, 1));
    EXPECT_EQ(bench.write(4096, 512, 1).error().code, Code::io_failed);
    bench.disk.heal();
    EXPECT_EQ(bench.read(1024, 512), "1");
}

TEST(Disk, FailsAtRandomWhenAskedTo) {
    Bench bench(1);
    bench.disk.set_error_percent(50, 50);
    int failed_reads = 0, failed_writes = 0;
    for (int i = 0; i < 100; ++i) {
        failed_writes += !bench.write(0, 512, 1);
        failed_reads += bench.read(0, 512) == "error";
    }
    EXPECT_GT(failed_reads, 25);
    EXPECT_LT(failed_reads, 75);
    EXPECT_GT(failed_writes, 25);
    EXPECT_LT(failed_writes, 75);
}

TEST(Disk, RotsOneBit) {
    Bench bench(1);
    EXPECT_TRUE(bench.write(0, 1024, 5));
    bench.disk.rot(3, 1);
    EXPECT_EQ(bench.read(0, 1024), "55") << "the cache hides it";
    EXPECT_TRUE(bench.flush());
    bench.disk.rot(512 + 3, 1);
    EXPECT_EQ(bench.read(0, 1024), "5?");
    std::array<std::byte, 512> sector;
    bench.disk.peek(512, sector);
    EXPECT_EQ(sector[3], std::byte{5 ^ 2});
}

TEST(Disk, RunsOutOfSpaceAndGetsItBack) {
    Bench bench(1, {.space = 2048});
    EXPECT_TRUE(bench.write(0, 1536, 1));
    auto full = bench.write(8192, 1024, 2);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, Code::exhausted);
    EXPECT_EQ(bench.read(8192, 1024), "00");
    EXPECT_TRUE(bench.write(0, 1536, 3)) << "nothing new is needed";
    EXPECT_TRUE(bench.simple(BlockOperation::write_zeroes, 0, 1536));
    EXPECT_TRUE(bench.write(8192, 1024, 2));
}

TEST(Disk, FailsEverythingWhenDead) {
    Bench bench(1);
    bench.disk.die(Death::fails);
    EXPECT_EQ(bench.write(0, 512, 1).error().code, Code::io_failed);
    EXPECT_EQ(bench.flush().error().code, Code::io_failed);
    bench.disk.revive();
    EXPECT_EQ(bench.read(0, 512), "0");
}

TEST(Disk, HangsUntilRevived) {
    Bench bench(1, {.immediate_percent = 0});
    TestRequest before(BlockOperation::read, 0, 512), during(BlockOperation::read, 0, 512);
    bench.device->submit(before);
    bench.disk.die(Death::hangs);
    bench.device->submit(during);
    bench.world.run_for(1h);
    EXPECT_FALSE(before.outcome);
    EXPECT_FALSE(during.outcome);
    bench.disk.revive();
    ASSERT_TRUE(bench.world.run_until_quiet(plenty));
    EXPECT_TRUE(before.outcome->has_value());
    EXPECT_TRUE(during.outcome->has_value());
}

TEST(Disk, ZeroesAndReportsHoles) {
    Bench bench(1);
    EXPECT_TRUE(bench.write(1024, 2048, 4));
    EXPECT_TRUE(bench.simple(BlockOperation::write_zeroes, 1536, 512));
    EXPECT_EQ(bench.read(1024, 2048), "4044");
    TestRequest keep(BlockOperation::write_zeroes, 2048, 512);
    keep.keep_space = true;
    EXPECT_TRUE(bench.run(keep));

    TestRequest status(BlockOperation::status, 0, 8192);
    std::array<Extent, 8> extents;
    status.extents = extents;
    EXPECT_TRUE(bench.run(status));
    std::vector<Extent> found(extents.begin(), extents.begin() + status.extent_count);
    std::vector<Extent> expected{{1024, true, true}, {512, false, false}, {512, true, true},
                                 {512, false, true}, {512, false, false}, {5120, true, true}};
    EXPECT_EQ(found, expected);

    TestRequest cramped(BlockOperation::status, 0, 8192);
    cramped.extents = std::span(extents).first(2);
    EXPECT_TRUE(bench.run(cramped));
    EXPECT_EQ(cramped.extent_count, 2u) << "room ran out";
}

TEST(Disk, RefusesToKeepSpaceFast) {
    Bench bench(1);
    TestRequest request(BlockOperation::write_zeroes, 0, 512);
    request.fast_only = request.keep_space = true;
    EXPECT_EQ(bench.run(request).error().code, Code::unsupported);
    TestRequest without_space(BlockOperation::write_zeroes, 0, 512);
    without_space.fast_only = true;
    EXPECT_TRUE(bench.run(without_space));
}

TEST(Disk, KeepsOrZeroesWhatIsTrimmed) {
    std::set<std::string> seen;
    for_each_seed(20, [&](std::uint64_t seed) {
        Bench bench(seed);
        EXPECT_TRUE(bench.write(0, 1536, 6));
        EXPECT_TRUE(bench.simple(BlockOperation::trim, 512, 512));
        seen.insert(bench.read(0, 1536));
    });
    EXPECT_EQ(seen, (std::set<std::string>{"666", "606"}));
}

TEST(Disk, MakesTheOldestWritesStableWhenItsCacheIsFull) {
    Bench bench(1, {.cache_sectors = 8});
    for (int i = 0; i < 12; ++i) EXPECT_TRUE(bench.write(i * 1024, 1024, i % 9 + 1));
    bench.disk.power_cut(AfterPowerCut::requests_fail);
    bench.reopen();
    EXPECT_EQ(bench.read(0, 1024), "11");
}

TEST(Disk, AnnouncesThatItGrew) {
    struct Watcher final : SizeWatcher {
        std::uint64_t size = 0;
        void size_changed(std::uint64_t now) override { size = now; }
    } watcher;
    Bench bench(1);
    bench.device->watch_size(watcher);
    bench.disk.grow(2 << 20);
    EXPECT_EQ(watcher.size, 2u << 20);
    EXPECT_EQ(bench.device->traits().size, 2u << 20);
    EXPECT_EQ(bench.read((2 << 20) - 512, 512), "0");
}

}  // namespace
}  // namespace weft::sim
