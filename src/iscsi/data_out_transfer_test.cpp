// SPDX-License-Identifier: Apache-2.0
#include "iscsi/data_out_transfer.hpp"

#include <gtest/gtest.h>

namespace weft::iscsi {
namespace {

using Verdict = DataOutTransfer::Verdict;

class DataOut : public ::testing::Test {
protected:
    DataOut() {
        terms.first_burst_max = 1000;
        terms.burst_max = 2000;
        terms.initial_request_needed = false;
        terms.outstanding_requests_max = 2;
        task.out_length = 5000;
    }

    void begin(std::uint32_t wanted) {
        transfer.begin(task, terms);
        transfer.want(wanted);
    }
    Verdict unsolicited(std::uint32_t number, std::uint32_t offset, std::uint32_t length,
                        bool final) {
        return take(0xffffffff, number, offset, length, final);
    }
    Verdict take(std::uint32_t tag, std::uint32_t number, std::uint32_t offset,
                 std::uint32_t length, bool final) {
        auto verdict = transfer.take({.final = final,
                                      .data_length = length,
                                      .transfer_tag = static_cast<wire::TargetTransferTag>(tag),
                                      .data_number = number,
                                      .buffer_offset = offset});
        if (verdict != Verdict::stranger) transfer.came(true);
        return verdict;
    }

    ConnectionTerms terms;
    TargetMoverTask task;
    DataOutTransfer transfer;
};

TEST_F(DataOut, asks_for_everything_in_bursts_and_no_more_at_once_than_agreed) {
    begin(5000);
    auto first = transfer.next_request(), second = transfer.next_request();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->offset, 0u);
    EXPECT_EQ(first->length, 2000u);
    EXPECT_EQ(second->offset, 2000u);
    EXPECT_EQ(second->number, 1u);
    EXPECT_FALSE(transfer.next_request());
    EXPECT_EQ(take(first->tag, 0, 0, 1500, false), Verdict::take);
    EXPECT_EQ(take(first->tag, 1, 1500, 500, true), Verdict::take);
    auto third = transfer.next_request();
    ASSERT_TRUE(third);
    EXPECT_EQ(third->offset, 4000u);
    EXPECT_EQ(third->length, 1000u);
    take(second->tag, 0, 2000, 2000, true);
    EXPECT_FALSE(transfer.outcome());
    take(third->tag, 0, 4000, 1000, true);
    EXPECT_EQ(transfer.outcome(), DataOutcome::complete);
}

TEST_F(DataOut, takes_immediate_and_unsolicited_data_before_it_asks) {
    task.immediate_length = 300;
    task.expects_unsolicited = true;
    begin(5000);
    EXPECT_FALSE(transfer.next_request());
    transfer.came(true);
    EXPECT_FALSE(transfer.next_request());
    EXPECT_EQ(unsolicited(0, 300, 700, true), Verdict::take);
    EXPECT_EQ(transfer.next_request()->offset, 1000u);
}

TEST_F(DataOut, asks_only_for_what_is_wanted) {
    begin(1200);
    auto only = transfer.next_request();
    EXPECT_EQ(only->length, 1200u);
    EXPECT_FALSE(transfer.next_request());
    take(only->tag, 0, 0, 1200, true);
    EXPECT_EQ(transfer.outcome(), DataOutcome::complete);
}

TEST_F(DataOut, drains_what_nobody_wants) {
    task.expects_unsolicited = true;
    begin(0);
    EXPECT_FALSE(transfer.outcome());
    unsolicited(0, 0, 500, false);
    EXPECT_FALSE(transfer.outcome());
    unsolicited(1, 500, 500, true);
    EXPECT_EQ(transfer.outcome(), DataOutcome::complete);
}

TEST_F(DataOut, waits_for_the_last_of_a_sequence_that_has_a_hole) {
    begin(2000);
    auto request = transfer.next_request();
    EXPECT_EQ(take(request->tag, 0, 0, 500, false), Verdict::take);
    EXPECT_EQ(take(request->tag, 2, 1000, 500, false), Verdict::drop);
    EXPECT_FALSE(transfer.outcome());
    EXPECT_EQ(take(request->tag, 3, 1500, 500, true), Verdict::drop);
    EXPECT_EQ(transfer.outcome(), DataOutcome::damaged);
}

TEST_F(DataOut, tells_a_bad_digest_only_at_the_end) {
    begin(2000);
    auto request = transfer.next_request();
    auto pdu = wire::DataOutPdu{.data_length = 1000,
                                .transfer_tag = static_cast<wire::TargetTransferTag>(request->tag)};
    EXPECT_EQ(transfer.take(pdu), Verdict::take);
    transfer.came(false);
    EXPECT_FALSE(transfer.outcome());
    take(request->tag, 1, 1000, 1000, true);
    EXPECT_EQ(transfer.outcome(), DataOutcome::damaged);
}

TEST_F(DataOut, asks_again_for_what_was_damaged_where_recovery_was_agreed_on) {
    terms.error_recovery_level = 1;
    begin(2000);
    auto request = transfer.next_request();
    auto pdu = wire::DataOutPdu{.data_length = 600,
                                .transfer_tag = static_cast<wire::TargetTransferTag>(request->tag)};
    transfer.take(pdu);
    transfer.came(false);
    take(request->tag, 2, 1000, 1000, true);  // and the one with number 1 never came
    EXPECT_FALSE(transfer.outcome());
    std::uint32_t again = 0;
    while (auto missing = transfer.next_request()) {
        again += missing->length;
        take(missing->tag, 0, missing->offset, missing->length, true);
    }
    EXPECT_EQ(again, 1000u);
    EXPECT_EQ(transfer.outcome(), DataOutcome::complete);
}

TEST_F(DataOut, refuses_more_than_the_first_burst_unasked) {
    task.expects_unsolicited = true;
    begin(5000);
    EXPECT_EQ(unsolicited(0, 0, 1001, true), Verdict::drop);
    EXPECT_EQ(transfer.outcome(), DataOutcome::unexpected_unsolicited);
}

TEST_F(DataOut, refuses_unsolicited_data_that_was_not_agreed_on) {
    terms.initial_request_needed = true;
    task.expects_unsolicited = true;
    begin(5000);
    EXPECT_EQ(unsolicited(0, 0, 1000, true), Verdict::drop);
    EXPECT_EQ(transfer.outcome(), DataOutcome::unexpected_unsolicited);
}

TEST_F(DataOut, refuses_an_answer_that_is_too_short_or_too_long) {
    begin(5000);
    auto request = transfer.next_request();
    take(request->tag, 0, 0, 1999, true);
    EXPECT_EQ(transfer.outcome(), DataOutcome::wrong_amount);
    begin(2000);
    request = transfer.next_request();
    EXPECT_EQ(take(request->tag, 0, 0, 2001, true), Verdict::drop);
    EXPECT_EQ(transfer.outcome(), DataOutcome::wrong_amount);
}

TEST_F(DataOut, knows_no_tag_of_an_earlier_command) {
    begin(1000);
    auto old = transfer.next_request()->tag;
    begin(1000);
    transfer.next_request();
    EXPECT_EQ(take(old, 0, 0, 1000, true), Verdict::stranger);
}

TEST_F(DataOut, is_over_at_once_when_it_is_abandoned) {
    begin(5000);
    auto request = transfer.next_request();
    transfer.abandon();
    EXPECT_EQ(transfer.outcome(), DataOutcome::abandoned);
    EXPECT_EQ(take(request->tag, 0, 0, 2000, true), Verdict::stranger);
}

}  // namespace
}  // namespace weft::iscsi
