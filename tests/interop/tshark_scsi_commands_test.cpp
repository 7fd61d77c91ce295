// SPDX-License-Identifier: Apache-2.0
// SCSI command blocks inside iSCSI, read by Wireshark's dissectors scsi and scsi_sbc. Only what
// these dissectors take apart is asked for.
#include "interop/scsi_talk.hpp"

namespace weft::wire {
namespace {

TEST(ScsiAsTsharkSeesIt, Transfers) {
    ScsiTalk talk;
    // The dissector shows 20 of the 21 bits.
    auto read_6 = talk.command(Read6{.block_address = 0x0abcde, .block_count = 9});
    auto read_10 = talk.command(
        Read10{.flags = {.protect = 5, .disable_page_out = true, .force_unit_access = true},
               .block_address = 0x12345678,
               .group_number = 9,
               .block_count = 0x4321});
    auto write_12 = talk.command(Write12{.flags = {.protect = 3, .disable_page_out = true},
                                         .block_address = 0x12345678,
                                         .block_count = 0x87654321,
                                         .group_number = 17});
    auto read_16 = talk.command(Read16{.flags = {.force_unit_access = true},
                                       .block_address = 0x0102030405060708,
                                       .block_count = 0x87654321,
                                       .group_number = 31});
    auto frames = talk.without_complaint();
    expect_fields(test::frame(frames, read_6), {{"scsi_sbc.opcode", 0x08},
                                                {"scsi_sbc.rdwr6.lba", 0x0abcde},
                                                {"scsi_sbc.rdwr6.xferlen", 9}});
    expect_fields(test::frame(frames, read_10), {{"scsi_sbc.opcode", 0x28},
                                                 {"scsi_sbc.rdprotect", 5},
                                                 {"scsi_sbc.dpo", 1},
                                                 {"scsi_sbc.fua", 1},
                                                 {"scsi_sbc.rdwr10.lba", 0x12345678},
                                                 {"scsi_sbc.group", 9},
                                                 {"scsi_sbc.rdwr10.xferlen", 0x4321}});
    expect_fields(test::frame(frames, write_12), {{"scsi_sbc.opcode", 0xaa},
                                                  {"scsi_sbc.dpo", 1},
                                                  {"scsi_sbc.fua", 0},
                                                  {"scsi_sbc.rdwr10.lba", 0x12345678},
                                                  {"scsi_sbc.rdwr12.xferlen", 0x87654321},
                                                  {"scsi_sbc.group", 17}});
    expect_fields(test::frame(frames, read_16), {{"scsi_sbc.opcode", 0x88},
                                                 {"scsi_sbc.dpo", 0},
                                                 {"scsi_sbc.fua", 1},
                                                 {"scsi_sbc.rdwr12.xferlen", 0x87654321},
                                                 {"scsi_sbc.group", 31}});
    EXPECT_EQ(test::frame(frames, read_16).text("scsi_sbc.rdwr16.lba"), "01:02:03:04:05:06:07:08");
}

TEST(ScsiAsTsharkSeesIt, VerificationAndCache) {
    ScsiTalk talk;
    auto verify_16 = talk.command(Verify16{
        .flags = {.protect = 1, .disable_page_out = true, .byte_check = ByteCheck::every_block},
        .block_address = 0x123456789a,
        .block_count = 0x4321,
        .group_number = 4});
    auto write_same_16 =
        talk.command(WriteSame16{.flags = {.protect = 5, .anchor = true, .unmap = true},
                                 .block_address = 0x123456789a,
                                 .block_count = 0x4321,
                                 .group_number = 9});
    auto synchronize_10 = talk.command(SynchronizeCache10{.flags = {.immediate = true},
                                                          .block_address = 0x12345678,
                                                          .group_number = 5,
                                                          .block_count = 0x1234});
    auto prefetch_16 = talk.command(Prefetch16{.flags = {.immediate = true},
                                               .block_address = 0x123456789a,
                                               .block_count = 0x4321,
                                               .group_number = 6});
    auto compare_and_write = talk.command(CompareAndWrite{.flags = {.force_unit_access = true},
                                                          .block_address = 0x123456789a,
                                                          .block_count = 2,
                                                          .group_number = 7});
    auto frames = talk.without_complaint();
    expect_fields(test::frame(frames, verify_16), {{"scsi_sbc.opcode", 0x8f},
                                                   {"scsi_sbc.vrprotect", 1},
                                                   {"scsi_sbc.dpo", 1},
                                                   {"scsi_sbc.bytchk", 1},
                                                   {"scsi_sbc.verify.lba64", 0x123456789a},
                                                   {"scsi_sbc.verify.vlen32", 0x4321},
                                                   {"scsi_sbc.group", 4}});
    expect_fields(test::frame(frames, write_same_16), {{"scsi_sbc.opcode", 0x93},
                                                       {"scsi_sbc.wrprotect", 5},
                                                       {"scsi_sbc.anchor", 1},
                                                       {"scsi_sbc.unmap", 1},
                                                       {"scsi_sbc.rdwr12.xferlen", 0x4321},
                                                       {"scsi_sbc.group", 9}});
    expect_fields(test::frame(frames, synchronize_10), {{"scsi_sbc.opcode", 0x35},
                                                        {"scsi_sbc.synccache.immediate", 1},
                                                        {"scsi_sbc.rdwr10.lba", 0x12345678},
                                                        {"scsi_sbc.rdwr10.xferlen", 0x1234},
                                                        {"scsi_sbc.group", 5}});
    expect_fields(test::frame(frames, prefetch_16), {{"scsi_sbc.opcode", 0x90},
                                                     {"scsi_sbc.prefetch.immediate", 1},
                                                     {"scsi_sbc.rdwr12.xferlen", 0x4321},
                                                     {"scsi_sbc.group", 6}});
    expect_fields(test::frame(frames, compare_and_write),
                  {{"scsi_sbc.opcode", 0x89}, {"scsi_sbc.fua", 1}, {"scsi_sbc.group", 7}});
    for (auto number : {write_same_16, prefetch_16, compare_and_write})
        EXPECT_EQ(test::frame(frames, number).text("scsi_sbc.rdwr16.lba"),
                  "00:00:00:12:34:56:78:9a");
}

TEST(ScsiAsTsharkSeesIt, MediumCommands) {
    ScsiTalk talk;
    auto start_stop =
        talk.command(StartStopUnit{.immediate = true, .power_condition = 3, .load_eject = true});
    auto prevent = talk.command(PreventAllowMediumRemoval{.prevent = true});
    auto format = talk.command(
        FormatUnit{.protection_information = 2, .format_data = true, .defect_list_format = 5});
    auto sanitize = talk.writes(
        Sanitize{.immediate = true,
                 .allow_unrestricted_exit = true,
                 .action = SanitizeAction::overwrite,
                 .parameter_length = 8},
        join({encoded(SanitizeOverwrite{.invert = true, .overwrite_count = 3, .pattern_length = 4}),
              from_hex("deadbeef")}));
    auto frames = talk.without_complaint();
    expect_fields(test::frame(frames, start_stop), {{"scsi_sbc.opcode", 0x1b},
                                                    {"scsi_sbc.ssu.immediate", 1},
                                                    {"scsi_sbc.ssu.pwr", 3},
                                                    {"scsi_sbc.ssu.loej", 1},
                                                    {"scsi_sbc.ssu.start", 0}});
    expect_fields(test::frame(frames, prevent), {{"scsi.prevent_allow.prevent", 1}});
    expect_fields(test::frame(frames, format), {{"scsi_sbc.format_unit.fmtpinfo", 1},
                                                {"scsi_sbc.format_unit.fmtdata", 1},
                                                {"scsi_sbc.defect_list_format", 5}});
    expect_fields(test::frame(frames, sanitize), {{"scsi_sbc.sanitize.sa", 1},
                                                  {"scsi_sbc.sanitize.immed", 1},
                                                  {"scsi_sbc.sanitize.ause", 1},
                                                  {"scsi_sbc.sanitize.invert", 1},
                                                  {"scsi_sbc.sanitize.overwrite_count", 3},
                                                  {"scsi_sbc.sanitize.pattern_length", 4}});
}

}  // namespace
}  // namespace weft::wire
