// SPDX-License-Identifier: Apache-2.0
// What one initiator must not be able to do: end the process, make it hold memory without bound,
// or have a command carried out that it was told is over.
#include <gmock/gmock.h>

#include "support/iscsi_bench.hpp"
#include "wire/iscsi_task_management.hpp"

namespace weft::iscsi {
namespace {

using wire::ScsiStatus;
using wire::TaskManagementFunction;
using wire::TaskManagementResult;

class TargetDefence : public TargetBench {
protected:
    wire::TextRequestPdu text_request(Talk& talk) {
        return {.final = true,
                .task_tag = wire::InitiatorTaskTag{next_tag++},
                .transfer_tag = wire::TargetTransferTag::none,
                .numbers = {talk.command_number++, 0}};
    }
    wire::TaskManagementResult manage(Talk& talk, TaskManagementFunction function,
                                      wire::InitiatorTaskTag task, std::uint32_t unit,
                                      std::uint32_t number) {
        talk.say(wire::TaskManagementRequestPdu{.immediate = true,
                                                .function = function,
                                                .logical_unit = *wire::spell_logical_unit(unit),
                                                .task_tag = wire::InitiatorTaskTag{next_tag++},
                                                .referenced_task_tag = task,
                                                .numbers = {number, 0}});
        return talk.expect<wire::TaskManagementResponsePdu>().result;
    }
    void log_out(Talk& talk) {
        talk.say(wire::LogoutRequestPdu{.reason = wire::LogoutReason::close_session,
                                        .task_tag = wire::InitiatorTaskTag{next_tag++},
                                        .numbers = {talk.command_number++, 0}});
    }
    /// A write whose number comes after one that is not sent yet.
    wire::ScsiCommandPdu early_write(Talk& talk, std::uint8_t blocks) {
        auto pdu = transfer(talk, true, 0, blocks);
        ++pdu.numbers.command_number;
        ++talk.command_number;
        return pdu;
    }
};

TEST_F(TargetDefence, another_segment_length_may_be_declared_amid_a_command) {
    auto& talk = logged_in();
    auto write = transfer(talk, true, 0, 4);
    auto text = text_request(talk);
    talk.say(text, text_of({{"MaxRecvDataSegmentLength", "512"}}));
    talk.expect_silence();  // its turn comes after the write's
    auto data = pattern(4 * 512, 5);
    talk.say(write, data);
    std::vector<wire::IscsiOpcode> heard;
    while (auto pdu = talk.hear()) heard.push_back(pdu->opcode());
    EXPECT_THAT(heard, ::testing::UnorderedElementsAre(wire::IscsiOpcode::text_response,
                                                       wire::IscsiOpcode::scsi_response));
    EXPECT_EQ(on_disk(4 * 512), data);
    talk.say(transfer(talk, false, 0, 2));
    EXPECT_FALSE(talk.expect<wire::DataInPdu>().has_status);
    EXPECT_EQ(talk.last.data.size(), 512u);
    EXPECT_TRUE(talk.expect<wire::DataInPdu>().has_status);
}

TEST_F(TargetDefence, answers_that_are_never_acknowledged_do_not_pile_up) {
    auto& talk = logged_in({{"ErrorRecoveryLevel", "1"}});
    std::size_t pings = 0;
    for (; pings < 4 * kept_answers_max && !talk.finished(); ++pings) {
        talk.say(wire::NopOutPdu{.immediate = true,
                                 .task_tag = wire::InitiatorTaskTag{next_tag++},
                                 .transfer_tag = wire::TargetTransferTag::none,
                                 .numbers = {talk.command_number, 0}},
                 pattern(4096, 1));
        (void)talk.hear();
    }
    EXPECT_TRUE(talk.finished());
    EXPECT_LE(pings, kept_answers_max + 1);
}

TEST_F(TargetDefence, targets_are_told_of_once_in_an_exchange) {
    auto& talk = connect();
    EXPECT_EQ(talk.log_in("").status, wire::LoginStatus::success);
    talk.say(text_request(talk), text_of({{"SendTargets", "All"}, {"SendTargets", "All"}}));
    EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, wire::RejectReason::protocol_error);
    talk.say(text_request(talk), text_of({{"SendTargets", "All"}}));
    EXPECT_TRUE(talk.expect<wire::TextResponsePdu>().final);
}

TEST_F(TargetDefence, a_command_that_was_aborted_before_its_turn_never_runs) {
    auto& talk = logged_in();
    auto first = talk.command_number;
    auto write = early_write(talk, 1);
    talk.say(write);
    talk.expect_silence();
    EXPECT_EQ(manage(talk, TaskManagementFunction::abort_task, write.task_tag, 0,
                     write.numbers.command_number + 1),
              TaskManagementResult::complete);
    auto missing = test_unit_ready(talk, 0);
    missing.numbers.command_number = first;
    talk.say(missing);
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().task_tag, missing.task_tag);
    talk.expect_silence();  // its data is not asked for
    talk.command_number = first + 2;
    talk.say(test_unit_ready(talk, 0));  // the numbers go on behind it
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
}

