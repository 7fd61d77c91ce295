// SPDX-License-Identifier: Apache-2.0
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::filled;

struct Medium : test::ScsiBench {
    static constexpr StartStopUnit eject{.load_eject = true};
    static constexpr StartStopUnit load{.load_eject = true, .start = true};
};

TEST_F(Medium, CannotBeReachedWhenEjected) {
    set_up({.removable = true});
    EXPECT_TRUE(run(eject)->good());
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x23a02u);
    EXPECT_EQ(run(SynchronizeCache10{})->code(), 0x23a02u);
    EXPECT_EQ(run(Read10{.block_count = 1})->code(), 0x23a02u);
    EXPECT_EQ(run(Write16{.block_count = 1}, filled(512, 1))->code(), 0x23a02u);
    EXPECT_EQ(run(ReadCapacity16{.allocation_length = 32})->code(), 0x23a02u);
    EXPECT_EQ(run(GetLbaStatus{.allocation_length = 24})->code(), 0x23a02u);
    EXPECT_EQ(run(CompareAndWrite{.block_count = 1}, filled(1024, 0))->code(), 0x23a02u);
    EXPECT_EQ(run(WriteSame10{.block_count = 1}, filled(512, 0))->code(), 0x23a02u);
    EXPECT_EQ(run(Unmap{.parameter_length = 8}, filled(8, 0))->code(), 0x23a02u);
    EXPECT_EQ(run(Prefetch10{})->code(), 0x23a02u);
    EXPECT_TRUE(run(Inquiry{.allocation_length = 36})->good());
    EXPECT_TRUE(run(eject)->good());
    EXPECT_TRUE(run(load)->good());
    EXPECT_TRUE(run(TestUnitReady{})->good());
    EXPECT_EQ(run(*second, TestUnitReady{})->code(), 0x62800u);
}

TEST_F(Medium, StaysWhereItIsUnlessEjected) {
    set_up({.removable = true});
    for (bool start : {false, true})
        for (bool no_flush : {false, true}) {
            EXPECT_TRUE(run(StartStopUnit{.no_flush = no_flush, .start = start})->good());
            EXPECT_TRUE(run(TestUnitReady{})->good());
        }
    for (std::uint8_t power = 1; power < 16; ++power) {
        EXPECT_TRUE(run(StartStopUnit{.power_condition = power, .load_eject = true})->good());
        EXPECT_TRUE(run(TestUnitReady{})->good());
    }
}

TEST_F(Medium, IsKeptInByThoseWhoPreventItsRemoval) {
    set_up({.removable = true});
    EXPECT_TRUE(run(*second, PreventAllowMediumRemoval{.prevent = true})->good());
    EXPECT_EQ(run(eject)->code(), 0x55302u);
    EXPECT_TRUE(run(TestUnitReady{})->good());
    EXPECT_TRUE(run(PreventAllowMediumRemoval{})->good()) << "only for oneself";
    EXPECT_EQ(run(eject)->code(), 0x55302u);
    leave(*second);
    EXPECT_TRUE(run(eject)->good());
    EXPECT_TRUE(run(PreventAllowMediumRemoval{.prevent = true})->good());
    EXPECT_EQ(run(load)->code(), 0x55302u);
    EXPECT_TRUE(run(PreventAllowMediumRemoval{})->good());
    EXPECT_TRUE(run(load)->good());
}

TEST_F(Medium, IsFlushedBeforeItGoes) {
    set_up(disk, {.removable = true});
    test::BenchTask task;
    execute(task, *first, eject);
    ASSERT_EQ(disk.held.size(), 1u);
    EXPECT_EQ(disk.held[0]->operation, BlockOperation::flush);
    disk.let_go(0);
    EXPECT_TRUE(task.good());
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x23a02u);
}

TEST_F(Medium, OfAFixedDiskCannotBeEjected) {
    set_up();
    EXPECT_EQ(run(eject)->code(), 0x52400u);
    EXPECT_EQ(run(PreventAllowMediumRemoval{.prevent = true})->code(), 0x52000u);
}

TEST_F(Medium, ThatIsWriteProtectedRefusesAllThatChangesIt) {
    set_up({.read_only = true});
    const unsigned refused = 0x72700;
    EXPECT_EQ(run(Write10{.block_count = 1}, filled(512, 1))->code(), refused);
    EXPECT_EQ(run(Write12{.block_count = 1}, filled(512, 1))->code(), refused);
    EXPECT_EQ(run(Write16{.block_count = 1}, filled(512, 1))->code(), refused);
    EXPECT_EQ(run(WriteSame10{.block_count = 1}, filled(512, 1))->code(), refused);
    EXPECT_EQ(run(WriteSame10{.flags = {.unmap = true}, .block_count = 1})->code(), refused);
    EXPECT_EQ(run(WriteSame16{.flags = {.unmap = true}, .block_count = 1})->code(), refused);
    EXPECT_EQ(run(WriteAndVerify10{.block_count = 1}, filled(512, 1))->code(), refused);
    EXPECT_EQ(run(OrWrite16{.block_count = 1}, filled(512, 1))->code(), refused);
    EXPECT_EQ(run(CompareAndWrite{.block_count = 1}, filled(1024, 0))->code(), refused);
    EXPECT_EQ(run(WriteAtomic16{.block_count = 1}, filled(512, 0))->code(), refused);
    EXPECT_EQ(run(Unmap{.parameter_length = 8}, filled(8, 0))->code(), refused);
    EXPECT_EQ(run(Sanitize{.action = SanitizeAction::block_erase})->code(), refused);
    EXPECT_TRUE(run(Read10{.block_count = 1})->good());
    EXPECT_TRUE(run(SynchronizeCache10{})->good());
}

}  // namespace
}  // namespace weft::scsi
