// SPDX-License-Identifier: Apache-2.0
// Commands at a target: their data, their order, their ends, and what is refused.
#include "support/iscsi_bench.hpp"
#include "wire/iscsi_task_management.hpp"

namespace weft::iscsi {
namespace {

using wire::RejectReason;
using wire::Residual;
using wire::ScsiStatus;
using wire::TaskManagementFunction;
using wire::TaskManagementResult;

class TargetTasks : public TargetBench {
protected:
    /// Sense key and additional sense code of the response just heard.
    static std::pair<int, int> sense(const Heard& heard) {
        if (heard.data.size() < 16) return {-1, -1};
        auto octet = [&](std::size_t at) { return std::to_integer<int>(heard.data[2 + at]); };
        return {octet(2) & 0xf, octet(12) << 8 | octet(13)};
    }
    wire::TaskManagementResponsePdu manage(Talk& talk, TaskManagementFunction function,
                                           wire::TaskManagementRequestPdu request) {
        request.immediate = true;
        request.function = function;
        request.task_tag = wire::InitiatorTaskTag{next_tag++};
        request.numbers.command_number = talk.command_number;
        talk.say(request);
        return talk.expect<wire::TaskManagementResponsePdu>();
    }
};

TEST_F(TargetTasks, read_with_the_status_on_the_last_data) {
    auto data = pattern(8 * 512, 1);
    std::copy(data.begin(), data.end(), memory.lend(BlockOperation::write, 0, 4096).begin());
    auto& talk = logged_in({{"MaxRecvDataSegmentLength", "1024"}, {"MaxBurstLength", "2048"}});
    talk.say(transfer(talk, false, 0, 8));
    std::vector<std::byte> read;
    for (std::uint32_t number = 0; number < 4; ++number) {
        auto pdu = talk.expect<wire::DataInPdu>();
        EXPECT_EQ(pdu.data_number, number);
        EXPECT_EQ(pdu.buffer_offset, read.size());
        EXPECT_EQ(pdu.final, number % 2 == 1);  // a burst is two of them
        EXPECT_EQ(pdu.has_status, number == 3);
        read.insert(read.end(), talk.last.data.begin(), talk.last.data.end());
    }
    EXPECT_EQ(read, std::vector<std::byte>(data.begin(), data.end()));
    talk.expect_silence();
}

TEST_F(TargetTasks, write_what_came_with_the_command) {
    auto& talk = logged_in();
    auto data = pattern(1024, 2);
    talk.say(transfer(talk, true, 0, 2), data);
    auto response = talk.expect<wire::ScsiResponsePdu>();
    EXPECT_EQ(response.status, ScsiStatus::good);
    EXPECT_EQ(response.residual, Residual::none);
    EXPECT_EQ(on_disk(1024), data);
}

TEST_F(TargetTasks, write_what_they_ask_for) {
    auto& talk =
        logged_in({{"ImmediateData", "No"}, {"InitialR2T", "Yes"}, {"MaxBurstLength", "1024"}});
    auto data = pattern(4 * 512, 3);
    auto pdu = transfer(talk, true, 0, 4);
    talk.say(pdu);
    for (std::uint32_t part = 0; part < 2; ++part) {
        auto request = talk.expect<wire::ReadyToTransferPdu>();
        EXPECT_EQ(request.ready_number, part);
        EXPECT_EQ(request.buffer_offset, part * 1024);
        EXPECT_EQ(request.desired_length, 1024u);
        for (std::uint32_t half = 0; half < 2; ++half) {
            auto offset = part * 1024 + half * 512;
            talk.say(wire::DataOutPdu{.final = half == 1,
                                      .task_tag = pdu.task_tag,
                                      .transfer_tag = request.transfer_tag,
                                      .data_number = half,
                                      .buffer_offset = offset},
                     ConstBuffer(data).subspan(offset, 512));
        }
    }
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
    EXPECT_EQ(on_disk(2048), data);
}

TEST_F(TargetTasks, write_what_comes_unasked) {
    auto& talk = logged_in({{"ImmediateData", "Yes"}, {"InitialR2T", "No"}});
    auto data = pattern(4 * 512, 4);
    auto pdu = transfer(talk, true, 0, 4);
    pdu.final = false;
    talk.say(pdu, ConstBuffer(data).first(512));
    talk.expect_silence();
    talk.say(wire::DataOutPdu{.final = true,
                              .task_tag = pdu.task_tag,
                              .transfer_tag = wire::TargetTransferTag::none,
                              .buffer_offset = 512},
             ConstBuffer(data).subspan(512));
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
    EXPECT_EQ(on_disk(2048), data);
}

TEST_F(TargetTasks, fail_alone_when_a_part_of_their_data_is_missing) {
    auto& talk = logged_in({{"ImmediateData", "No"}, {"InitialR2T", "Yes"}});
    auto pdu = transfer(talk, true, 0, 2);
    talk.say(pdu);
    auto request = talk.expect<wire::ReadyToTransferPdu>();
    auto data = pattern(512, 5);
    auto part = wire::DataOutPdu{.task_tag = pdu.task_tag, .transfer_tag = request.transfer_tag};
    talk.say(part, data);
    part.data_number = 5;
    part.buffer_offset = 512;
    part.final = true;
    talk.say(part, data);
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::check_condition);
    EXPECT_EQ(sense(talk.last), std::pair(0xb, 0x4705));
    talk.say(test_unit_ready(talk, 0));
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
}

TEST_F(TargetTasks, fail_alone_when_their_data_was_damaged) {
    auto& talk = connect();
    talk.log_in(name, {{"HeaderDigest", "CRC32C"}, {"DataDigest", "CRC32C"}});
    talk.digests = {true, true};
    settle(talk);
    talk.spoil_next_data = true;
    talk.say(transfer(talk, true, 0, 1), pattern(512, 6));
    EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, RejectReason::data_digest_error);
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::check_condition);
    EXPECT_EQ(sense(talk.last), std::pair(0xb, 0x4705));
    auto data = pattern(512, 7);
    talk.say(transfer(talk, true, 0, 1), data);
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
    EXPECT_EQ(on_disk(512), data);
}