TEST_F(TargetDefence, commands_before_a_reset_that_wait_for_their_turn_never_run) {
    for (auto function :
         {TaskManagementFunction::abort_task_set, TaskManagementFunction::clear_task_set,
          TaskManagementFunction::logical_unit_reset, TaskManagementFunction::target_warm_reset}) {
        auto& talk = logged_in();
        auto first = talk.command_number;
        talk.say(early_write(talk, 1));
        EXPECT_EQ(manage(talk, function, {}, 0, talk.command_number),
                  TaskManagementResult::complete);
        auto missing = test_unit_ready(talk, 1);
        missing.numbers.command_number = first;
        talk.say(missing);
        EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().task_tag, missing.task_tag);
        talk.expect_silence();
        talk.hang_up();
        run_deferred();
    }
}

TEST_F(TargetDefence, a_task_is_aborted_by_its_own_unit_alone) {
    auto& talk = logged_in();
    slow.holding = true;
    auto read = transfer(talk, false, 1, 1);
    talk.say(read);
    EXPECT_EQ(
        manage(talk, TaskManagementFunction::abort_task, read.task_tag, 0, talk.command_number),
        TaskManagementResult::task_does_not_exist);
    slow.holding = false;
    slow.let_go();
    EXPECT_TRUE(talk.expect<wire::DataInPdu>().has_status);
}

TEST_F(TargetDefence, a_logout_is_answered_when_its_tasks_are_over) {
    auto& talk = logged_in();
    slow.holding = true;
    talk.say(transfer(talk, true, 1, 1), pattern(512, 3));
    ASSERT_EQ(slow.held.size(), 1u);
    log_out(talk);
    talk.expect_silence();
    talk.say(transfer(talk, false, 0, 1));
    EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, wire::RejectReason::waiting_for_logout);
    slow.holding = false;
    slow.let_go();
    EXPECT_EQ(talk.expect<wire::LogoutResponsePdu>().result, wire::LogoutResult::closed);
    EXPECT_TRUE(talk.finished());
}

TEST_F(TargetDefence, who_logs_out_and_does_not_listen_is_not_waited_for) {
    auto& talk = logged_in();
    log_out(talk);
    talk.connection().tick(now);
    now = now + farewell_time;
    talk.connection().tick(now);
    EXPECT_TRUE(talk.finished());
}

TEST_F(TargetDefence, malformed_additional_headers_leave_the_counts_right) {
    auto& talk = logged_in();
    // Longer than the headers that follow it say.
    const std::vector<std::byte> broken{std::byte{0xff}, std::byte{0xff}, std::byte{1},
                                        std::byte{0}};
    for (int round = 0; round < 3 * static_cast<int>(immediate_commands_max); ++round) {
        auto pdu = test_unit_ready(talk, 0);
        --talk.command_number;
        pdu.immediate = round % 2 == 0;
        talk.say(pdu, {}, broken);
        EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, wire::RejectReason::invalid_pdu_field);
    }
    auto immediate = test_unit_ready(talk, 0);
    --talk.command_number;
    immediate.immediate = true;
    talk.say(immediate);
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
}

TEST_F(TargetDefence, data_that_was_not_agreed_on_does_not_reach_the_disk) {
    auto& talk = logged_in({{"ImmediateData", "No"}, {"InitialR2T", "Yes"}});
    const auto before = on_disk(512);
    talk.say(transfer(talk, true, 0, 1), pattern(512, 13));
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::check_condition);
    EXPECT_EQ(on_disk(512), before);
}

TEST_F(TargetDefence, a_connection_takes_the_place_of_the_only_one_of_its_session) {
    auto& old = connect();
    auto response = old.log_in(name, {{"MaxConnections", "4"}});
    settle(old);
    slow.holding = true;
    old.say(transfer(old, true, 1, 1), pattern(512, 3));
    auto& next = connect();
    auto text = text_of({{"InitiatorName", next.initiator}, {"TargetName", name}});
    next.say(wire::LoginRequestPdu{.transit = true,
                                   .current_stage = wire::LoginStage::operational_negotiation,
                                   .next_stage = wire::LoginStage::full_feature_phase,
                                   .initiator_session_id = {0x80, 0, 0, 0, 0, 1},
                                   .target_session_handle = response.target_session_handle,
                                   .numbers = {old.command_number, 0}},
             text);
    EXPECT_TRUE(old.finished());
    old.hang_up();
    run_deferred();
    next.expect_silence();  // a write of the old connection is still with the disk
    slow.holding = false;
    slow.let_go();
    run_deferred();
    EXPECT_EQ(next.expect<wire::LoginResponsePdu>().status, wire::LoginStatus::success);
    EXPECT_EQ(node.sessions().size(), 1u);
    next.command_number = old.command_number;
    next.say(test_unit_ready(next, 0));  // no unit attention: the nexus was never lost
    EXPECT_EQ(next.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
}

TEST_F(TargetDefence, a_place_is_not_kept_for_who_has_gone) {
    auto& old = connect();
    auto response = old.log_in(name);
    auto& next = connect();
    auto text = text_of({{"InitiatorName", next.initiator}, {"TargetName", name}});
    next.say(wire::LoginRequestPdu{.transit = true,
                                   .current_stage = wire::LoginStage::operational_negotiation,
                                   .next_stage = wire::LoginStage::full_feature_phase,
                                   .initiator_session_id = {0x80, 0, 0, 0, 0, 1},
                                   .target_session_handle = response.target_session_handle},
             text);
    next.hang_up();
    old.hang_up();
    run_deferred();
    EXPECT_TRUE(node.sessions().empty());
}

}  // namespace
}  // namespace weft::iscsi
