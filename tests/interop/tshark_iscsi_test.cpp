// SPDX-License-Identifier: Apache-2.0
// Every iSCSI PDU we can write, read by Wireshark's dissectors iscsi and scsi. What SCSI says
// inside them is in tshark_scsi_commands_test.cpp and tshark_scsi_data_test.cpp.
#include "base/crc32c.hpp"
#include "interop/iscsi_exchange.hpp"

namespace weft::wire {
namespace {

const auto unit = *spell_logical_unit(3);
constexpr auto tag = InitiatorTaskTag{0x0a0b0c0d};
constexpr auto transfer = TargetTransferTag{0x55667788};
constexpr TargetNumbers target_numbers{.status_number = 0x01020304,
                                       .expected_command_number = 0x11121314,
                                       .max_command_number = 0x21222324};
constexpr InitiatorNumbers initiator_numbers{.command_number = 0x31323334,
                                             .expected_status_number = 0x41424344};

Bytes text_of_pairs(std::initializer_list<TextPair> pairs) {
    Bytes text(1000);
    TextWriter writer(text);
    for (auto& pair : pairs) EXPECT_TRUE(writer.add(pair.key, pair.value));
    text.resize(writer.size());
    return text;
}

enum class From : std::uint8_t { client, server };

/// Tshark's reading of one PDU on a connection of its own, about which it has nothing to complain.
DissectedFrame seen(From from, const Bytes& pdu) {
    Capture capture;
    TcpConversation talk(capture, {.server_port = iscsi_port});
    auto number = from == From::client ? talk.client_sends(pdu) : talk.server_sends(pdu);
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), IsEmpty());
    return test::frame(frames, number);
}

/// The same with the command before it that the data belongs to; tshark wants to know it.
DissectedFrame seen_after(const ScsiCommandPdu& command, From from, const Bytes& pdu) {
    Capture capture;
    TcpConversation talk(capture, {.server_port = iscsi_port});
    talk.client_sends(pdu_of(command));
    auto number = from == From::client ? talk.client_sends(pdu) : talk.server_sends(pdu);
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), IsEmpty());
    return test::frame(frames, number);
}
/// A READ(10) or WRITE(10), by its operation code.
ScsiCommandPdu transfer_command(std::uint8_t operation) {
    return {.final = true,
            .read = operation == 0x28,
            .write = operation == 0x2a,
            .attribute = TaskAttribute::simple,
            .logical_unit = unit,
            .task_tag = tag,
            .expected_transfer_length = 512,
            .numbers = initiator_numbers,
            .command_block = {operation, 0, 0, 0, 0, 0, 0, 0, 1}};
}

void expect_target_numbers(const DissectedFrame& frame) {
    expect_fields(frame, {{"iscsi.statsn", 0x01020304},
                          {"iscsi.expcmdsn", 0x11121314},
                          {"iscsi.maxcmdsn", 0x21222324}});
}
void expect_initiator_numbers(const DissectedFrame& frame) {
    expect_fields(frame, {{"iscsi.cmdsn", 0x31323334}, {"iscsi.expstatsn", 0x41424344}});
}

TEST(IscsiAsTsharkSeesIt, NopOut) {
    auto frame = seen(From::client, pdu_of(NopOutPdu{.immediate = true,
                                                     .logical_unit = unit,
                                                     .task_tag = tag,
                                                     .transfer_tag = TargetTransferTag::none,
                                                     .numbers = initiator_numbers},
                                           from_hex("70696e6721")));
    expect_fields(frame, {{"iscsi.opcode", 0x00},
                          {"iscsi.I", 1},
                          {"iscsi.totalahslength", 0},
                          {"iscsi.datasegmentlength", 5},
                          {"iscsi.initiatortasktag", 0x0a0b0c0d},
                          {"iscsi.targettransfertag", 0xffffffff},
                          {"scsi.lun", 3}});
    expect_initiator_numbers(frame);
    EXPECT_EQ(frame.text("iscsi.pingdata"), "70:69:6e:67:21");
    EXPECT_EQ(frame.text("iscsi.padding"), "00:00:00");
}

