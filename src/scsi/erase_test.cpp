// SPDX-License-Identifier: Apache-2.0
#include "scsi/erasure.hpp"
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using std::chrono::seconds;
using test::bench_blocks;
using test::BenchTask;
using test::filled;
using test::OctetVector;

struct Erasing : test::ScsiBench {
    static OctetVector overwrite_list(std::size_t pattern_bytes, int with, std::uint8_t count = 1,
                                      bool invert = false) {
        auto header =
            encoded(SanitizeOverwrite{.invert = invert,
                                      .overwrite_count = count,
                                      .pattern_length = static_cast<std::uint16_t>(pattern_bytes)});
        OctetVector list(header.begin(), header.end());
        list.resize(4 + pattern_bytes, static_cast<std::byte>(with));
        return list;
    }
    void begin(BenchTask& task, const Sanitize& command, OctetVector list = {}) {
        task.to_send = std::move(list);
        execute(task, *first, command);
    }
    static Sanitize overwrite(std::size_t length) {
        return {.action = SanitizeAction::overwrite,
                .parameter_length = static_cast<std::uint16_t>(length)};
    }
};

TEST_F(Erasing, OverwritesEveryBlockWithThePattern) {
    set_up();
    BenchTask task;
    begin(task, overwrite(516), overwrite_list(512, 0xaa));
    EXPECT_FALSE(task.done()) << "it answers when it is done";
    pass_time(seconds(1));
    ASSERT_TRUE(task.good());
    EXPECT_EQ(on_disk(0, bench_blocks), filled(bench_blocks * 512, 0xaa));
    BenchTask inverted;
    begin(inverted, overwrite(8), overwrite_list(4, 0x0f, 2, true));
    pass_time(seconds(1));
    ASSERT_TRUE(inverted.good());
    EXPECT_EQ(on_disk(0, bench_blocks), filled(bench_blocks * 512, 0xf0));
}

TEST_F(Erasing, RefusesPatternsThatAreNone) {
    set_up();
    for (std::size_t length = 0; length < 5; ++length)
        EXPECT_EQ(run(overwrite(length), filled(length, 1))->code(), 0x52400u);
    EXPECT_EQ(run(overwrite(517), filled(517, 1))->code(), 0x52400u);
    EXPECT_EQ(run(overwrite(516), overwrite_list(512, 1, 0))->code(), 0x52600u);
    auto none = overwrite_list(512, 1);
    none[2] = none[3] = std::byte{0};
    EXPECT_EQ(run(overwrite(516), none)->code(), 0x52600u);
    auto longer = overwrite_list(512, 1);
    longer[3] = std::byte{4};
    EXPECT_EQ(run(overwrite(516), longer)->code(), 0x52600u);
}

TEST_F(Erasing, RefusesReservedBitsAndUnknownActions) {
    set_up();
    for (std::uint8_t action = 0; action < 0x20; ++action) {
        if (action == 1 || action == 2 || action == 3 || action == 0x1f) continue;
        EXPECT_EQ(run(Sanitize{.action = SanitizeAction{action}})->code(), 0x52400u);
    }
    EXPECT_EQ(run(Sanitize{.zoned_no_reset = true, .action = SanitizeAction::block_erase})->code(),
              0x52400u);
    for (std::size_t octet = 2; octet < 7; ++octet) {
        auto block = encoded(Sanitize{.action = SanitizeAction::block_erase});
        block[octet] = static_cast<std::byte>(octet);
        EXPECT_EQ(run_octets({block.begin(), block.end()})->code(), 0x52400u);
    }
    EXPECT_EQ(run(Sanitize{.action = SanitizeAction::exit_failure_mode, .parameter_length = 8},
                  filled(8, 0))
                  ->code(),
              0x52400u);
    EXPECT_EQ(
        run(Sanitize{.action = SanitizeAction::block_erase, .parameter_length = 8}, filled(8, 0))
            ->code(),
        0x52400u);
    EXPECT_TRUE(run(Sanitize{.action = SanitizeAction::exit_failure_mode})->good());
}

TEST_F(Erasing, BlocksLeavesNoneMapped) {
    set_up();
    put_on_disk(7, filled(8192, 'x'));
    for (auto action : {SanitizeAction::block_erase, SanitizeAction::cryptographic_erase}) {
        EXPECT_TRUE(run(Sanitize{.immediate = true, .action = action})->good());
        pass_time(seconds(1));
        EXPECT_EQ(memory.allocated_bytes(), 0u);
        EXPECT_EQ(on_disk(0, bench_blocks), filled(bench_blocks * 512, 0));
        auto status = run(GetLbaStatus{.allocation_length = 256});
        ASSERT_EQ(status->data.size(), 24u);
        EXPECT_EQ(*decode<LbaStatusDescriptor>(ConstBuffer(status->data).subspan(8)),
                  (LbaStatusDescriptor{0, bench_blocks, Provisioning::deallocated}));
        put_on_disk(7, filled(8192, 'x'));
    }
}

