// SPDX-License-Identifier: Apache-2.0
// Command blocks as sg3_utils and libiscsi build them when asked for distinctive values.
#include <gtest/gtest.h>

#include "support/header_walk.hpp"
#include "wire/scsi.hpp"

namespace weft::wire {
namespace {

using test::HeaderWalk;

TEST(ScsiOperation, TellsTheLengthOfItsCommandBlock) {
    EXPECT_EQ(command_block_size(ScsiOperation::test_unit_ready), 6u);
    EXPECT_EQ(command_block_size(ScsiOperation::read_10), 10u);
    EXPECT_EQ(command_block_size(ScsiOperation::mode_sense_10), 10u);
    EXPECT_EQ(command_block_size(ScsiOperation::read_12), 12u);
    EXPECT_EQ(command_block_size(ScsiOperation::service_action_in_16), 16u);
    EXPECT_EQ(command_block_size(ScsiOperation::variable_length), 0u);
    EXPECT_EQ(command_block_size(ScsiOperation{0xc0}), 0u);
}

TEST(BlockCommands, AreReadAndWrittenAsOthersDo) {
    HeaderWalk walk("scsi/block_commands.hex");
    walk.expect(Read6{.block_address = 0x123456, .block_count = 3});
    walk.expect(Write6{.block_address = 0x1f0102});
    walk.expect(Read10{.flags = {.protect = 5, .disable_page_out = true, .force_unit_access = true},
                       .block_address = 0x12345678,
                       .group_number = 9,
                       .block_count = 0x4321});
    walk.expect(Write10{.flags = {.protect = 2, .force_unit_access = true},
                        .block_address = 0x12345678,
                        .group_number = 17,
                        .block_count = 0x4321});
    walk.expect(WriteAndVerify10{
        .flags = {.protect = 4, .disable_page_out = true, .byte_check = ByteCheck::every_block},
        .block_address = 0x12345678,
        .group_number = 3,
        .block_count = 1});
    walk.expect(Verify10{.flags = {.protect = 1, .disable_page_out = true},
                         .block_address = 0x12345678,
                         .block_count = 0x4321});
    walk.expect(WriteSame10{.flags = {.protect = 5, .anchor = true, .unmap = true},
                            .block_address = 0x12345678,
                            .group_number = 9,
                            .block_count = 0x321});
    walk.expect(Prefetch10{.flags = {.immediate = true},
                           .block_address = 0x12345678,
                           .group_number = 6,
                           .block_count = 0x4321});
    walk.expect(SynchronizeCache10{.flags = {.immediate = true},
                                   .block_address = 0x12345678,
                                   .group_number = 5,
                                   .block_count = 0x1234});
    walk.expect(Read12{.flags = {.protect = 1, .disable_page_out = true},
                       .block_address = 0x12345678,
                       .block_count = 0x4321,
                       .group_number = 6});
    walk.expect(
        Write12{.flags = {.protect = 3, .disable_page_out = true, .force_unit_access = true},
                .block_address = 0x12345678,
                .block_count = 0x4321,
                .group_number = 31});
    walk.expect(WriteAndVerify12{
        .flags = {.protect = 6, .disable_page_out = true, .byte_check = ByteCheck::every_block},
        .block_address = 0x12345678,
        .block_count = 0x21,
        .group_number = 12});
    walk.expect(Verify12{
        .flags = {.protect = 1, .disable_page_out = true, .byte_check = ByteCheck::every_block},
        .block_address = 0x12345678,
        .block_count = 0x21});
    walk.expect(Read16{.flags = {.protect = 7, .force_unit_access = true},
                       .block_address = 0x0102030405060708,
                       .block_count = 0x4321,
                       .group_number = 8});
    const TransferFlags write_flags{
        .protect = 1, .disable_page_out = true, .force_unit_access = true};
    walk.expect(Write16{
        .flags = write_flags, .block_address = 0x123456789a, .block_count = 1, .group_number = 5});
    walk.expect(OrWrite16{
        .flags = write_flags, .block_address = 0x123456789a, .block_count = 1, .group_number = 5});
    walk.expect(WriteAndVerify16{
        .flags = {.protect = 4, .disable_page_out = true, .byte_check = ByteCheck::single_block},
        .block_address = 0x123456789a,
        .block_count = 1,
        .group_number = 3});
    walk.expect(Verify16{
        .flags = {.protect = 1, .disable_page_out = true, .byte_check = ByteCheck::single_block},
        .block_address = 0x123456789a,
        .block_count = 0x4321,
        .group_number = 4});
    walk.expect(WriteSame16{.flags = {.protect = 5, .unmap = true, .no_data_buffer = true},
                            .block_address = 0x123456789abc,
                            .block_count = 0x07654321,
                            .group_number = 9});
    walk.expect(Prefetch16{.flags = {.immediate = true},
                           .block_address = 0x123456789a,
                           .block_count = 0x4321,
                           .group_number = 6});
    walk.expect(SynchronizeCache16{
        .block_address = 0x123456789abc, .block_count = 0x12345678, .group_number = 5});
    walk.expect(CompareAndWrite{
        .flags = {.protect = 3, .disable_page_out = true, .force_unit_access = true},
        .block_address = 0x123456789a,
        .block_count = 2,
        .group_number = 7});
    walk.expect(WriteAtomic16{.flags = write_flags,
                              .block_address = 0x123456789a,
                              .atomic_boundary = 16,
                              .block_count = 16,
                              .group_number = 5});
    walk.expect_end();
}

TEST(BlockCommands, Of6OctetsCountZeroAs256) {
    EXPECT_EQ((Read6{.block_count = 0}).blocks(), 256u);
    EXPECT_EQ((Write6{.block_count = 255}).blocks(), 255u);
}

TEST(BlockCommands, Of32OctetsAreReadAndWrittenAsOthersDo) {
    HeaderWalk walk("scsi/block_commands_32.hex");
    auto start = decode<VariableLengthStart>(walk.rest());
    ASSERT_TRUE(start);
    EXPECT_EQ(*start, (VariableLengthStart{.additional_length = 24,
                                           .action = VariableLengthAction::write_32}));
    walk.expect(
        Write32{.group_number = 5,
                .flags = {.protect = 1, .disable_page_out = true, .force_unit_access = true},
                .block_address = 0x123456789a,
                .expected_reference_tag = 0x11223344,
                .expected_application_tag = 0x5566,
                .application_tag_mask = 0x7788,
                .block_count = 1});
    walk.expect(WriteSame32{.group_number = 17,
                            .flags = {.protect = 3, .anchor = true, .unmap = true},
                            .block_address = 0x123456789abc,
                            .block_count = 0x07654321});
    walk.expect_end();
}

TEST(BlockCommands, AreNotTakenForOneAnother) {
    auto read = encoded(Read16{});
    EXPECT_TRUE(decode<Read16>(read));
    EXPECT_EQ(decode<Write16>(read).error(), (Error{.code = Code::malformed, .where = 0}));
    EXPECT_EQ(decode<Read32>(encoded(Write32{})).error(),
              (Error{.code = Code::malformed, .where = 8}));
}

TEST(MediumCommands, AreReadAndWrittenAsOthersDo) {
    HeaderWalk walk("scsi/medium_commands.hex");
    walk.expect(
        StartStopUnit{.immediate = true, .power_condition_modifier = 2, .power_condition = 3});
    walk.expect(StartStopUnit{.no_flush = true, .load_eject = true, .start = true});
    walk.expect(PreventAllowMediumRemoval{.prevent = true});
    walk.expect(
        FormatUnit{.protection_information = 2, .format_data = true, .complete_list = true});
    walk.expect(Sanitize{.immediate = true,
                         .allow_unrestricted_exit = true,
                         .action = SanitizeAction::overwrite,
                         .parameter_length = 8});
    walk.expect(Sanitize{.immediate = true, .action = SanitizeAction::exit_failure_mode});
    walk.expect(ReadDefectData10{.primary_list = true, .format = 5, .allocation_length = 0x1234});
    walk.expect(ReadDefectData12{.grown_list = true,
                                 .format = 5,
                                 .first_descriptor = 0x01020304,
                                 .allocation_length = 0x12345678});
    walk.expect(SanitizeOverwrite{.invert = true, .overwrite_count = 3, .pattern_length = 4});
    walk.expect(DefectListHeader10{.grown_list = true, .format = 5, .list_length = 16});
    walk.expect_end();
}

// Nothing at hand reads or writes this one: the octets are our own understanding of SBC-4.
TEST(DefectListHeader12, IsReadAndWritten) {
    test::expect_header(
        test::from_hex("00 0d 1234 00000010"),
        DefectListHeader12{
            .grown_list = true, .format = 5, .generation = 0x1234, .list_length = 16});
}

TEST(PrimaryCommands, AreReadAndWrittenAsOthersDo) {
    HeaderWalk walk("scsi/primary_commands.hex");
    walk.expect(TestUnitReady{});
    walk.expect(Reserve6{});
    walk.expect(Release6{});
    walk.expect(
        Reserve10{.third_party = true, .long_identifier = true, .parameter_length = 0x1234});
    walk.expect(Release10{});
    walk.expect(RequestSense{.descriptor_format = true, .allocation_length = 252});
    walk.expect(SendDiagnostic{.self_test = true});
    walk.expect(SendDiagnostic{.self_test_code = 5});
    walk.expect(ReceiveDiagnosticResults{
        .page_code_valid = true, .page_code = 1, .allocation_length = 0xfffc});
    walk.expect(LogSense{.page_control = 2,
                         .page_code = 0x2f,
                         .subpage_code = 1,
                         .parameter_pointer = 0x1234,
                         .allocation_length = 0x1000});
    walk.expect(LogSelect{.parameter_code_reset = true, .page_control = 3, .page_code = 0x2f});
    walk.expect(Inquiry{.vital_product_data = true, .page_code = 0xb0, .allocation_length = 64});
    walk.expect(ModeSense6{.no_block_descriptors = true,
                           .page_control = ModePageControl::defaults,
                           .page = ModePageCode::caching,
                           .allocation_length = 200});
    walk.expect(ModeSense10{.long_addresses_accepted = true,
                            .page_control = ModePageControl::changeable,
                            .page = ModePageCode::control,
                            .subpage = 1,
                            .allocation_length = 0x1234});
    walk.expect(ModeSelect6{.page_format = true, .parameter_length = 16});
    walk.expect(ModeSelect10{.page_format = true, .parameter_length = 20});
    walk.expect_end();
}

TEST(ControlOctet, ShowsNaca) {
    auto octets = encoded(TestUnitReady{.control = {.normal_auto_contingent_allegiance = true}});
    EXPECT_EQ(octets[5], std::byte{0x04});
}

}  // namespace
}  // namespace weft::wire
