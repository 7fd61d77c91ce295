// SPDX-License-Identifier: Apache-2.0
// Every iSCSI PDU against octets of others: what initiators and targets in use send, and Linux's
// own structs for the PDUs none of them sends.
#include <gtest/gtest.h>

#include "support/header.hpp"
#include "wire/iscsi.hpp"

namespace weft::wire {
namespace {

using test::expect_header;
using test::golden;

constexpr auto unit_1 = LogicalUnit{0x0001'0000'0000'0000};
constexpr auto unit_3 = LogicalUnit{0x0003'0000'0000'0000};
/// What the C program put into Linux's structs.
constexpr TargetNumbers linux_numbers{.status_number = 0x01020304,
                                      .expected_command_number = 0x11121314,
                                      .max_command_number = 0x21222324};

Octets<16> command_block(const char* hex) {
    Octets<16> block{};
    auto octets = test::from_hex(hex);
    for (std::size_t i = 0; i < octets.size(); ++i)
        block[i] = std::to_integer<std::uint8_t>(octets[i]);
    return block;
}

TEST(BasicHeader, TellsTheLengthsOfWhatFollows) {
    auto octets = golden("iscsi/login_request.hex");
    BasicHeader expected{.immediate = true,
                         .opcode = IscsiOpcode::login_request,
                         .final = true,
                         .data_length = 395,
                         .logical_unit = LogicalUnit{0x8067eb7500000000},
                         .task_tag = InitiatorTaskTag{0x2d2b19b1}};
    auto header = decode<BasicHeader>(octets);
    ASSERT_TRUE(header);
    EXPECT_EQ(*header, expected) << to_text(*header);
    EXPECT_EQ(basic_header_size + header->padded_data_size(), octets.size());

    header = decode<BasicHeader>(golden("iscsi/scsi_command_bidirectional.hex"));
    ASSERT_TRUE(header);
    EXPECT_EQ(header->additional_header_size(), 28u);
    EXPECT_EQ(header->padded_data_size(), 0u);
}

TEST(IscsiOpcode, TellsWhoSendsIt) {
    EXPECT_FALSE(sent_by_target(IscsiOpcode::snack_request));
    EXPECT_TRUE(sent_by_target(IscsiOpcode::nop_in));
    EXPECT_TRUE(sent_by_target(IscsiOpcode::reject));
}

TEST(NopOutPdu, PingsAndAnswers) {
    expect_header(
        golden("iscsi/nop_out_ping.hex"),
        NopOutPdu{.immediate = true,
                  .task_tag = InitiatorTaskTag{0x14000000},
                  .transfer_tag = TargetTransferTag::none,
                  .numbers = {.command_number = 0x13, .expected_status_number = 0xfa9a614e}});
    expect_header(
        golden("iscsi/nop_out_answer.hex"),
        NopOutPdu{.immediate = true,
                  .task_tag = InitiatorTaskTag::none,
                  .transfer_tag = TargetTransferTag{4},
                  .numbers = {.command_number = 0x15e406f3, .expected_status_number = 3}});
}

TEST(NopInPdu, PingsAndAnswers) {
    expect_header(golden("iscsi/nop_in_ping.hex"),
                  NopInPdu{.task_tag = InitiatorTaskTag::none,
                           .transfer_tag = TargetTransferTag{4},
                           .numbers = {.status_number = 3,
                                       .expected_command_number = 0x15e406f3,
                                       .max_command_number = 0x15e40773}});
    expect_header(golden("iscsi/nop_in_answer.hex"),
                  NopInPdu{.logical_unit = LogicalUnit{~0ull},
                           .task_tag = InitiatorTaskTag{0x14000000},
                           .transfer_tag = TargetTransferTag::none,
                           .numbers = {.status_number = 0xfa9a614e,
                                       .expected_command_number = 0x13,
                                       .max_command_number = 0x52}});
}

TEST(ScsiCommandPdu, Reads) {
    expect_header(
        golden("iscsi/scsi_command_read.hex"),
        ScsiCommandPdu{.final = true,
                       .read = true,
                       .attribute = TaskAttribute::simple,
                       .logical_unit = unit_1,
                       .task_tag = InitiatorTaskTag{0x1567eae0},
                       .expected_transfer_length = 512,
                       .numbers = {.command_number = 0x1e594642, .expected_status_number = 6},
                       .command_block = command_block("28 00 00000000 00 0001 00")});
}

TEST(ScsiCommandPdu, WritesWithImmediateData) {
    expect_header(
        golden("iscsi/scsi_command_write.hex"),
        ScsiCommandPdu{.final = true,
                       .write = true,
                       .attribute = TaskAttribute::simple,
                       .data_length = 16,
                       .logical_unit = unit_1,
                       .task_tag = InitiatorTaskTag{0x08eeee6e},
                       .expected_transfer_length = 16,
                       .numbers = {.command_number = 0x41549078, .expected_status_number = 10},
                       .command_block = command_block("15 10 0000 10 00 00000000 000000 01 0000")});
}

TEST(ScsiCommandPdu, GoesBothWays) {
    expect_header(
        golden("iscsi/scsi_command_bidirectional.hex"),
        ScsiCommandPdu{
            .final = true,
            .read = true,
            .write = true,
            .attribute = TaskAttribute::ordered,
            .additional_header_words = 7,
            .logical_unit = *spell_logical_unit(258),
            .task_tag = InitiatorTaskTag{0x0a0b0c0d},
            .expected_transfer_length = 0x2000,
            .numbers = {.command_number = 0x51525354, .expected_status_number = 0x61626364},
            .command_block = command_block("7f 00 00000000 05 18 000b 38 00 000000 12")});
}

TEST(ScsiCommandPdu, HasThePriorityOfRfc7144) {
    auto octets = encoded(ScsiCommandPdu{.priority = 9});
    EXPECT_EQ(octets[2], std::byte{0x90});
    EXPECT_EQ(decode<ScsiCommandPdu>(octets)->priority, 9);
}

TEST(ScsiResponsePdu, TellsStatusAndResidual) {
    expect_header(golden("iscsi/scsi_response_overflow.hex"),
                  ScsiResponsePdu{.residual = Residual::overflow,
                                  .task_tag = InitiatorTaskTag{0x736c2b6c},
                                  .numbers = {.status_number = 3,
                                              .expected_command_number = 0x548e381b,
                                              .max_command_number = 0x548e389b},
                                  .residual_count = 512});
    expect_header(golden("iscsi/scsi_response_reservation_conflict.hex"),
                  ScsiResponsePdu{.status = ScsiStatus::reservation_conflict,
                                  .task_tag = InitiatorTaskTag{0x359fb915},
                                  .numbers = {.status_number = 3,
                                              .expected_command_number = 0x76019273,
                                              .max_command_number = 0x760192f3}});
    expect_header(golden("iscsi/scsi_response_sense.hex"),
                  ScsiResponsePdu{.residual = Residual::underflow,
                                  .status = ScsiStatus::check_condition,
                                  .data_length = 20,
                                  .task_tag = InitiatorTaskTag{0x08eeee71},
                                  .numbers = {.status_number = 13,
                                              .expected_command_number = 0x4154907c,
                                              .max_command_number = 0x415490fc},
                                  .residual_count = 512});
    expect_header(golden("iscsi/scsi_response_bidirectional.hex"),
                  ScsiResponsePdu{.read_residual = Residual::underflow,
                                  .residual = Residual::overflow,
                                  .status = ScsiStatus::check_condition,
                                  .task_tag = InitiatorTaskTag{0x0a0b0c0d},
                                  .numbers = linux_numbers,
                                  .expected_data_number = 9,
                                  .read_residual_count = 0x200,
                                  .residual_count = 0x1000});
}

TEST(DataOutPdu, AnswersReadyToTransfer) {
    expect_header(golden("iscsi/ready_to_transfer.hex"),
                  ReadyToTransferPdu{.logical_unit = unit_1,
                                     .task_tag = InitiatorTaskTag{0x73a112c9},
                                     .transfer_tag = TargetTransferTag{0x50c83828},
                                     .numbers = {.status_number = 6,
                                                 .expected_command_number = 0x27c824a7,
                                                 .max_command_number = 0x27c82527},
                                     .buffer_offset = 0x2000,
                                     .desired_length = 0x1f000});
    expect_header(golden("iscsi/data_out.hex"),
                  DataOutPdu{.data_length = 0x2000,
                             .logical_unit = unit_1,
                             .task_tag = InitiatorTaskTag{0x73a112c9},
                             .transfer_tag = TargetTransferTag{0x50c83828},
                             .expected_status_number = 7,
                             .data_number = 1,
                             .buffer_offset = 0x4000});
}

TEST(DataInPdu, MayCarryTheStatus) {
    expect_header(golden("iscsi/data_in_with_status.hex"),
                  DataInPdu{.final = true,
                            .residual = Residual::underflow,
                            .has_status = true,
                            .data_length = 40,
                            .task_tag = InitiatorTaskTag{0x5757883c},
                            .transfer_tag = TargetTransferTag::none,
                            .numbers = {.status_number = 3,
                                        .expected_command_number = 0x0bab83da,
                                        .max_command_number = 0x0bab845a},
                            .residual_count = 24});
}

TEST(DataInPdu, MayAskForAnAcknowledgement) {
    expect_header(golden("iscsi/data_in_acknowledge.hex"),
                  DataInPdu{.final = true,
                            .acknowledge = true,
                            .data_length = 0x2000,
                            .logical_unit = unit_3,
                            .task_tag = InitiatorTaskTag{0x0a0b0c0d},
                            .transfer_tag = TargetTransferTag{0x55667788},
                            .numbers = {.expected_command_number = 0x11121314,
                                        .max_command_number = 0x21222324},
                            .data_number = 8,
                            .buffer_offset = 0x10000});
}

TEST(SnackRequestPdu, AsksAgainAndAcknowledges) {
    expect_header(golden("iscsi/snack_data.hex"),
                  SnackRequestPdu{.type = SnackType::data_or_ready_to_transfer,
                                  .logical_unit = unit_3,
                                  .task_tag = InitiatorTaskTag{0x0a0b0c0d},
                                  .transfer_or_snack_tag = 0xffffffff,
                                  .expected_status_number = 0x31323334,
                                  .first_of_run = 5,
                                  .run_length = 2});
    expect_header(golden("iscsi/snack_data_acknowledgement.hex"),
                  SnackRequestPdu{.type = SnackType::data_acknowledgement,
                                  .logical_unit = unit_3,
                                  .task_tag = InitiatorTaskTag::none,
                                  .transfer_or_snack_tag = 0x55667788,
                                  .expected_status_number = 0x31323334,
                                  .first_of_run = 0x41424344});
}

TEST(TaskManagementPdus, AskAndAnswer) {
    expect_header(golden("iscsi/task_management_request.hex"),
                  TaskManagementRequestPdu{
                      .immediate = true,
                      .function = TaskManagementFunction::logical_unit_reset,
                      .logical_unit = unit_1,
                      .task_tag = InitiatorTaskTag{0x10bcb5ca},
                      .referenced_task_tag = InitiatorTaskTag::none,
                      .numbers = {.command_number = 0x2da4b686, .expected_status_number = 0x13}});
    expect_header(golden("iscsi/task_management_response.hex"),
                  TaskManagementResponsePdu{.result = TaskManagementResult::function_not_supported,
                                            .task_tag = InitiatorTaskTag{0x10bcb5c2},
                                            .numbers = {.status_number = 11,
                                                        .expected_command_number = 0x2da4b680,
                                                        .max_command_number = 0x2da4b700}});
}

TEST(LoginPdus, AskAndAnswer) {
    const InitiatorSessionId initiator{0x80, 0x67, 0xeb, 0x75, 0, 0};
    expect_header(
        golden("iscsi/login_request.hex"),
        LoginRequestPdu{.transit = true,
                        .current_stage = LoginStage::operational_negotiation,
                        .next_stage = LoginStage::full_feature_phase,
                        .data_length = 395,
                        .initiator_session_id = initiator,
                        .task_tag = InitiatorTaskTag{0x2d2b19b1},
                        .numbers = {.command_number = 0x7242982f, .expected_status_number = 1}});
    expect_header(golden("iscsi/login_response.hex"),
                  LoginResponsePdu{.transit = true,
                                   .current_stage = LoginStage::operational_negotiation,
                                   .next_stage = LoginStage::full_feature_phase,
                                   .data_length = 300,
                                   .initiator_session_id = initiator,
                                   .target_session_handle = 0x100,
                                   .task_tag = InitiatorTaskTag{0x2d2b19b1},
                                   .numbers = {.expected_command_number = 0x7242982f,
                                               .max_command_number = 0x72429830}});
}

TEST(LoginStatus, HasAClass) {
    EXPECT_EQ(class_of(LoginStatus::success), LoginStatusClass::success);
    EXPECT_EQ(class_of(LoginStatus::target_moved_permanently), LoginStatusClass::redirection);
    EXPECT_EQ(class_of(LoginStatus::session_does_not_exist), LoginStatusClass::initiator_error);
    EXPECT_EQ(class_of(LoginStatus::out_of_resources), LoginStatusClass::target_error);
    auto octets = encoded(LoginResponsePdu{.status = LoginStatus::session_does_not_exist});
    EXPECT_EQ(test::to_hex(ConstBuffer(octets).subspan(36, 2)), "02 0a");
}

TEST(TextPdus, AskAndAnswer) {
    expect_header(
        golden("iscsi/text_request.hex"),
        TextRequestPdu{.immediate = true,
                       .final = true,
                       .data_length = 16,
                       .task_tag = InitiatorTaskTag{0x2d2b19b2},
                       .transfer_tag = TargetTransferTag::none,
                       .numbers = {.command_number = 0x7242982f, .expected_status_number = 1}});
    expect_header(golden("iscsi/text_response.hex"),
                  TextResponsePdu{.final = true,
                                  .data_length = 72,
                                  .task_tag = InitiatorTaskTag{0x2d2b19b2},
                                  .transfer_tag = TargetTransferTag::none,
                                  .numbers = {.status_number = 1,
                                              .expected_command_number = 0x7242982f,
                                              .max_command_number = 0x72429830}});
}

TEST(LogoutPdus, AskAndAnswer) {
    expect_header(
        golden("iscsi/logout_request.hex"),
        LogoutRequestPdu{.immediate = true,
                         .task_tag = InitiatorTaskTag{0x2d2b19b3},
                         .numbers = {.command_number = 0x7242982f, .expected_status_number = 2}});
    expect_header(golden("iscsi/logout_response.hex"),
                  LogoutResponsePdu{.task_tag = InitiatorTaskTag{0x2d2b19b3},
                                    .numbers = {.status_number = 2,
                                                .expected_command_number = 0x7242982f,
                                                .max_command_number = 0x72429830}});
    expect_header(golden("iscsi/logout_response_recovery.hex"),
                  LogoutResponsePdu{.result = LogoutResult::recovery_not_supported,
                                    .task_tag = InitiatorTaskTag{0x0a0b0c0d},
                                    .numbers = linux_numbers,
                                    .wait_seconds = 2,
                                    .retain_seconds = 20});
}

TEST(AsynchronousMessagePdu, AnnouncesADroppedConnection) {
    expect_header(golden("iscsi/asynchronous_message.hex"),
                  AsynchronousMessagePdu{.logical_unit = unit_3,
                                         .numbers = linux_numbers,
                                         .event = AsynchronousEvent::connection_will_be_dropped,
                                         .parameter1 = 0x0102,
                                         .parameter2 = 2,
                                         .parameter3 = 20});
}

TEST(RejectPdu, CarriesTheHeaderItRefuses) {
    auto octets = golden("iscsi/reject.hex");
    expect_header(octets, RejectPdu{.reason = RejectReason::protocol_error,
                                    .data_length = 48,
                                    .numbers = linux_numbers,
                                    .data_number = 7});
    auto refused = decode<SnackRequestPdu>(ConstBuffer(octets).subspan(basic_header_size));
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->first_of_run, 5u);
}

TEST(IscsiPdu, IsNotTakenForAnother) {
    EXPECT_EQ(decode<NopInPdu>(golden("iscsi/nop_out_ping.hex")).error(),
              (Error{.code = Code::malformed, .where = 0}));
    EXPECT_EQ(decode<DataOutPdu>(golden("iscsi/data_in_with_status.hex")).error().code,
              Code::malformed);
}

TEST(IscsiPdu, IsRefusedIfALengthThatMustBeZeroIsNot) {
    auto octets = golden("iscsi/ready_to_transfer.hex");
    octets[7] = std::byte{4};
    EXPECT_EQ(decode<ReadyToTransferPdu>(octets).error(),
              (Error{.code = Code::malformed, .where = 5}));
    octets = golden("iscsi/text_request.hex");
    octets[4] = std::byte{1};
    EXPECT_EQ(decode<TextRequestPdu>(octets).error(), (Error{.code = Code::malformed, .where = 4}));
}

TEST(IscsiPdu, IsRefusedWithoutTheFinalBitWhereOneMustBe) {
    auto octets = golden("iscsi/logout_request.hex");
    octets[1] = std::byte{0};
    EXPECT_EQ(decode<LogoutRequestPdu>(octets).error(),
              (Error{.code = Code::malformed, .where = 1}));
}

}  // namespace
}  // namespace weft::wire
