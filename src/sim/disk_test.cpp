// SPDX-License-Identifier: Apache-2.0
// How a disk serves its requests, and how it loses its power, dies and grows.
#include "sim/disk.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <list>
#include <set>
#include <string>
#include <vector>

#include "support/disk_bench.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::DiskBench;
using test::for_each_seed;
using test::TestRequest;

constexpr std::uint64_t plenty = 1'000'000;  // events

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

TEST(Disk, CompletesInAnyOrderAndSometimesInsideSubmit) {
    std::set<std::vector<int>> orders;
    int inside = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        DiskBench bench(seed, {.queue_depth = 3});
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
    DiskBench bench(1, spec);
    bench.write(0, 512, 1).has_value();
    EXPECT_EQ(bench.world.now(), Instant{} + 3ms);
    bench.flush().has_value();
    EXPECT_EQ(bench.world.now(), Instant{} + 12ms);
}

TEST(Disk, KeepsWhatWasFlushedThroughAPowerCut) {
    for_each_seed(50, [](std::uint64_t seed) {
        DiskBench bench(seed);
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
        DiskBench bench(seed);
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
    if (!test::runs_all_seeds()) return;
    EXPECT_TRUE(seen.contains("111"));
    EXPECT_TRUE(seen.contains("222"));
    EXPECT_GT(seen.size(), 4u) << "torn in several ways";
}

TEST(Disk, DoesNotBringBackOlderBytesOverADurableWrite) {
    for_each_seed(50, [](std::uint64_t seed) {
        DiskBench bench(seed);
        EXPECT_TRUE(bench.write(0, 1024, 1));
        EXPECT_TRUE(bench.write(0, 512, 2, true));
        bench.disk.power_cut(AfterPowerCut::requests_fail);
        bench.reopen();
        EXPECT_EQ(bench.read(0, 512), "2");
    });
}

TEST(Disk, FailsRequestsInFlightAtAPowerCutAndCutsTheDeviceOff) {
    DiskBench bench(1, {.immediate_percent = 0, .queue_depth = 1});
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
    DiskBench bench(1, {.immediate_percent = 0});
    TestRequest request(BlockOperation::write, 0, 512);
    bench.device->submit(request);
    bench.world.host("local").power_cut();
    bench.world.run_for(1h);
    EXPECT_FALSE(request.outcome);
    bench.reopen();
    EXPECT_NE(bench.read(0, 512), "error");
}

TEST(Disk, RotsOneBit) {
    DiskBench bench(1);
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

TEST(Disk, FailsEverythingWhenDead) {
    DiskBench bench(1);
    bench.disk.die(Death::fails);
    EXPECT_EQ(bench.write(0, 512, 1).error().code, Code::io_failed);
    EXPECT_EQ(bench.flush().error().code, Code::io_failed);
    bench.disk.revive();
    EXPECT_EQ(bench.read(0, 512), "0");
}

TEST(Disk, HangsUntilRevived) {
    DiskBench bench(1, {.immediate_percent = 0});
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

TEST(Disk, MakesTheOldestWritesStableWhenItsCacheIsFull) {
    DiskBench bench(1, {.cache_sectors = 8});
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
    DiskBench bench(1);
    bench.device->watch_size(watcher);
    bench.disk.grow(2 << 20);
    EXPECT_EQ(watcher.size, 2u << 20);
    EXPECT_EQ(bench.device->traits().size, 2u << 20);
    EXPECT_EQ(bench.read((2 << 20) - 512, 512), "0");
}

TEST(Disk, MayLoseItsDeviceToWhoHearsTheLastCompletion) {
    for_each_seed(20, [](std::uint64_t seed) {
        World world(seed);
        world.make_disk("disk", {.immediate_percent = 30, .queue_depth = 2});
        auto device = std::move(*world.open_disk({.path = "disk"}));
        std::list<TestRequest> requests;
        std::size_t left = 5;
        for (std::uint64_t i = 0; i < 5; ++i)
            requests.emplace_back(BlockOperation::write, i * 512, i == 4 ? 1 : 512).then = [&] {
                if (--left == 0) device.reset();
            };
        for (auto& request : requests) device->submit(request);
        ASSERT_TRUE(world.run_until_quiet(plenty));
        EXPECT_EQ(device, nullptr);
    });
}

TEST(Disk, TellsOfItsGrowthOnlyDevicesThatAreStillOpen) {
    struct Closing final : SizeWatcher {
        std::unique_ptr<BlockDevice> other;
        int heard = 0;
        void size_changed(std::uint64_t) override { ++heard, other.reset(); }
    };
    World world(1);
    auto& disk = world.make_disk("disk", {.size = 4096});
    auto device = std::move(*world.open_disk({.path = "disk"}));
    Closing closing;
    closing.other = std::move(*world.open_disk({.path = "disk"}));
    device->watch_size(closing);
    disk.grow(8192);
    EXPECT_EQ(closing.heard, 1);
    EXPECT_EQ(closing.other, nullptr);
}

}  // namespace
}  // namespace weft::sim
