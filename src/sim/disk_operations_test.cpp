// SPDX-License-Identifier: Apache-2.0
// What each kind of request does to the bytes, and the errors it can end with.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "sim/disk.hpp"
#include "support/disk_bench.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using test::DiskBench;
using test::for_each_seed;
using test::TestRequest;

TEST(Disk, ReadsBackWhatWasWritten) {
    DiskBench bench(1);
    EXPECT_EQ(bench.read(0, 1024), "00");
    EXPECT_TRUE(bench.write(512, 1024, 7));
    EXPECT_EQ(bench.read(0, 2048), "0770");
}

TEST(Disk, GathersAndScattersInPieces) {
    DiskBench bench(1);
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
    DiskBench bench(1);
    EXPECT_EQ(bench.write((1 << 20) - 512, 1024, 1).error().code, Code::out_of_range);
    EXPECT_EQ(bench.write(UINT64_MAX - 511, 512, 1).error().code, Code::out_of_range);
    EXPECT_EQ(bench.write(1, 512, 1).error().code, Code::malformed);
    bench.device = std::move(*bench.world.open_disk({.path = "disk", .read_only = true}));
    EXPECT_EQ(bench.write(0, 512, 1).error().code, Code::access_denied);
    EXPECT_EQ(bench.read(0, 512), "0");
}

TEST(Disk, FailsChosenRangesUntilHealed) {
    DiskBench bench(1);
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
    DiskBench bench(1);
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

TEST(Disk, RunsOutOfSpaceAndGetsItBack) {
    DiskBench bench(1, {.space = 2048});
    EXPECT_TRUE(bench.write(0, 1536, 1));
    auto full = bench.write(8192, 1024, 2);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, Code::exhausted);
    EXPECT_EQ(bench.read(8192, 1024), "00");
    EXPECT_TRUE(bench.write(0, 1536, 3)) << "nothing new is needed";
    EXPECT_TRUE(bench.simple(BlockOperation::write_zeroes, 0, 1536));
    EXPECT_TRUE(bench.write(8192, 1024, 2));
}

TEST(Disk, ZeroesAndReportsHoles) {
    DiskBench bench(1);
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
    DiskBench bench(1);
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
        DiskBench bench(seed);
        EXPECT_TRUE(bench.write(0, 1536, 6));
        EXPECT_TRUE(bench.simple(BlockOperation::trim, 512, 512));
        seen.insert(bench.read(0, 1536));
    });
    if (!test::runs_all_seeds()) return;
    EXPECT_EQ(seen, (std::set<std::string>{"666", "606"}));
}

}  // namespace
}  // namespace weft::sim
