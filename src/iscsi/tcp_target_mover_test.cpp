// SPDX-License-Identifier: Apache-2.0
// What is the TCP datamover's own business at a target: error recovery level 1, bad streams, and
// streams that are given away.
#include "iscsi/tcp_target_mover.hpp"

#include "support/iscsi_bench.hpp"

namespace weft::iscsi {
namespace {

using wire::RejectReason;
using wire::ScsiStatus;
using wire::SnackType;

class TcpTarget : public TargetBench {
protected:
    /// A session with error recovery level 1 and small segments.
    Talk& recovering() {
        return logged_in({{"ErrorRecoveryLevel", "1"},
                          {"MaxRecvDataSegmentLength", "512"},
                          {"ImmediateData", "No"},
                          {"InitialR2T", "Yes"}});
    }
    static wire::SnackRequestPdu snack(SnackType type, wire::InitiatorTaskTag tag,
                                       std::uint32_t first, std::uint32_t count) {
        return {.type = type,
                .task_tag = tag,
                .transfer_or_snack_tag = 0xffffffff,
                .first_of_run = first,
                .run_length = count};
    }
    /// A PDU that only says what was received.
    void acknowledge(Talk& talk, std::uint32_t expected) {
        talk.say(wire::NopOutPdu{.immediate = true,
                                 .task_tag = wire::InitiatorTaskTag::none,
                                 .transfer_tag = wire::TargetTransferTag::none,
                                 .numbers = {talk.command_number, expected}});
    }
};

TEST_F(TcpTarget, sends_data_and_status_again_until_they_are_acknowledged) {
    auto data = pattern(2048, 1);
    std::copy(data.begin(), data.end(), memory.lend(BlockOperation::write, 0, 2048).begin());
    auto& talk = recovering();
    auto read = transfer(talk, false, 0, 4);
    talk.say(read);
    wire::DataInPdu last;
    for (int i = 0; i < 4; ++i) last = talk.expect<wire::DataInPdu>();
    ASSERT_TRUE(last.has_status);
    talk.say(snack(SnackType::data_or_ready_to_transfer, read.task_tag, 1, 2));
    for (std::uint32_t number : {1u, 2u}) {
        auto again = talk.expect<wire::DataInPdu>();
        EXPECT_EQ(again.data_number, number);
        EXPECT_EQ(again.buffer_offset, number * 512);
        EXPECT_FALSE(again.has_status);
        EXPECT_EQ(talk.last.data,
                  std::vector(data.begin() + number * 512, data.begin() + number * 512 + 512));
    }
    talk.expect_silence();
    talk.say(snack(SnackType::data_or_ready_to_transfer, read.task_tag, 3, 0));
    auto status = talk.expect<wire::DataInPdu>();
    EXPECT_TRUE(status.has_status);
    EXPECT_EQ(status.numbers.status_number, last.numbers.status_number);
    talk.say(snack(SnackType::status, wire::InitiatorTaskTag::none, last.numbers.status_number, 1));
    status = talk.expect<wire::DataInPdu>();
    EXPECT_EQ(status.data_number, 3u);
    EXPECT_EQ(status.numbers.status_number, last.numbers.status_number);

    acknowledge(talk, last.numbers.status_number + 1);
    talk.say(snack(SnackType::data_or_ready_to_transfer, read.task_tag, 0, 1));
    EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, RejectReason::protocol_error);
}

TEST_F(TcpTarget, sends_again_no_data_that_was_acknowledged) {
    auto& talk = logged_in({{"ErrorRecoveryLevel", "1"},
                            {"MaxRecvDataSegmentLength", "512"},
                            {"FirstBurstLength", "1024"},
                            {"MaxBurstLength", "1024"}});
    auto read = transfer(talk, false, 1, 8);
    talk.say(read);
    std::vector<wire::DataInPdu> came;
    for (int i = 0; i < 8; ++i) came.push_back(talk.expect<wire::DataInPdu>());
    for (std::size_t i = 0; i < 8; ++i) {
        const bool asks = i == 1 || i == 3 || i == 5;
        EXPECT_EQ(came[i].acknowledge, asks) << "once for each burst but the last, " << i;
        EXPECT_EQ(came[i].transfer_tag == wire::TargetTransferTag::none, !asks);
        EXPECT_EQ(came[i].logical_unit, asks ? read.logical_unit : wire::LogicalUnit{});
    }
    auto has = [&](std::uint32_t next) {
        return wire::SnackRequestPdu{
            .type = SnackType::data_acknowledgement,
            .logical_unit = read.logical_unit,
            .task_tag = wire::InitiatorTaskTag::none,
            .transfer_or_snack_tag = static_cast<std::uint32_t>(came[3].transfer_tag),
            .first_of_run = next};
    };
    talk.say(has(4));
    talk.expect_silence();
    talk.say(snack(SnackType::data_or_ready_to_transfer, read.task_tag, 3, 2));
    EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, RejectReason::protocol_error);
    talk.say(snack(SnackType::data_or_ready_to_transfer, read.task_tag, 0, 0));
    for (std::size_t i = 4; i < 8; ++i) {
        auto again = talk.expect<wire::DataInPdu>();
        again.numbers = came[i].numbers;
        EXPECT_EQ(again, came[i]) << "all that is not acknowledged, as it was, " << i;
    }
    for (std::uint32_t impossible : {3u, 9u}) {
        talk.say(has(impossible));
        EXPECT_EQ(talk.expect<wire::RejectPdu>().reason,
                  RejectReason::invalid_data_acknowledgement);
    }
}

