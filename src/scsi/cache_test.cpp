// SPDX-License-Identifier: Apache-2.0
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::bench_blocks;

using Cache = test::ScsiBench;

TEST_F(Cache, IsSynchronizedByAFlush) {
    set_up(disk, {});
    test::BenchTask task;
    execute(task, *first, SynchronizeCache10{.block_count = 4});
    ASSERT_EQ(disk.held.size(), 1u);
    EXPECT_EQ(disk.held[0]->operation, BlockOperation::flush);
    EXPECT_FALSE(task.done());
    disk.let_go(0);
    EXPECT_TRUE(task.good());
    test::BenchTask failing;
    execute(failing, *first, SynchronizeCache16{.flags = {.immediate = true}});
    disk.fail(0, {.code = Code::io_failed});
    EXPECT_EQ(failing.code(), 0x30c00u);
    tear_down();
}

TEST_F(Cache, IsNotBeyondTheEnd) {
    set_up();
    EXPECT_TRUE(run(SynchronizeCache10{})->good());
    EXPECT_EQ(run(SynchronizeCache16{.block_address = bench_blocks, .block_count = 1})->code(),
              0x52100u);
    EXPECT_EQ(run(Prefetch10{.block_address = bench_blocks, .block_count = 1})->code(), 0x52100u);
    EXPECT_EQ(run(Prefetch16{.block_address = ~0ull})->code(), 0x52100u);
}

TEST_F(Cache, TakesHintsEvenIfNobodyHeedsThem) {
    set_up(filter, {});
    ASSERT_TRUE(
        filter.add({.operation = BlockOperation::prefetch, .error = {.code = Code::unsupported}}));
    EXPECT_TRUE(run(Prefetch10{.block_count = 1})->good());
    EXPECT_TRUE(run(Prefetch10{.flags = {.immediate = true}, .block_count = 1})->good());
    EXPECT_TRUE(run(Prefetch16{.block_count = 1, .group_number = 3})->good());
    EXPECT_TRUE(run(Prefetch16{})->good());
}

}  // namespace
}  // namespace weft::scsi