TEST_F(Erasing, GoesOnWhateverBecomesOfItsTask) {
    set_up({.erasure_time = seconds(10)});
    put_on_disk(0, filled(512, 'x'));
    BenchTask task;
    begin(task, overwrite(516), overwrite_list(512, 0));
    pass_time(seconds(3));
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x2041bu);
    EXPECT_EQ(run(StartStopUnit{.power_condition = 1})->code(), 0x2041bu);
    EXPECT_EQ(run(Read16{.block_count = 1})->code(), 0x2041bu);
    EXPECT_TRUE(run(Inquiry{.allocation_length = 96})->good());
    EXPECT_TRUE(run(ReportLuns{.allocation_length = 96})->good());
    auto sense = *decode<FixedSense>(run(RequestSense{.allocation_length = 18})->data);
    EXPECT_GT(sense.specific.pointer, 0x1000);
    EXPECT_LT(sense.specific.pointer, 0xe000);
    target->abort(task);
    EXPECT_EQ(task.heard.end, TaskEnd::aborted);
    target->find(0)->reset(AdditionalSense::bus_device_reset_occurred);
    clear_attentions(*first);
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x2041bu);
    leave(*second);
    second = &join("iqn.2026-11.io.weft:bob", 2);
    clear_attentions(*second);
    EXPECT_EQ(run(*second, TestUnitReady{})->code(), 0x2041bu);
    pass_time(seconds(10));
    EXPECT_TRUE(run(TestUnitReady{})->good());
    EXPECT_EQ(on_disk(0, 1), filled(512, 0));
}

TEST_F(Erasing, IsNotUndoneByWritesThatCameBefore) {
    set_up(disk, {});
    BenchTask under_way, collecting, erase;
    under_way.to_send = filled(512, 1);
    execute(under_way, *second, Write10{.block_address = 1, .block_count = 1});
    collecting.to_send = filled(512, 2);
    collecting.holds_data = true;
    execute(collecting, *second, Write10{.block_address = 2, .block_count = 1});
    begin(erase, Sanitize{.immediate = true, .action = SanitizeAction::block_erase});
    EXPECT_FALSE(erase.done()) << "a write is still with the device";
    collecting.bring_data();
    EXPECT_FALSE(collecting.done());
    disk.let_go(0);
    EXPECT_TRUE(under_way.good());
    EXPECT_TRUE(erase.good());
    EXPECT_EQ(collecting.code(), 0x2041bu);
    disk.holding = false;
    pass_time(seconds(1));
    EXPECT_EQ(on_disk(0, 4), filled(2048, 0));
}

TEST_F(Erasing, IsNotUndoneByDataThatComesMeanwhile) {
    set_up(disk, {.erasure_time = seconds(10)});
    BenchTask collecting, erase;
    collecting.to_send = filled(512, 2);
    collecting.holds_data = true;
    execute(collecting, *second, Write10{.block_address = 2, .block_count = 1});
    disk.holding = false;
    begin(erase, Sanitize{.immediate = true, .action = SanitizeAction::block_erase});
    EXPECT_TRUE(erase.good());
    collecting.bring_data();
    EXPECT_EQ(collecting.code(), 0x2041bu);
    pass_time(seconds(11));
    EXPECT_EQ(on_disk(2, 1), filled(512, 0));
}

TEST_F(Erasing, ThatFailsSaysSo) {
    set_up(filter, {});
    ASSERT_TRUE(filter.add({.operation = BlockOperation::write_zeroes}));
    BenchTask task;
    begin(task, Sanitize{.action = SanitizeAction::block_erase});
    pass_time(seconds(1));
    EXPECT_EQ(task.code(), 0x30c00u);
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x33103u);
}