TEST_F(TcpTarget, cuts_data_anew_when_the_initiator_takes_other_segments) {
    auto data = pattern(4096, 3);
    std::copy(data.begin(), data.end(), memory.lend(BlockOperation::write, 0, 4096).begin());
    auto& talk = recovering();
    auto read = transfer(talk, false, 0, 8);
    talk.say(read);
    wire::DataInPdu last;
    for (int i = 0; i < 8; ++i) last = talk.expect<wire::DataInPdu>();
    ASSERT_TRUE(last.has_status);
    talk.say(wire::TextRequestPdu{.immediate = true,
                                  .final = true,
                                  .task_tag = wire::InitiatorTaskTag{800},
                                  .transfer_tag = wire::TargetTransferTag::none,
                                  .numbers = {talk.command_number, last.numbers.status_number}},
             text_of({{"MaxRecvDataSegmentLength", "3072"}}));
    talk.expect<wire::TextResponsePdu>();
    auto ask = snack(SnackType::resegmented_data, read.task_tag, 0, 0);
    ask.transfer_or_snack_tag = 77;
    ask.expected_status_number = last.numbers.status_number;
    for (std::uint32_t tag : {77u, 78u}) {
        ask.transfer_or_snack_tag = tag;
        talk.say(ask);
        auto first = talk.expect<wire::DataInPdu>();
        EXPECT_EQ(first.data_number, 0u);
        EXPECT_EQ(talk.last.data, std::vector(data.begin(), data.begin() + 3072));
        auto second = talk.expect<wire::DataInPdu>();
        EXPECT_EQ(second.data_number, 1u);
        EXPECT_EQ(second.buffer_offset, 3072u);
        EXPECT_FALSE(second.has_status) << "the response says which sending it ends";
        auto response = talk.expect<wire::ScsiResponsePdu>();
        EXPECT_EQ(response.snack_tag, tag);
        EXPECT_EQ(response.expected_data_number, 2u);
        EXPECT_EQ(response.numbers.status_number, last.numbers.status_number);
    }
    auto status =
        snack(SnackType::status, wire::InitiatorTaskTag::none, last.numbers.status_number, 1);
    status.expected_status_number = last.numbers.status_number;
    talk.say(status);
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().snack_tag, 78u);
    acknowledge(talk, last.numbers.status_number + 2);
    talk.say(ask);
    EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, RejectReason::protocol_error);
}

TEST_F(TcpTarget, sends_responses_of_every_kind_again) {
    auto& talk = recovering();
    talk.say(test_unit_ready(talk, 0));
    auto first = talk.expect<wire::ScsiResponsePdu>();
    talk.say(wire::NopOutPdu{.immediate = true,
                             .task_tag = wire::InitiatorTaskTag{900},
                             .transfer_tag = wire::TargetTransferTag::none,
                             .numbers = {talk.command_number, first.numbers.status_number}});
    talk.expect<wire::NopInPdu>();
    auto ask =
        snack(SnackType::status, wire::InitiatorTaskTag::none, first.numbers.status_number, 0);
    ask.expected_status_number = first.numbers.status_number;
    talk.say(ask);
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().numbers.status_number,
              first.numbers.status_number);
    auto again = talk.expect<wire::NopInPdu>();
    EXPECT_EQ(again.task_tag, wire::InitiatorTaskTag{900});
    EXPECT_EQ(again.numbers.status_number, first.numbers.status_number + 1);
    talk.expect_silence();
}

TEST_F(TcpTarget, asks_again_for_data_when_the_asking_was_lost) {
    auto& talk = recovering();
    auto write = transfer(talk, true, 0, 1);
    talk.say(write);
    auto asked = talk.expect<wire::ReadyToTransferPdu>();
    talk.say(snack(SnackType::data_or_ready_to_transfer, write.task_tag, 0, 1));
    auto again = talk.expect<wire::ReadyToTransferPdu>();
    EXPECT_EQ(again.transfer_tag, asked.transfer_tag);
    EXPECT_EQ(again.ready_number, 0u);
    auto data = pattern(512, 4);
    talk.say(
        wire::DataOutPdu{
            .final = true, .task_tag = write.task_tag, .transfer_tag = again.transfer_tag},
        data);
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
    EXPECT_EQ(on_disk(512), data);
}

