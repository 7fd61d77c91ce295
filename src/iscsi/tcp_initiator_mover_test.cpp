// SPDX-License-Identifier: Apache-2.0
// The mover alone, against PDUs made by hand: what it sends for a command, where it puts what
// comes, and what it does not put up with.
#include "iscsi/tcp_initiator_mover.hpp"

#include <gtest/gtest.h>

#include "support/tcp_initiator_fixture.hpp"

namespace weft::iscsi {
namespace {

using test::Bytes;
using Fixture = TcpInitiatorFixture;
using Task = MoverTask;

TEST(TcpInitiatorMover, SendsImmediateUnsolicitedAndSolicitedData) {
    ConnectionTerms terms;
    terms.send_segment_max = 1000;
    terms.first_burst_max = 2500;
    terms.burst_max = 4000;
    terms.initial_request_needed = false;
    terms.outstanding_requests_max = 2;
    Fixture fixture(terms);
    Task task(1, 7000, true);
    start(fixture, task);
    auto first = fixture.sent();
    ASSERT_EQ(first.size(), 3u);  // the command with 1000, and Data-Out of 1000 and 500
    EXPECT_EQ(first[0].basic.opcode, wire::IscsiOpcode::scsi_command);
    EXPECT_FALSE(first[0].basic.final);
    const auto second = *decode<wire::DataOutPdu>(first[1].header);
    EXPECT_FALSE(second.final);
    EXPECT_EQ(second.transfer_tag, wire::TargetTransferTag::none);
    EXPECT_EQ(second.buffer_offset, 1000u);
    const auto third = *decode<wire::DataOutPdu>(first[2].header);
    EXPECT_TRUE(third.final);
    EXPECT_EQ(third.data_number, 1u);
    EXPECT_EQ(third.data_length, 500u);
    EXPECT_EQ(third.expected_status_number, 1u);
    fixture.come(wire::ReadyToTransferPdu{.task_tag = task.command.task_tag,
                                          .transfer_tag = wire::TargetTransferTag{7},
                                          .buffer_offset = 2500,
                                          .desired_length = 4000},
                 {});
    fixture.come(wire::ReadyToTransferPdu{.task_tag = task.command.task_tag,
                                          .transfer_tag = wire::TargetTransferTag{8},
                                          .ready_number = 1,
                                          .buffer_offset = 6500,
                                          .desired_length = 500},
                 {});
    const auto rest = fixture.sent();
    ASSERT_EQ(rest.size(), 5u);
    EXPECT_TRUE(rest[3].basic.final);
    EXPECT_EQ(decode<wire::DataOutPdu>(rest[3].header)->data_number, 3u);
    EXPECT_EQ(decode<wire::DataOutPdu>(rest[4].header)->transfer_tag, wire::TargetTransferTag{8});
    EXPECT_EQ(decode<wire::DataOutPdu>(rest[4].header)->data_number, 0u);
    Bytes all = joined(first);
    const Bytes more = joined(rest);
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_EQ(all, task.memory);
    fixture.come(wire::ScsiResponsePdu{.task_tag = task.command.task_tag}, {});
    EXPECT_EQ(fixture.log, (std::vector<std::string>{"responded 1", "retired 1"}));
}

TEST(TcpInitiatorMover, SendsNothingUnasked) {
    ConnectionTerms terms;
    terms.immediate_data = false;
    Fixture fixture(terms);
    Task task(0, 3000, true);
    start(fixture, task);
    const auto sent = fixture.sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_TRUE(sent[0].basic.final);
    EXPECT_TRUE(sent[0].data.empty());
}

TEST(TcpInitiatorMover, PlacesDataInAndTakesTheStatusWithIt) {
    Fixture fixture({});
    Task task(2, 100, false);
    start(fixture, task);
    fixture.sent();
    const Bytes data(60, std::byte{0xaa}), more(30, std::byte{0xbb});
    fixture.come(wire::DataInPdu{.data_length = 60, .task_tag = task.command.task_tag}, data);
    fixture.come(wire::DataInPdu{.final = true,
                                 .residual = wire::Residual::underflow,
                                 .has_status = true,
                                 .data_length = 30,
                                 .task_tag = task.command.task_tag,
                                 .data_number = 1,
                                 .buffer_offset = 60,
                                 .residual_count = 10},
                 more);
    EXPECT_EQ(fixture.log, (std::vector<std::string>{"responded 2", "retired 2"}));
    EXPECT_EQ(fixture.last->placed, 90u);
    EXPECT_FALSE(fixture.last->damaged);
    EXPECT_EQ(fixture.last->response.residual_count, 10u);
    EXPECT_EQ(task.memory[59], std::byte{0xaa});
    EXPECT_EQ(task.memory[60], std::byte{0xbb});
    EXPECT_EQ(task.memory[89], std::byte{0xbb});
    EXPECT_NE(task.memory[90], std::byte{0xbb});
}

TEST(TcpInitiatorMover, HandsOverSense) {
    Fixture fixture({});
    Task task(3, 0, false);
    start(fixture, task);
    const Bytes segment = test::from_hex("00 03 70 00 05 ff ff");
    fixture.come(wire::ScsiResponsePdu{.status = wire::ScsiStatus::check_condition,
                                       .data_length = 7,
                                       .task_tag = task.command.task_tag},
                 segment);
    EXPECT_EQ(test::to_hex(fixture.last_sense), "70 00 05");
    // The command itself was never asked for, so its slot is not free yet.
    EXPECT_EQ(fixture.log, (std::vector<std::string>{"responded 3"}));
    fixture.sent();
    EXPECT_EQ(fixture.log.back(), "retired 3");
}

TEST(TcpInitiatorMover, BelievesNothingOfDataThatHasNoPlace) {
    struct Case {
        std::uint32_t number, offset;
    };
    for (const Case& wrong : {Case{0, 50}, Case{1, 0}, Case{0, 0xffffffff}, Case{0, 10}}) {
        Fixture fixture({});
        Task task(1, 100, false);
        const Bytes before = task.memory;
        start(fixture, task);
        fixture.sent();
        const Bytes data(60, std::byte{0xaa});
        fixture.come(wire::DataInPdu{.final = true,
                                     .has_status = true,
                                     .data_length = 60,
                                     .task_tag = task.command.task_tag,
                                     .data_number = wrong.number,
                                     .buffer_offset = wrong.offset},
                     data);
        ASSERT_TRUE(fixture.last);
        EXPECT_TRUE(fixture.last->damaged) << wrong.number << " " << wrong.offset;
        EXPECT_EQ(task.memory, before);
    }
}

TEST(TcpInitiatorMover, HangsUpOnARequestForDataThatIsNotThere) {
    struct Case {
        std::uint32_t number, offset, length;
    };
    for (const Case& wrong :
         {Case{0, 2000, 1001}, Case{0, 0xfffffff0, 32}, Case{1, 0, 10}, Case{0, 0, 0}}) {
        Fixture fixture({});
        Task task(1, 3000, true);
        start(fixture, task);
        fixture.sent();
        fixture.come(wire::ReadyToTransferPdu{.task_tag = task.command.task_tag,
                                              .ready_number = wrong.number,
                                              .buffer_offset = wrong.offset,
                                              .desired_length = wrong.length},
                     {});
        EXPECT_TRUE(fixture.mover.finished()) << wrong.offset;
        EXPECT_TRUE(fixture.sent().empty());
    }
}

TEST(TcpInitiatorMover, LetsGoOfATaskGivenUpOnlyWhenNobodyHoldsIt) {
    Fixture fixture({});
    Task task(1, 100, false);
    start(fixture, task);
    fixture.mover.abandon(task);
    EXPECT_TRUE(fixture.log.empty());  // its command is still to be sent
    fixture.sent();
    EXPECT_EQ(fixture.log, (std::vector<std::string>{"retired 1"}));
    const Bytes data(60, std::byte{0xaa});
    fixture.come(wire::DataInPdu{.data_length = 60, .task_tag = task.command.task_tag}, data);
    EXPECT_FALSE(fixture.mover.finished());
    EXPECT_NE(task.memory[0], std::byte{0xaa});
}

TEST(TcpInitiatorMover, ReadsNoMoreWhileItsAnswersAreNotTaken) {
    Fixture fixture({});
    const wire::NopOutPdu answer{.immediate = true};
    Bytes header(48);
    encode(answer, header);
    for (std::size_t i = 0; i < initiator_control_max; ++i)
        fixture.mover.send({.header = header, .data = {}});
    EXPECT_TRUE(fixture.mover.want().empty());
    EXPECT_EQ(fixture.sent().size(), initiator_control_max);
    EXPECT_FALSE(fixture.mover.want().empty());
}

TEST(TcpInitiatorMover, GivesTheStreamAwayWhenAllHasGone) {
    Fixture fixture({});
    Bytes header(48);
    encode(wire::NopOutPdu{}, header);
    fixture.mover.send({.header = header, .data = {}});
    bool released = false;
    fixture.mover.release_when_sent([&](std::unique_ptr<Stream>) { released = true; });
    EXPECT_FALSE(released);
    EXPECT_TRUE(fixture.mover.want().empty());
    fixture.sent();
    EXPECT_TRUE(released);
}

}  // namespace
}  // namespace weft::iscsi