TEST_F(Erasing, ThatFailedInSilenceIsNotForgotten) {
    set_up(filter, {});
    ASSERT_TRUE(filter.add({.operation = BlockOperation::write_zeroes}));
    const Sanitize erase{.immediate = true, .action = SanitizeAction::block_erase};
    EXPECT_TRUE(run(erase)->good());
    pass_time(seconds(1));
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x33103u);
    EXPECT_EQ(run(*second, Read10{.block_count = 1})->code(), 0x33103u);
    EXPECT_EQ(run(FormatUnit{})->code(), 0x33103u);
    EXPECT_TRUE(run(Inquiry{.allocation_length = 96})->good());
    auto sense = *decode<FixedSense>(run(RequestSense{.allocation_length = 18})->data);
    EXPECT_EQ(sense.key, SenseKey::medium_error);
    EXPECT_EQ(sense.additional, AdditionalSense::sanitize_command_failed);
    target->find(0)->reset(AdditionalSense::bus_device_reset_occurred);
    clear_attentions(*first);
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x33103u);
    EXPECT_EQ(run(Sanitize{.action = SanitizeAction::exit_failure_mode})->code(), 0x52400u)
        << "the one who erased did not allow it";
    filter.clear();
    EXPECT_TRUE(run(erase)->good());
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x2041bu);
    pass_time(seconds(1));
    EXPECT_TRUE(run(TestUnitReady{})->good());
    EXPECT_TRUE(run(Read10{.block_count = 1})->good());
}

TEST_F(Erasing, ThatFailedIsLeftBehindIfThatWasAllowed) {
    set_up(filter, {});
    ASSERT_TRUE(filter.add({.operation = BlockOperation::write_zeroes}));
    EXPECT_TRUE(run(Sanitize{.immediate = true,
                             .allow_unrestricted_exit = true,
                             .action = SanitizeAction::block_erase})
                    ->good());
    pass_time(seconds(1));
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x33103u);
    EXPECT_TRUE(run(Sanitize{.action = SanitizeAction::exit_failure_mode})->good());
    EXPECT_TRUE(run(TestUnitReady{})->good());
}

TEST_F(Erasing, ThatFailedToFormatLeavesAnUnformattedUnit) {
    set_up(filter, {});
    ASSERT_TRUE(filter.add({.operation = BlockOperation::write_zeroes}));
    BenchTask task;
    execute(task, *first, FormatUnit{});
    pass_time(seconds(1));
    EXPECT_EQ(task.code(), 0x30c00u);
    EXPECT_EQ(run(Read10{.block_count = 1})->code(), 0x33100u);
    EXPECT_TRUE(run(Sanitize{.action = SanitizeAction::exit_failure_mode})->good());
    EXPECT_EQ(run(Read10{.block_count = 1})->code(), 0x33100u) << "that was another failure";
    filter.clear();
    BenchTask again;
    execute(again, *first, FormatUnit{});
    pass_time(seconds(1));
    EXPECT_TRUE(again.good());
    EXPECT_TRUE(run(Read10{.block_count = 1})->good());
}

TEST_F(Erasing, HasNoBlocksToEraseOnAUnitThatIsNotThin) {
    set_up({.thin = false});
    EXPECT_EQ(run(Sanitize{.action = SanitizeAction::block_erase})->code(), 0x52000u);
}

TEST_F(Erasing, FormatsTheUnit) {
    set_up({.erasure_time = seconds(5)});
    put_on_disk(0, filled(512, 'x'));
    BenchTask task;
    execute(task, *first, FormatUnit{});
    pass_time(seconds(1));
    EXPECT_EQ(run(TestUnitReady{})->code(), 0x20404u);
    pass_time(seconds(5));
    EXPECT_TRUE(task.good());
    EXPECT_EQ(on_disk(0, 1), filled(512, 0));
    auto list = filled(4, 0);
    list[1] = std::byte{0x02};  // immediate
    EXPECT_TRUE(run(FormatUnit{.format_data = true}, list)->good());
    EXPECT_EQ(run(FormatUnit{.protection_information = 2})->code(), 0x20404u);
    pass_time(seconds(6));
    EXPECT_EQ(run(FormatUnit{.protection_information = 2})->code(), 0x52400u);
}

TEST_F(Erasing, StopsWhenItsUnitIsRemoved) {
    set_up({.erasure_time = seconds(100)});
    EXPECT_TRUE(run(Sanitize{.immediate = true, .action = SanitizeAction::block_erase})->good());
    bool gone = false;
    pass_time(seconds(1));
    ASSERT_TRUE(target->remove_unit(0, [&] { gone = true; }));
    EXPECT_TRUE(gone) << "it does not wait for its time";
}

TEST_F(Erasing, StopsAtOnceButForWhatTheDeviceHas) {
    set_up(disk, {.erasure_time = seconds(100)});
    EXPECT_TRUE(run(Sanitize{.immediate = true, .action = SanitizeAction::block_erase})->good());
    pass_time(seconds(1));
    ASSERT_EQ(disk.held.size(), 1u);
    bool quiet = false;
    target->drain([&] { quiet = true; });
    EXPECT_FALSE(quiet);
    disk.let_go(0);
    EXPECT_TRUE(quiet);
    EXPECT_TRUE(disk.held.empty());
}

}  // namespace
}  // namespace weft::scsi