TEST_F(TcpTarget, asks_again_for_data_that_was_damaged) {
    auto& talk = connect();
    talk.log_in(name, {{"ErrorRecoveryLevel", "1"}, {"DataDigest", "CRC32C"}});
    talk.digests = {false, true};
    settle(talk);
    auto write = transfer(talk, true, 0, 2);
    auto data = pattern(1024, 5);
    talk.spoil_next_data = true;
    talk.say(write, data);
    EXPECT_EQ(talk.expect<wire::RejectPdu>().reason, RejectReason::data_digest_error);
    auto asked = talk.expect<wire::ReadyToTransferPdu>();
    EXPECT_EQ(asked.buffer_offset, 0u);
    EXPECT_EQ(asked.desired_length, 1024u);
    talk.say(
        wire::DataOutPdu{
            .final = true, .task_tag = write.task_tag, .transfer_tag = asked.transfer_tag},
        data);
    EXPECT_EQ(talk.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
    EXPECT_EQ(on_disk(1024), data);
}

TEST_F(TcpTarget, sends_the_data_its_digest_was_computed_of) {
    auto& reader = connect();
    reader.log_in(name, {{"DataDigest", "CRC32C"}});
    reader.digests = {false, true};
    settle(reader);
    auto& writer = connect();
    writer.initiator = "iqn.2026-11.io.weft:another";
    writer.log_in(name);
    settle(writer);
    std::vector<std::byte> header(wire::basic_header_size);
    encode(transfer(reader, false, 0, 1), header);
    auto place = reader.mover().want();
    ASSERT_EQ(place.size(), header.size());
    std::copy(header.begin(), header.end(), place.begin());
    reader.mover().filled(header.size());
    std::array<ConstBuffer, 16> pieces;
    ASSERT_GT(reader.mover().pending(pieces), 0u) << "ready to go, and its reader is slow";
    writer.say(transfer(writer, true, 0, 1), pattern(512, 3));
    EXPECT_EQ(writer.expect<wire::ScsiResponsePdu>().status, ScsiStatus::good);
    std::vector<std::byte> sent;
    const auto count = reader.mover().pending(pieces);
    for (auto piece : std::span(pieces).first(count))
        sent.insert(sent.end(), piece.begin(), piece.end());
    ASSERT_EQ(sent.size(), wire::basic_header_size + 512 + 4);
    const auto data = ConstBuffer(sent).subspan(wire::basic_header_size, 512);
    EXPECT_EQ(load_little_endian<4>(sent.data() + sent.size() - 4), crc32c(data));
    reader.mover().sent(sent.size());
}

TEST_F(TcpTarget, leaves_who_sends_more_than_was_agreed_on_in_one_segment) {
    auto& talk = logged_in();
    std::vector<std::byte> header(wire::basic_header_size);
    encode(wire::NopOutPdu{.immediate = true, .data_length = segment_bytes + 1}, header);
    talk.give(header);
    EXPECT_TRUE(talk.finished());
}

TEST_F(TcpTarget, leaves_who_sends_a_header_with_a_wrong_digest) {
    auto& talk = connect();
    talk.log_in(name, {{"HeaderDigest", "CRC32C"}});
    std::vector<std::byte> header(wire::basic_header_size + 4);
    encode(wire::NopOutPdu{.immediate = true}, header);
    talk.give(header);
    EXPECT_TRUE(talk.finished());
}

TEST_F(TcpTarget, reads_no_further_while_its_answers_are_not_taken) {
    auto& talk = logged_in();
    auto ping = wire::NopOutPdu{.immediate = true,
                                .task_tag = wire::InitiatorTaskTag{900},
                                .transfer_tag = wire::TargetTransferTag::none,
                                .numbers = {talk.command_number, 0}};
    std::vector<std::byte> header(wire::basic_header_size);
    encode(ping, header);
    std::size_t taken = 0;
    for (; taken < 10 * unsent_control_max; ++taken) {
        auto place = talk.mover().want();
        if (place.empty()) break;
        ASSERT_EQ(place.size(), header.size());
        std::copy(header.begin(), header.end(), place.begin());
        talk.mover().filled(header.size());
    }
    EXPECT_EQ(taken, unsent_control_max);
    talk.carry();
    EXPECT_FALSE(talk.mover().want().empty());
}

TEST_F(TcpTarget, leaves_who_begins_with_data) {
    auto& talk = connect();
    talk.say(wire::DataOutPdu{.final = true,
                              .task_tag = wire::InitiatorTaskTag{1},
                              .transfer_tag = wire::TargetTransferTag::none},
             pattern(512, 1));
    EXPECT_TRUE(talk.finished());
}

TEST_F(TcpTarget, gives_its_stream_away_when_all_is_sent) {
    auto& talk = logged_in();
    bool gone = false;
    talk.connection().tell_window();
    talk.mover().release_when_sent([&] { gone = true; });
    EXPECT_TRUE(talk.mover().want().empty());
    EXPECT_FALSE(gone);
    talk.expect<wire::NopInPdu>();
    EXPECT_TRUE(gone);
    EXPECT_FALSE(talk.finished());
    talk.connection().lost(std::nullopt);
}

}  // namespace
}  // namespace weft::iscsi
