// SPDX-License-Identifier: Apache-2.0
// What the initiator's TCP mover does about PDUs with a wrong data digest.
#include <gtest/gtest.h>

#include "support/tcp_initiator_fixture.hpp"

namespace weft::iscsi {
namespace {

using test::Bytes;

constexpr std::uint32_t part = 512;

class Recovery : public testing::Test {
protected:
    explicit Recovery(std::uint8_t level = 1)
        : fixture({.data_digest = true, .error_recovery_level = level}) {
        fixture.follows_numbers = true;
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 5);
        start(fixture, read);
        fixture.sent();
    }
    wire::DataInPdu data_in(std::uint32_t number) const {
        return {.final = number == 2,
                .has_status = number == 2,
                .data_length = part,
                .task_tag = read.command.task_tag,
                .transfer_tag = wire::TargetTransferTag::none,
                .numbers = {.status_number = 7},
                .data_number = number,
                .buffer_offset = number * part};
    }
    void come(const wire::DataInPdu& pdu) {
        fixture.come(pdu, ConstBuffer(data).subspan(pdu.buffer_offset, part));
    }
    wire::SnackRequestPdu expect_snack() {
        const auto sent = fixture.sent();
        EXPECT_EQ(sent.size(), 1u);
        if (sent.size() != 1) return {};
        const auto snack = decode<wire::SnackRequestPdu>(sent[0].header);
        EXPECT_TRUE(snack);
        return snack ? *snack : wire::SnackRequestPdu{};
    }
    /// What a command that leaves now acknowledges.
    std::uint32_t acknowledged() {
        MoverTask other(1, part, false);
        start(fixture, other);
        const auto sent = fixture.sent();
        fixture.mover.abandon(other);
        return decode<wire::ScsiCommandPdu>(sent.at(0).header)->numbers.expected_status_number;
    }

    TcpInitiatorFixture fixture;
    MoverTask read{0, 3 * part, false};
    Bytes data = Bytes(std::size_t{3} * part);
};

TEST_F(Recovery, AsksForDamagedDataAgainAndTellsTheStatusWhenItIsThere) {
    come(data_in(0));
    fixture.spoil_next_data = true;
    come(data_in(1));
    const auto snack = expect_snack();
    EXPECT_EQ(snack.type, wire::SnackType::data_or_ready_to_transfer);
    EXPECT_EQ(snack.task_tag, read.command.task_tag);
    EXPECT_EQ(snack.first_of_run, 1u);
    EXPECT_EQ(snack.run_length, 1u);
    come(data_in(2));
    EXPECT_TRUE(fixture.log.empty()) << "something is missing";
    EXPECT_EQ(acknowledged(), 7u) << "or the target would let go of it";
    fixture.log.clear();
    come(data_in(1));
    EXPECT_EQ(fixture.log, (std::vector<std::string>{"responded 0", "retired 0"}));
    EXPECT_EQ(fixture.last->placed, data.size());
    EXPECT_FALSE(fixture.last->damaged);
    EXPECT_EQ(read.memory, data);
    EXPECT_EQ(acknowledged(), 8u);
}

TEST_F(Recovery, AsksForTheStatusWithTheDataItCameWith) {
    come(data_in(0));
    come(data_in(1));
    for (int i = 0; i < 3; ++i) {
        fixture.spoil_next_data = true;
        come(data_in(2));
        EXPECT_EQ(expect_snack().first_of_run, 2u);
        EXPECT_EQ(acknowledged(), 7u);
    }
    fixture.log.clear();
    come(data_in(2));
    EXPECT_EQ(fixture.log, (std::vector<std::string>{"responded 0", "retired 0"}));
    EXPECT_EQ(read.memory, data);
}

TEST_F(Recovery, AsksForAResponseWhoseSenseWasDamaged) {
    const Bytes segment = test::from_hex("00 04 70 00 05 00");
    const wire::ScsiResponsePdu response{.status = wire::ScsiStatus::check_condition,
                                         .data_length = static_cast<std::uint32_t>(segment.size()),
                                         .task_tag = read.command.task_tag,
                                         .numbers = {.status_number = 7}};
    fixture.spoil_next_data = true;
    fixture.come(response, segment);
    const auto snack = expect_snack();
    EXPECT_EQ(snack.type, wire::SnackType::status);
    EXPECT_EQ(snack.first_of_run, 7u);
    EXPECT_EQ(snack.expected_status_number, 7u);
    fixture.come(response, segment);
    EXPECT_EQ(fixture.log, (std::vector<std::string>{"responded 0", "retired 0"}));
    EXPECT_EQ(acknowledged(), 8u);
}

TEST_F(Recovery, AcknowledgesDataOnRequestWhenNoneIsMissing) {
    auto asking = data_in(1);
    asking.acknowledge = true;
    asking.transfer_tag = wire::TargetTransferTag{99};
    fixture.spoil_next_data = true;
    come(data_in(0));
    expect_snack();
    come(asking);
    EXPECT_TRUE(fixture.sent().empty());
    come(data_in(0));
    const auto snack = expect_snack();
    EXPECT_EQ(snack.type, wire::SnackType::data_acknowledgement);
    EXPECT_EQ(snack.transfer_or_snack_tag, 99u);
    EXPECT_EQ(snack.first_of_run, 2u);
    EXPECT_EQ(snack.run_length, 0u);
}

TEST_F(Recovery, EndsWhenNothingEverComesAsItShould) {
    come(data_in(0));
    for (std::size_t i = 0; i <= initiator_snacks_max; ++i) {
        fixture.spoil_next_data = true;
        come(data_in(1));
        fixture.sent();
    }
    come(data_in(2));
    ASSERT_TRUE(fixture.last);
    EXPECT_TRUE(fixture.last->damaged);
}

class NoRecovery : public Recovery {
protected:
    NoRecovery() : Recovery(0) {}
};

TEST_F(NoRecovery, SaysThatDataWasDamaged) {
    come(data_in(0));
    fixture.spoil_next_data = true;
    come(data_in(1));
    come(data_in(2));
    EXPECT_TRUE(fixture.sent().empty());
    ASSERT_TRUE(fixture.last);
    EXPECT_TRUE(fixture.last->damaged);
}

}  // namespace
}  // namespace weft::iscsi
