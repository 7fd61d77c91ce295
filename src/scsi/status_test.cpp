// SPDX-License-Identifier: Apache-2.0
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::bench_blocks;

using Status = test::ScsiBench;

TEST_F(Status, TellsHowLargeTheUnitIs) {
    set_up();
    auto short_form = run(ReadCapacity10{});
    EXPECT_EQ(*decode<Capacity10>(short_form->data),
              (Capacity10{.last_block = bench_blocks - 1, .block_bytes = 512}));
    auto long_form = run(ReadCapacity16{.allocation_length = 32});
    const auto capacity = *decode<Capacity16>(long_form->data);
    EXPECT_EQ(capacity.last_block, bench_blocks - 1);
    EXPECT_TRUE(capacity.provisioning_management && capacity.unmapped_reads_zero);
    EXPECT_FALSE(capacity.protection_enabled);
    EXPECT_EQ(capacity.blocks_per_physical_exponent, 0);
    for (std::uint32_t length = 0; length < 32; ++length) {
        auto cut = run(ReadCapacity16{.allocation_length = length});
        EXPECT_TRUE(cut->good());
        EXPECT_EQ(cut->data.size(), length);
    }
}

TEST_F(Status, TellsThePhysicalBlockItWasToldOf) {
    set_up({.thin = false, .physical_block_bytes = 4096});
    const auto capacity = *decode<Capacity16>(run(ReadCapacity16{.allocation_length = 32})->data);
    EXPECT_EQ(capacity.blocks_per_physical_exponent, 3);
    EXPECT_FALSE(capacity.provisioning_management);
}

TEST_F(Status, HasNoDefects) {
    set_up();
    auto short_form = run(ReadDefectData10{.format = 5, .allocation_length = 32});
    ASSERT_TRUE(short_form->good());
    EXPECT_EQ(*decode<DefectListHeader10>(short_form->data), DefectListHeader10{.format = 5});
    auto long_form = run(ReadDefectData12{.grown_list = true, .allocation_length = 32});
    ASSERT_TRUE(long_form->good());
    EXPECT_EQ(decode<DefectListHeader12>(long_form->data)->list_length, 0u);
}

TEST_F(Status, SensesNothingWhenNothingIsWrong) {
    set_up();
    auto sense = run(RequestSense{.allocation_length = 252});
    EXPECT_EQ(summarize_sense(sense->data)->key, SenseKey::no_sense);
    EXPECT_EQ(sense->data.size(), 18u);
    EXPECT_EQ(run(RequestSense{.descriptor_format = true, .allocation_length = 252})->data.size(),
              8u);
}

TEST_F(Status, RefusesReportsNobodyDefined) {
    set_up();
    EXPECT_EQ(run(ReportLuns{.select = SelectReport{0x33}, .allocation_length = 64})->code(),
              0x52400u);
    EXPECT_TRUE(
        run(ReportLuns{.select = SelectReport::well_known, .allocation_length = 64})->good());
}

TEST_F(Status, PassesItsSelfTest) {
    set_up();
    EXPECT_TRUE(run(SendDiagnostic{.self_test = true})->good());
    EXPECT_EQ(run(SendDiagnostic{.parameter_length = 8}, test::filled(8, 0))->code(), 0x52400u);
    EXPECT_TRUE(
        run(ReceiveDiagnosticResults{.page_code_valid = true, .allocation_length = 64})->good());
    EXPECT_TRUE(run(LogSense{.page_control = 1, .allocation_length = 64})->good());
    EXPECT_TRUE(run(LogSense{.page_code = 0x2f, .allocation_length = 64})->good());
    EXPECT_EQ(run(LogSense{.page_code = 0x0d, .allocation_length = 64})->code(), 0x52400u);
}

}  // namespace
}  // namespace weft::scsi