TEST(IscsiAsTsharkSeesIt, NopIn) {
    auto frame = seen(From::server, pdu_of(NopInPdu{.logical_unit = unit,
                                                    .task_tag = InitiatorTaskTag::none,
                                                    .transfer_tag = transfer,
                                                    .numbers = target_numbers}));
    expect_fields(frame, {{"iscsi.opcode", 0x20},
                          {"iscsi.initiatortasktag", 0xffffffff},
                          {"iscsi.targettransfertag", 0x55667788},
                          {"scsi.lun", 3}});
    expect_target_numbers(frame);
}

TEST(IscsiAsTsharkSeesIt, ScsiCommandAndResponse) {
    Capture capture;
    TcpConversation talk(capture, {.server_port = iscsi_port});
    Octets<16> test_unit_ready{};
    auto command =
        talk.client_sends(pdu_of(ScsiCommandPdu{.final = true,
                                                .read = true,
                                                .attribute = TaskAttribute::head_of_queue,
                                                .logical_unit = unit,
                                                .task_tag = tag,
                                                .expected_transfer_length = 0x1234,
                                                .numbers = initiator_numbers,
                                                .command_block = test_unit_ready}));
    Bytes segment(20);
    auto sense = from_hex("700005000000000a000000002400000000 00");
    ASSERT_TRUE(write_sense_segment(sense, segment));
    auto response = talk.server_sends(pdu_of(ScsiResponsePdu{.residual = Residual::underflow,
                                                             .status = ScsiStatus::check_condition,
                                                             .task_tag = tag,
                                                             .numbers = target_numbers,
                                                             .expected_data_number = 7,
                                                             .residual_count = 0x1234},
                                             segment));
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), IsEmpty());

    auto& asked = test::frame(frames, command);
    expect_fields(asked, {{"iscsi.opcode", 0x01},
                          {"iscsi.I", 0},
                          {"iscsi.scsicommand.F", 1},
                          {"iscsi.scsicommand.R", 1},
                          {"iscsi.scsicommand.W", 0},
                          {"iscsi.scsicommand.attr", 3},
                          {"iscsi.datasegmentlength", 0},
                          {"iscsi.initiatortasktag", 0x0a0b0c0d},
                          {"iscsi.scsicommand.expecteddatatransferlength", 0x1234}});
    EXPECT_THAT(asked.numbers("scsi.lun"), ElementsAre(3, 3)) << "iSCSI's and SCSI's";
    expect_initiator_numbers(asked);

    auto& answered = test::frame(frames, response);
    expect_fields(answered, {{"iscsi.opcode", 0x21},
                             {"iscsi.scsiresponse.o", 0},
                             {"iscsi.scsiresponse.u", 0},
                             {"iscsi.scsiresponse.O", 0},
                             {"iscsi.scsiresponse.U", 1},
                             {"iscsi.scsiresponse.response", 0},
                             {"iscsi.scsiresponse.status", 2},
                             {"iscsi.initiatortasktag", 0x0a0b0c0d},
                             {"iscsi.expdatasn", 7},
                             {"iscsi.scsiresponse.residualcount", 0x1234},
                             {"iscsi.scsiresponse.bidireadresidualcount", 0},
                             {"iscsi.scsiresponse.senselength", 18},
                             {"iscsi.request_frame", command},
                             {"scsi.sns.key", 5},
                             {"scsi.sns.ascascq", 0x2400}});
    expect_target_numbers(answered);
}