TEST_F(TargetTasks, tell_what_was_too_much_or_too_little) {
    auto& talk = logged_in();
    auto pdu = transfer(talk, false, 0, 1);
    pdu.expected_transfer_length = 1000;
    talk.say(pdu);
    auto read = talk.expect<wire::DataInPdu>();
    EXPECT_EQ(read.residual, Residual::underflow);
    EXPECT_EQ(read.residual_count, 488u);
    pdu = transfer(talk, false, 0, 1);
    pdu.expected_transfer_length = 200;
    talk.say(pdu);
    read = talk.expect<wire::DataInPdu>();
    EXPECT_EQ(talk.last.data.size(), 200u);
    EXPECT_EQ(read.residual, Residual::overflow);
    EXPECT_EQ(read.residual_count, 312u);
    pdu = transfer(talk, true, 0, 1);
    pdu.expected_transfer_length = 1024;
    auto data = pattern(1024, 8);
    talk.say(pdu, data);
    auto written = talk.expect<wire::ScsiResponsePdu>();
    EXPECT_EQ(written.status, ScsiStatus::good);
    EXPECT_EQ(written.residual, Residual::underflow);
    EXPECT_EQ(written.residual_count, 512u);
    EXPECT_EQ(on_disk(512), std::vector(data.begin(), data.begin() + 512));
}

TEST_F(TargetTasks, are_ignored_outside_the_window_and_when_they_come_twice) {
    auto& talk = logged_in();
    auto late = test_unit_ready(talk, 0);
    late.numbers.command_number -= 2;
    talk.say(late);
    auto far = test_unit_ready(talk, 0);
    far.numbers.command_number += 1000;
    talk.say(far);
    talk.expect_silence();
    talk.command_number -= 2;
    auto good = test_unit_ready(talk, 0);
    talk.say(good);
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
    talk.say(good);
    talk.expect_silence();
}

TEST_F(TargetTasks, close_the_window_while_they_are_many_and_open_it_again) {
    auto& talk = logged_in();
    slow.holding = true;
    for (std::uint32_t i = 0; i < command_window; ++i) talk.say(transfer(talk, false, 1, 1));
    EXPECT_EQ(slow.held.size(), command_window);
    talk.say(transfer(talk, false, 1, 1));  // one too many
    EXPECT_EQ(slow.held.size(), command_window);
    --talk.command_number;
    talk.expect_silence();
    slow.holding = false;
    slow.let_go();
    std::uint32_t max = 0;
    for (std::uint32_t i = 0; i < command_window; ++i)
        max = talk.expect<wire::DataInPdu>().numbers.max_command_number;
    EXPECT_EQ(max, talk.command_number + command_window - 1);
}

TEST_F(TargetTasks, overtake_when_they_are_immediate_but_not_in_crowds) {
    auto& talk = logged_in();
    slow.holding = true;
    for (std::uint32_t i = 0; i < immediate_commands_max + 1; ++i) {
        auto pdu = transfer(talk, false, 1, 1);
        pdu.immediate = true;
        --talk.command_number;
        pdu.numbers.command_number = talk.command_number;
        talk.say(pdu);
    }
    EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, RejectReason::too_many_immediate_commands);
    talk.expect_silence();
    EXPECT_EQ(slow.held.size(), immediate_commands_max);
}

