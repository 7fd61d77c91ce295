// SPDX-License-Identifier: Apache-2.0
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::bench_blocks;
using test::filled;

using Same = test::ScsiBench;

TEST_F(Same, BlockIsWrittenOverAndOver) {
    set_up({.long_commands = true});
    EXPECT_TRUE(run(WriteSame10{.block_address = 1, .block_count = 256}, filled(512, 7))->good());
    EXPECT_EQ(on_disk(1, 256), filled(256 * 512, 7));
    EXPECT_EQ(on_disk(0, 1), filled(512, 0));
    EXPECT_EQ(on_disk(257, 1), filled(512, 0));
    EXPECT_TRUE(
        run(WriteSame32{.block_address = 0, .block_count = bench_blocks}, filled(512, 8))->good());
    EXPECT_EQ(on_disk(0, bench_blocks), filled(bench_blocks * 512, 8)) << "in several pieces";
    EXPECT_TRUE(run(WriteSame16{.block_address = bench_blocks - 3}, filled(512, 9))->good());
    EXPECT_EQ(on_disk(bench_blocks - 4, 1), filled(512, 8));
    EXPECT_EQ(on_disk(bench_blocks - 3, 3), filled(1536, 9)) << "no count says: to the end";
}

TEST_F(Same, ZeroesLeaveNoHoleUnlessUnmapped) {
    set_up();
    put_on_disk(0, filled(16384, 1));
    const auto allocated = memory.allocated_bytes();
    EXPECT_TRUE(run(WriteSame16{.block_count = 16}, filled(512, 0))->good());
    EXPECT_EQ(memory.allocated_bytes(), allocated);
    EXPECT_EQ(on_disk(0, 17), [] {
        auto octets = filled(17 * 512, 0);
        std::fill(octets.end() - 512, octets.end(), std::byte{1});
        return octets;
    }());
    EXPECT_TRUE(
        run(WriteSame10{.flags = {.unmap = true}, .block_count = 16}, filled(512, 0))->good());
    EXPECT_EQ(memory.allocated_bytes(), allocated - 8192);
    EXPECT_TRUE(run(WriteSame16{.flags = {.unmap = true, .no_data_buffer = true},
                                .block_address = 16,
                                .block_count = 16})
                    ->good());
    EXPECT_EQ(memory.allocated_bytes(), allocated - 16384);
    EXPECT_TRUE(
        run(WriteSame16{.flags = {.unmap = true}, .block_count = 8}, filled(512, 3))->good());
    EXPECT_EQ(on_disk(0, 8), filled(4096, 0)) << "unmapped, whatever was sent";
}

TEST_F(Same, WantsExactlyOneBlock) {
    set_up();
    EXPECT_EQ(run(WriteSame10{.block_count = 1}, filled(256, 1))->sense().key,
              SenseKey::illegal_request);
    EXPECT_EQ(run(WriteSame16{.block_count = 1}, filled(1024, 1))->sense().key,
              SenseKey::illegal_request);
    EXPECT_EQ(on_disk(0, 1), filled(512, 0));
}

TEST_F(Same, RefusesFlagsTheUnitCannotHonour) {
    set_up({.thin = false});
    EXPECT_EQ(run(WriteSame10{.flags = {.unmap = true}, .block_count = 1}, filled(512, 0))->code(),
              0x52400u);
    EXPECT_EQ(run(WriteSame16{.flags = {.anchor = true}, .block_count = 1}, filled(512, 0))->code(),
              0x52400u);
    EXPECT_EQ(run(WriteSame16{.flags = {.protect = 1}, .block_count = 1}, filled(512, 0))->code(),
              0x52400u);
    EXPECT_EQ(run(WriteSame10{.flags = {.no_data_buffer = true}, .block_count = 1})->code(),
              0x52400u);
    EXPECT_EQ(run(WriteSame16{.block_address = bench_blocks + 1}, filled(512, 0))->code(),
              0x52100u);
    EXPECT_EQ(run(WriteSame10{.block_address = bench_blocks - 1, .block_count = 2}, filled(512, 0))
                  ->code(),
              0x52100u);
}

TEST_F(Same, WritesZeroesOutWhereTheDeviceCannotMakeThem) {
    disk.holding = false;
    disk.shown.can_write_zeroes = false;
    set_up(disk, {});
    put_on_disk(0, filled(4096, 1));
    EXPECT_TRUE(
        run(WriteSame16{.flags = {.unmap = true}, .block_count = 8}, filled(512, 0))->good());
    EXPECT_EQ(on_disk(0, 8), filled(4096, 0));
}

}  // namespace
}  // namespace weft::scsi