TEST(IscsiAsTsharkSeesIt, ScsiCommandWithAdditionalHeaders) {
    auto spillover = from_hex("a0a1a2a3a4a5a6a7a8a9aaabacadaeaf");
    Bytes extended(extended_command_block_size(32));
    ASSERT_TRUE(write_extended_command_block(spillover, extended));
    auto read_length = encoded(BidirectionalReadLength{.expected_transfer_length = 0x12345});
    ScsiCommandPdu command{.final = true,
                           .read = true,
                           .write = true,
                           .attribute = TaskAttribute::ordered,
                           .additional_header_words = 7,
                           .logical_unit = *spell_logical_unit(258),
                           .task_tag = tag,
                           .expected_transfer_length = 0x2000,
                           .numbers = initiator_numbers,
                           .command_block = {0x7f, 0, 0, 0, 0, 0, 0, 0x18, 0, 0x0b}};
    auto frame = seen(From::client, join({encoded(command), extended, read_length}));
    expect_fields(frame, {{"iscsi.totalahslength", 7},
                          {"iscsi.scsicommand.R", 1},
                          {"iscsi.scsicommand.W", 1},
                          {"iscsi.scsicommand.attr", 2},
                          {"iscsi.ahs.bidir.length", 0x12345},
                          {"scsi.lun.address_mode", 1}});
    EXPECT_THAT(frame.numbers("scsi.lun"), ElementsAre(258, 258)) << "iSCSI's and SCSI's";
    EXPECT_EQ(frame.text("iscsi.ahs.extended_cdb"),
              "a0:a1:a2:a3:a4:a5:a6:a7:a8:a9:aa:ab:ac:ad:ae:af");
    EXPECT_THAT(frame.numbers("iscsi.ahs.length"), ElementsAre(17, 5));
    EXPECT_THAT(frame.numbers("iscsi.ahs.type"), ElementsAre(1, 2));
}

TEST(IscsiAsTsharkSeesIt, ResponseToABidirectionalCommand) {
    auto frame = seen(From::server, pdu_of(ScsiResponsePdu{.read_residual = Residual::underflow,
                                                           .residual = Residual::overflow,
                                                           .task_tag = tag,
                                                           .numbers = target_numbers,
                                                           .read_residual_count = 0x200,
                                                           .residual_count = 0x1000}));
    expect_fields(frame, {{"iscsi.scsiresponse.o", 0},
                          {"iscsi.scsiresponse.u", 1},
                          {"iscsi.scsiresponse.O", 1},
                          {"iscsi.scsiresponse.U", 0},
                          {"iscsi.scsiresponse.bidireadresidualcount", 0x200},
                          {"iscsi.scsiresponse.residualcount", 0x1000}});
}

TEST(IscsiAsTsharkSeesIt, DataOut) {
    auto frame = seen_after(transfer_command(0x2a), From::client,
                            pdu_of(DataOutPdu{.final = true,
                                              .logical_unit = unit,
                                              .task_tag = tag,
                                              .transfer_tag = transfer,
                                              .expected_status_number = 0x41424344,
                                              .data_number = 5,
                                              .buffer_offset = 0x4000},
                                   Bytes(512)));
    expect_fields(frame, {{"iscsi.opcode", 0x05},
                          {"iscsi.scsidata.F", 1},
                          {"iscsi.datasegmentlength", 512},
                          {"iscsi.initiatortasktag", 0x0a0b0c0d},
                          {"iscsi.targettransfertag", 0x55667788},
                          {"iscsi.expstatsn", 0x41424344},
                          {"iscsi.datasn", 5},
                          {"iscsi.bufferOffset", 0x4000}});
    EXPECT_THAT(frame.numbers("scsi.lun"), ElementsAre(3, 3)) << "iSCSI's and SCSI's";
}

