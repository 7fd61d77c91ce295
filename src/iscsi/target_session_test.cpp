// SPDX-License-Identifier: Apache-2.0
// Sessions: who gets one, how they begin, share their numbers, and end.
#include "support/iscsi_bench.hpp"
#include "wire/iscsi_task_management.hpp"

namespace weft::iscsi {
namespace {

using wire::LoginStatus;

class TargetSessions : public TargetBench {};

TEST_F(TargetSessions, begin_with_a_login_that_names_a_target) {
    auto& talk = connect();
    EXPECT_EQ(talk.log_in("iqn.2026-11.io.weft:nobody").status, LoginStatus::not_found);
    EXPECT_TRUE(talk.finished());
    EXPECT_EQ(connect().log_in(name).status, LoginStatus::success);
    EXPECT_EQ(node.sessions().size(), 1u);
}

TEST_F(TargetSessions, are_only_for_those_who_are_listed) {
    node.find(name)->rules.initiators = {"iqn.2026-11.io.weft:somebody-else"};
    EXPECT_EQ(connect().log_in(name).status, LoginStatus::not_found);
    node.find(name)->rules.initiators.push_back(connect().initiator);
    EXPECT_EQ(connect().log_in(name).status, LoginStatus::success);
}

TEST_F(TargetSessions, are_sent_elsewhere_when_the_target_has_moved) {
    node.find(name)->rules.moved_to = "192.0.2.7:3260";
    auto& talk = connect();
    EXPECT_EQ(talk.log_in(name).status, LoginStatus::target_moved_temporarily);
    EXPECT_NE(talk.last.text().find("TargetAddress=192.0.2.7:3260"), std::string::npos);
}

TEST_F(TargetSessions, of_discovery_tell_which_targets_there_are_and_take_no_commands) {
    auto& talk = connect();
    EXPECT_EQ(talk.log_in("").status, LoginStatus::success);
    talk.say(wire::TextRequestPdu{.final = true,
                                  .task_tag = wire::InitiatorTaskTag{7},
                                  .transfer_tag = wire::TargetTransferTag::none,
                                  .numbers = {talk.command_number++, 0}},
             text_of({{"SendTargets", "All"}}));
    auto answer = talk.expect<wire::TextResponsePdu>();
    EXPECT_TRUE(answer.final);
    EXPECT_EQ(talk.last.data,
              text_of({{"TargetName", name}, {"TargetAddress", "192.0.2.1:3260,1"}}));
    talk.say(test_unit_ready(talk, 0));
    EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, wire::RejectReason::protocol_error);
}

TEST_F(TargetSessions, tell_long_texts_in_parts) {
    std::vector<std::unique_ptr<scsi::Target>> more;
    for (int i = 0; i < 20; ++i) {
        auto other = std::string(name) + "-" + std::to_string(i);
        more.push_back(std::make_unique<scsi::Target>(scsi::TargetOptions{
            .name = other, .pool = &pool, .surroundings = target.options().surroundings}));
        ASSERT_TRUE(node.offer(other, *more.back(), {}));
    }
    auto& talk = connect();
    talk.log_in("", {{"MaxRecvDataSegmentLength", "512"}});
    auto request = wire::TextRequestPdu{.final = true,
                                        .task_tag = wire::InitiatorTaskTag{7},
                                        .transfer_tag = wire::TargetTransferTag::none,
                                        .numbers = {talk.command_number++, 0}};
    talk.say(request, text_of({{"SendTargets", "All"}}));
    std::string whole;
    for (int parts = 0; parts < 100; ++parts) {
        auto answer = talk.expect<wire::TextResponsePdu>();
        EXPECT_LE(talk.last.data.size(), 512u);
        whole += talk.last.text();
        if (answer.final) break;
        EXPECT_TRUE(answer.continues);
        request.transfer_tag = answer.transfer_tag;
        request.numbers.command_number = talk.command_number++;
        talk.say(request);
    }
    EXPECT_NE(whole.find("-19"), std::string::npos);
    EXPECT_EQ(std::count(whole.begin(), whole.end(), '='), 42);
    for (auto& each : more) ASSERT_TRUE(node.withdraw(each->name(), {}));
}

TEST_F(TargetSessions, are_replaced_by_a_login_of_the_same_name_when_their_tasks_are_done) {
    auto& old = logged_in();
    slow.holding = true;
    old.say(transfer(old, false, 1, 1));
    EXPECT_EQ(slow.held.size(), 1u);
    auto& next = connect();
    auto text = text_of({{"InitiatorName", next.initiator}, {"TargetName", name}});
    next.say(wire::LoginRequestPdu{.transit = true,
                                   .current_stage = wire::LoginStage::operational_negotiation,
                                   .next_stage = wire::LoginStage::full_feature_phase,
                                   .initiator_session_id = {0x80, 0, 0, 0, 0, 1}},
             text);
    EXPECT_TRUE(old.finished());
    old.hang_up();
    run_deferred();
    next.expect_silence();  // a command of the old session is still with the disk
    slow.holding = false;
    slow.let_go();
    run_deferred();
    EXPECT_EQ(next.expect<wire::LoginResponsePdu>().status, LoginStatus::success);
    EXPECT_EQ(node.sessions().size(), 1u);
}

TEST_F(TargetSessions, run_commands_of_all_their_connections_in_one_order) {
    auto& first = connect();
    auto response = first.log_in(name, {{"MaxConnections", "4"}});
    settle(first);
    auto& second = connect();
    second.command_number = first.command_number;
    auto joined = second.log_in(
        name, {}, {.target_session_handle = response.target_session_handle, .connection_id = 1});
    ASSERT_EQ(joined.status, LoginStatus::success);
    auto early = transfer(first, false, 0, 1);
    early.numbers.command_number += 1;
    second.say(early);
    second.expect_silence();
    auto write = transfer(first, true, 0, 1);
    write.numbers.command_number -= 1;
    auto data = pattern(512, 3);
    first.say(write, data);
    EXPECT_EQ(first.expect<wire::ScsiResponsePdu>().status, wire::ScsiStatus::good);
    EXPECT_TRUE(second.expect<wire::DataInPdu>().has_status);
    EXPECT_EQ(second.last.data, data);
}

TEST_F(TargetSessions, take_no_more_connections_than_agreed_on) {
    auto response = connect().log_in(name, {{"MaxConnections", "1"}});
    auto more = connect().log_in(
        name, {}, {.target_session_handle = response.target_session_handle, .connection_id = 1});
    EXPECT_EQ(more.status, LoginStatus::too_many_connections);
    auto none = connect().log_in(name, {}, {.target_session_handle = 999, .connection_id = 1});
    EXPECT_EQ(none.status, LoginStatus::session_does_not_exist);
}

TEST_F(TargetSessions, end_with_a_logout) {
    auto& talk = logged_in();
    talk.say(wire::LogoutRequestPdu{.reason = wire::LogoutReason::remove_connection_for_recovery,
                                    .task_tag = wire::InitiatorTaskTag{8},
                                    .numbers = {talk.command_number++, 0}});
    EXPECT_EQ(talk.expect<wire::LogoutResponsePdu>().result,
              wire::LogoutResult::recovery_not_supported);
    talk.say(wire::LogoutRequestPdu{.reason = wire::LogoutReason::close_connection,
                                    .task_tag = wire::InitiatorTaskTag{8},
                                    .connection_id = 77,
                                    .numbers = {talk.command_number++, 0}});
    EXPECT_EQ(talk.expect<wire::LogoutResponsePdu>().result,
              wire::LogoutResult::connection_not_found);
    EXPECT_FALSE(talk.finished());
    talk.say(wire::LogoutRequestPdu{.reason = wire::LogoutReason::close_session,
                                    .task_tag = wire::InitiatorTaskTag{9},
                                    .numbers = {talk.command_number++, 0}});
    EXPECT_EQ(talk.expect<wire::LogoutResponsePdu>().result, wire::LogoutResult::closed);
    EXPECT_TRUE(talk.finished());
    talk.hang_up();
    run_deferred();
    EXPECT_TRUE(node.quiet());
}

TEST_F(TargetSessions, end_when_the_target_is_withdrawn) {
    auto& talk = logged_in();
    bool gone = false;
    ASSERT_TRUE(node.withdraw(name, [&] { gone = true; }));
    EXPECT_TRUE(talk.finished());
    EXPECT_EQ(connect().log_in(name).status, LoginStatus::not_found);
    talk.hang_up();
    run_deferred();
    EXPECT_TRUE(gone);
}

TEST_F(TargetSessions, are_given_up_when_nobody_answers) {
    auto& talk = logged_in();
    talk.connection().tick(now);
    now = now + ping_after;
    talk.connection().tick(now);
    auto ping = talk.expect<wire::NopInPdu>();
    EXPECT_NE(ping.transfer_tag, wire::TargetTransferTag::none);
    talk.say(wire::NopOutPdu{.immediate = true,
                             .task_tag = wire::InitiatorTaskTag::none,
                             .transfer_tag = ping.transfer_tag,
                             .numbers = {talk.command_number, 0}});
    talk.connection().tick(now);
    now = now + ping_after;
    talk.connection().tick(now);
    talk.expect<wire::NopInPdu>();
    EXPECT_FALSE(talk.finished());
    now = now + ping_patience;
    talk.connection().tick(now);
    EXPECT_TRUE(talk.finished());
}

TEST_F(TargetSessions, are_asked_to_end_before_they_are_ended) {
    auto& talk = logged_in();
    talk.connection().ask_to_leave(now);
    auto asked = talk.expect<wire::AsynchronousMessagePdu>();
    EXPECT_EQ(asked.event, wire::AsynchronousEvent::logout_requested);
    EXPECT_FALSE(talk.finished());
    now = now + std::chrono::seconds(asked.parameter3);
    talk.connection().tick(now);
    EXPECT_TRUE(talk.finished());
}

TEST_F(TargetSessions, do_not_begin_when_a_login_takes_too_long) {
    auto& talk = connect();
    talk.connection().tick(now);
    EXPECT_FALSE(talk.finished());
    now = now + login_time;
    talk.connection().tick(now);
    EXPECT_TRUE(talk.finished());
}

}  // namespace
}  // namespace weft::iscsi