TEST_F(TargetTasks, are_aborted_one_by_one_and_then_say_nothing) {
    auto& talk = logged_in();
    slow.holding = true;
    auto pdu = transfer(talk, false, 1, 1);
    talk.say(pdu);
    wire::TaskManagementRequestPdu request{.immediate = true,
                                           .function = TaskManagementFunction::abort_task,
                                           .logical_unit = pdu.logical_unit,
                                           .task_tag = wire::InitiatorTaskTag{5000},
                                           .referenced_task_tag = pdu.task_tag,
                                           .numbers = {talk.command_number, 0},
                                           .referenced_command_number = pdu.numbers.command_number};
    talk.say(request);
    slow.holding = false;
    slow.let_go();
    EXPECT_EQ(talk.expect<wire::TaskManagementResponsePdu>().result,
              TaskManagementResult::complete);
    talk.expect_silence();
    EXPECT_EQ(manage(talk, TaskManagementFunction::abort_task, request).result,
              TaskManagementResult::task_does_not_exist);
}

TEST_F(TargetTasks, are_aborted_while_their_data_is_awaited) {
    auto& talk = logged_in({{"ImmediateData", "No"}, {"InitialR2T", "Yes"}});
    auto pdu = transfer(talk, true, 1, 1);
    talk.say(pdu);
    auto asked = talk.expect<wire::ReadyToTransferPdu>();
    auto response = manage(talk, TaskManagementFunction::logical_unit_reset,
                           {.logical_unit = pdu.logical_unit});
    EXPECT_EQ(response.result, TaskManagementResult::complete);
    // What the initiator had sent before it knew is read and forgotten.
    talk.say(
        wire::DataOutPdu{
            .final = true, .task_tag = pdu.task_tag, .transfer_tag = asked.transfer_tag},
        pattern(512, 9));
    talk.expect_silence();
    settle(talk);
}

TEST_F(TargetTasks, cannot_be_taken_over_by_another_connection) {
    auto& talk = logged_in();
    EXPECT_EQ(manage(talk, TaskManagementFunction::task_reassign, {}).result,
              TaskManagementResult::reassignment_not_supported);
    EXPECT_EQ(manage(talk, TaskManagementFunction::query_task, {}).result,
              TaskManagementResult::function_not_supported);
    EXPECT_EQ(manage(talk, TaskManagementFunction::logical_unit_reset,
                     {.logical_unit = *wire::spell_logical_unit(77)})
                  .result,
              TaskManagementResult::logical_unit_does_not_exist);
}

TEST_F(TargetTasks, of_every_session_end_with_a_cold_reset) {
    auto& talk = logged_in();
    auto& other = connect();
    other.initiator = "iqn.2026-11.io.weft:other";
    other.log_in(name);
    EXPECT_EQ(manage(talk, TaskManagementFunction::target_cold_reset, {}).result,
              TaskManagementResult::complete);
    EXPECT_TRUE(talk.finished());
    EXPECT_TRUE(other.finished());
}

TEST_F(TargetTasks, come_back_to_the_disk_when_the_connection_is_lost) {
    auto& talk = logged_in({{"ImmediateData", "No"}, {"InitialR2T", "Yes"}});
    slow.holding = true;
    talk.say(transfer(talk, false, 1, 1));
    talk.say(transfer(talk, true, 1, 1));
    talk.expect<wire::ReadyToTransferPdu>();
    talk.hang_up();
    run_deferred();
    EXPECT_FALSE(node.quiet());
    slow.holding = false;
    slow.let_go();
    run_deferred();
    EXPECT_TRUE(node.quiet());
}

TEST_F(TargetTasks, are_not_the_only_thing_that_is_answered) {
    auto& talk = logged_in();
    auto data = pattern(100, 1);
    talk.say(wire::NopOutPdu{.immediate = true,
                             .task_tag = wire::InitiatorTaskTag{77},
                             .transfer_tag = wire::TargetTransferTag::none,
                             .numbers = {talk.command_number, 0}},
             data);
    auto pong = talk.expect<wire::NopInPdu>();
    EXPECT_EQ(pong.task_tag, wire::InitiatorTaskTag{77});
    EXPECT_EQ(talk.last.data, data);
    auto snack = wire::SnackRequestPdu{.type = wire::SnackType::status};
    talk.say(snack);
    EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, RejectReason::snack_reject);
    EXPECT_EQ(talk.last.data.size(), wire::basic_header_size);
    EXPECT_FALSE(talk.finished());
}

}  // namespace
}  // namespace weft::iscsi