TEST(IscsiAsTsharkSeesIt, DataIn) {
    auto frame = seen_after(transfer_command(0x28), From::server,
                            pdu_of(DataInPdu{.final = true,
                                             .acknowledge = true,
                                             .residual = Residual::overflow,
                                             .has_status = true,
                                             .status = ScsiStatus::condition_met,
                                             .logical_unit = unit,
                                             .task_tag = tag,
                                             .transfer_tag = transfer,
                                             .numbers = target_numbers,
                                             .data_number = 5,
                                             .buffer_offset = 0x4000,
                                             .residual_count = 0x99},
                                   Bytes(512)));
    expect_fields(frame, {{"iscsi.opcode", 0x25},
                          {"iscsi.scsidata.F", 1},
                          {"iscsi.scsidata.A", 1},
                          {"iscsi.scsidata.O", 1},
                          {"iscsi.scsidata.U", 0},
                          {"iscsi.scsidata.S", 1},
                          {"iscsi.scsiresponse.status", 4},
                          {"iscsi.datasegmentlength", 512},
                          {"iscsi.initiatortasktag", 0x0a0b0c0d},
                          {"iscsi.targettransfertag", 0x55667788},
                          {"iscsi.datasn", 5},
                          {"iscsi.bufferOffset", 0x4000},
                          {"iscsi.scsidata.readresidualcount", 0x99}});
    expect_target_numbers(frame);
}

TEST(IscsiAsTsharkSeesIt, ReadyToTransfer) {
    auto frame = seen(From::server, pdu_of(ReadyToTransferPdu{.logical_unit = unit,
                                                              .task_tag = tag,
                                                              .transfer_tag = transfer,
                                                              .numbers = target_numbers,
                                                              .ready_number = 2,
                                                              .buffer_offset = 0x4000,
                                                              .desired_length = 0x8000}));
    expect_fields(frame, {{"iscsi.opcode", 0x31},
                          {"iscsi.initiatortasktag", 0x0a0b0c0d},
                          {"iscsi.targettransfertag", 0x55667788},
                          {"iscsi.r2tsn", 2},
                          {"iscsi.bufferOffset", 0x4000},
                          {"iscsi.desireddatalength", 0x8000},
                          {"scsi.lun", 3}});
    expect_target_numbers(frame);
}

TEST(IscsiAsTsharkSeesIt, SnackRequest) {
    auto frame = seen(From::client, pdu_of(SnackRequestPdu{.type = SnackType::resegmented_data,
                                                           .logical_unit = unit,
                                                           .task_tag = tag,
                                                           .transfer_or_snack_tag = 0x55667788,
                                                           .expected_status_number = 0x41424344,
                                                           .first_of_run = 5,
                                                           .run_length = 2}));
    expect_fields(frame, {{"iscsi.opcode", 0x10},
                          {"iscsi.snack.type", 3},
                          {"iscsi.initiatortasktag", 0x0a0b0c0d},
                          {"iscsi.targettransfertag", 0x55667788},
                          {"iscsi.expstatsn", 0x41424344},
                          {"iscsi.snack.begrun", 5},
                          {"iscsi.snack.runlength", 2}});
}

TEST(IscsiAsTsharkSeesIt, TaskManagement) {
    auto request =
        seen(From::client,
             pdu_of(TaskManagementRequestPdu{.immediate = true,
                                             .function = TaskManagementFunction::task_reassign,
                                             .logical_unit = unit,
                                             .task_tag = tag,
                                             .referenced_task_tag = InitiatorTaskTag{0x51525354},
                                             .numbers = initiator_numbers,
                                             .referenced_command_number = 0x61626364,
                                             .expected_data_number = 9}));
    expect_fields(request, {{"iscsi.opcode", 0x02},
                            {"iscsi.I", 1},
                            {"iscsi.taskmanfun.function", 8},
                            {"iscsi.initiatortasktag", 0x0a0b0c0d},
                            {"iscsi.taskmanfun.referencedtasktag", 0x51525354},
                            {"iscsi.refcmdsn", 0x61626364},
                            {"scsi.lun", 3}});
    expect_initiator_numbers(request);

    auto response = seen(
        From::server,
        pdu_of(TaskManagementResponsePdu{.result = TaskManagementResult::reassignment_not_supported,
                                         .task_tag = tag,
                                         .numbers = target_numbers}));
    expect_fields(response, {{"iscsi.opcode", 0x22},
                             {"iscsi.taskmanfun.response", 4},
                             {"iscsi.initiatortasktag", 0x0a0b0c0d}});
    expect_target_numbers(response);
}

TEST(IscsiAsTsharkSeesIt, Login) {
    auto request = seen(From::client,
                        pdu_of(LoginRequestPdu{.transit = true,
                                               .current_stage = LoginStage::operational_negotiation,
                                               .next_stage = LoginStage::full_feature_phase,
                                               .initiator_session_id = {0x80, 1, 2, 3, 4, 5},
                                               .target_session_handle = 0x0607,
                                               .task_tag = tag,
                                               .connection_id = 0x0809,
                                               .numbers = initiator_numbers},
                               text_of_pairs({{"InitiatorName", "iqn.2001-04.com.example:host"},
                                              {"SessionType", "Discovery"}})));
    expect_fields(request, {{"iscsi.opcode", 0x03},
                            {"iscsi.login.T", 1},
                            {"iscsi.login.C", 0},
                            {"iscsi.login.csg", 1},
                            {"iscsi.login.nsg", 3},
                            {"iscsi.versionmax", 0},
                            {"iscsi.versionmin", 0},
                            {"iscsi.tsih", 0x0607},
                            {"iscsi.initiatortasktag", 0x0a0b0c0d},
                            {"iscsi.cid", 0x0809}});
    expect_initiator_numbers(request);
    EXPECT_EQ(request.text("iscsi.isid"), "80:01:02:03:04:05");
    EXPECT_THAT(request.all("iscsi.keyvalue"),
                ElementsAre("InitiatorName=iqn.2001-04.com.example:host", "SessionType=Discovery"));

    auto response = seen(From::server,
                         pdu_of(LoginResponsePdu{.continues = true,
                                                 .current_stage = LoginStage::security_negotiation,
                                                 .initiator_session_id = {0x80, 1, 2, 3, 4, 5},
                                                 .target_session_handle = 0x0607,
                                                 .task_tag = tag,
                                                 .numbers = target_numbers,
                                                 .status = LoginStatus::out_of_resources}));
    expect_fields(response, {{"iscsi.opcode", 0x23},
                             {"iscsi.login.T", 0},
                             {"iscsi.login.C", 1},
                             {"iscsi.login.csg", 0},
                             {"iscsi.versionactive", 0},
                             {"iscsi.tsih", 0x0607},
                             {"iscsi.initiatortasktag", 0x0a0b0c0d},
                             {"iscsi.login.status", 0x0302}});
    expect_target_numbers(response);
}

TEST(IscsiAsTsharkSeesIt, Text) {
    auto request = seen(From::client, pdu_of(TextRequestPdu{.immediate = true,
                                                            .final = true,
                                                            .task_tag = tag,
                                                            .transfer_tag = transfer,
                                                            .numbers = initiator_numbers},
                                             text_of_pairs({{"SendTargets", "All"}})));
    expect_fields(request, {{"iscsi.opcode", 0x04},
                            {"iscsi.I", 1},
                            {"iscsi.text.F", 1},
                            {"iscsi.text.C", 0},
                            {"iscsi.initiatortasktag", 0x0a0b0c0d},
                            {"iscsi.targettransfertag", 0x55667788}});
    expect_initiator_numbers(request);
    EXPECT_THAT(request.all("iscsi.keyvalue"), ElementsAre("SendTargets=All"));

    auto response = seen(From::server, pdu_of(TextResponsePdu{.continues = true,
                                                              .task_tag = tag,
                                                              .transfer_tag = transfer,
                                                              .numbers = target_numbers},
                                              text_of_pairs({{"TargetName", "iqn.x"}})));
    expect_fields(response, {{"iscsi.opcode", 0x24},
                             {"iscsi.text.F", 0},
                             {"iscsi.text.C", 1},
                             {"iscsi.initiatortasktag", 0x0a0b0c0d},
                             {"iscsi.targettransfertag", 0x55667788}});
    expect_target_numbers(response);
}

TEST(IscsiAsTsharkSeesIt, Logout) {
    auto request =
        seen(From::client,
             pdu_of(LogoutRequestPdu{.immediate = true,
                                     .reason = LogoutReason::remove_connection_for_recovery,
                                     .task_tag = tag,
                                     .connection_id = 0x0809,
                                     .numbers = initiator_numbers}));
    expect_fields(request, {{"iscsi.opcode", 0x06},
                            {"iscsi.logout.reason", 2},
                            {"iscsi.initiatortasktag", 0x0a0b0c0d},
                            {"iscsi.cid", 0x0809}});
    expect_initiator_numbers(request);

    auto response =
        seen(From::server, pdu_of(LogoutResponsePdu{.result = LogoutResult::cleanup_failed,
                                                    .task_tag = tag,
                                                    .numbers = target_numbers,
                                                    .wait_seconds = 2,
                                                    .retain_seconds = 20}));
    expect_fields(response, {{"iscsi.opcode", 0x26},
                             {"iscsi.logout.response", 3},
                             {"iscsi.initiatortasktag", 0x0a0b0c0d},
                             {"iscsi.time2wait", 2},
                             {"iscsi.time2retain", 20}});
    expect_target_numbers(response);
}

TEST(IscsiAsTsharkSeesIt, AsynchronousMessage) {
    auto frame =
        seen(From::server,
             pdu_of(AsynchronousMessagePdu{.logical_unit = unit,
                                           .numbers = target_numbers,
                                           .event = AsynchronousEvent::connection_will_be_dropped,
                                           .parameter1 = 0x0102,
                                           .parameter2 = 2,
                                           .parameter3 = 20}));
    expect_fields(frame, {{"iscsi.opcode", 0x32},
                          {"iscsi.asyncevent", 2},
                          {"iscsi.eventvendorcode", 0},
                          {"iscsi.parameter1", 0x0102},
                          {"iscsi.parameter2", 2},
                          {"iscsi.parameter3", 20},
                          {"scsi.lun", 3}});
    expect_target_numbers(frame);
}

TEST(IscsiAsTsharkSeesIt, Reject) {
    auto refused = encoded(SnackRequestPdu{.task_tag = InitiatorTaskTag{0x51525354}});
    auto frame = seen(From::server, pdu_of(RejectPdu{.reason = RejectReason::waiting_for_logout,
                                                     .numbers = target_numbers,
                                                     .data_number = 7},
                                           refused));
    EXPECT_THAT(frame.numbers("iscsi.opcode"), ElementsAre(0x3f, 0x10)) << "the refused one too";
    expect_fields(frame, {{"iscsi.reject.reason", 0x0c}, {"iscsi.datasn", 7}});
    EXPECT_THAT(frame.numbers("iscsi.initiatortasktag"), testing::Contains(0x51525354));
}

/// A digest travels least significant octet first, and covers the padding.
Bytes digest_of(ConstBuffer octets) {
    Bytes digest(iscsi_digest_size);
    store_little_endian<iscsi_digest_size>(crc32c(octets), digest.data());
    return digest;
}

TEST(IscsiAsTsharkSeesIt, Digests) {
    auto whole = pdu_of(NopOutPdu{.immediate = true,
                                  .task_tag = tag,
                                  .transfer_tag = TargetTransferTag::none,
                                  .numbers = initiator_numbers},
                        from_hex("70696e6721"));
    auto header = ConstBuffer(whole).first(basic_header_size);
    auto data = ConstBuffer(whole).subspan(basic_header_size);
    auto with_digests = join({header, digest_of(header), data, digest_of(data)});
    Capture capture;
    TcpConversation talk(capture, {.server_port = iscsi_port});
    talk.client_sends(with_digests);
    auto words = test::dissect_in_words(capture, {});
    EXPECT_THAT(words, testing::ContainsRegex("HeaderDigest: [^\n]*Good CRC32"));
    EXPECT_THAT(words, testing::ContainsRegex("DataDigest: [^\n]*Good CRC32"));
}

}  // namespace
}  // namespace weft::wire
