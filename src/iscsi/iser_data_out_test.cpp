// SPDX-License-Identifier: Apache-2.0
#include "iscsi/iser_data_out.hpp"

#include <gtest/gtest.h>

namespace weft::iscsi::iser {
namespace {

constexpr std::uint32_t all = UINT32_MAX;

TargetMoverTask write_of(std::uint32_t length, std::uint32_t along, bool more) {
    TargetMoverTask task;
    task.out_length = length;
    task.immediate_length = along;
    task.expects_unsolicited = more;
    return task;
}
wire::DataOutPdu data(std::uint32_t number, std::uint32_t offset, std::uint32_t length,
                      bool last = false) {
    return {.final = last, .data_length = length, .data_number = number, .buffer_offset = offset};
}

TEST(IserDataOut, ReadsAllOfWhatIsOnlyAdvertised) {
    DataOut out;
    out.begin(write_of(100, 0, false), {}, true);
    EXPECT_FALSE(out.outcome());
    out.want(100);
    auto part = out.next_part(all);
    ASSERT_TRUE(part);
    EXPECT_EQ(part->offset, 0u);
    EXPECT_EQ(part->length, 100u);
    EXPECT_EQ(part->in_buffer, 0u);
    EXPECT_FALSE(out.has_part());
    EXPECT_FALSE(out.outcome()) << "it is still on its way";
    out.part_came();
    EXPECT_EQ(out.outcome(), DataOutcome::complete);
}

TEST(IserDataOut, CountsTheBufferFromWhereTheOtherSideSays) {
    for (bool solicited_only : {true, false}) {
        DataOut out;
        out.begin(write_of(65536, 8192, false), {.solicited_only = solicited_only}, true);
        out.want(65536);
        auto part = out.next_part(all);
        EXPECT_EQ(part->offset, 8192u);
        EXPECT_EQ(part->length, 57344u);
        EXPECT_EQ(part->in_buffer, solicited_only ? 0u : 8192u);
    }
}

TEST(IserDataOut, ReadsInPartsOfABurst) {
    DataOut out;
    out.begin(write_of(1000, 0, false), {.burst_max = 400}, true);
    out.want(900);
    std::vector<std::uint32_t> lengths;
    while (auto part = out.next_part(350)) lengths.push_back(part->length);
    EXPECT_EQ(lengths, (std::vector<std::uint32_t>{350, 350, 200}));
    for (int i = 0; i < 2; ++i) out.part_came();
    EXPECT_FALSE(out.outcome());
    out.part_came();
    EXPECT_EQ(out.outcome(), DataOutcome::complete);
}

TEST(IserDataOut, TakesWhatFollowsByItselfInOrder) {
    DataOut out;
    out.begin(write_of(1000, 100, true), {.first_burst_max = 400}, true);
    out.want(1000);
    EXPECT_TRUE(out.take(data(0, 100, 200)));
    EXPECT_TRUE(out.take(data(1, 300, 100, true)));
    auto part = out.next_part(all);
    EXPECT_EQ(part->offset, 400u);
    EXPECT_EQ(part->length, 600u);
    out.part_came();
    EXPECT_EQ(out.outcome(), DataOutcome::complete);
    EXPECT_FALSE(out.take(data(2, 400, 100, true))) << "that burst is over";
}

TEST(IserDataOut, FindsWhatBreaksTheRulesAndWaitsForTheEndOfIt) {
    struct Case {
        const char* what;
        wire::DataOutPdu first;
    };
    for (auto& each : {Case{"another offset", data(0, 200, 100)}, Case{"a gap", data(1, 100, 100)},
                       Case{"too much", data(0, 100, 301)}}) {
        DataOut out;
        out.begin(write_of(1000, 100, true), {.first_burst_max = 400}, true);
        out.want(1000);
        EXPECT_FALSE(out.take(each.first)) << each.what;
        EXPECT_FALSE(out.outcome()) << "more of it is to come";
        EXPECT_FALSE(out.has_part()) << "and nothing is asked for any more";
        out.take(data(2, 300, 100, true));
        EXPECT_EQ(out.outcome(), DataOutcome::wrong_amount) << each.what;
    }
}

TEST(IserDataOut, FindsABurstThatEndsTooEarly) {
    DataOut out;
    out.begin(write_of(1000, 100, true), {.first_burst_max = 400}, true);
    out.want(1000);
    out.take(data(0, 100, 100, true));
    EXPECT_EQ(out.outcome(), DataOutcome::wrong_amount);
}

TEST(IserDataOut, RefusesMoreThanIsOfferedOrMayComeUnasked) {
    for (auto task : {write_of(100, 200, false), write_of(10'000, 500, false)}) {
        DataOut out;
        out.begin(task, {.first_burst_max = 400}, true);
        out.want(100);
        EXPECT_EQ(out.outcome(), DataOutcome::unexpected_unsolicited);
    }
}

TEST(IserDataOut, CannotReadWhatIsNotAdvertised) {
    DataOut out;
    out.begin(write_of(1000, 100, false), {}, false);
    out.want(1000);
    EXPECT_EQ(out.outcome(), DataOutcome::wrong_amount);
    out.begin(write_of(1000, 100, false), {}, false);
    out.want(100);
    EXPECT_EQ(out.outcome(), DataOutcome::complete) << "more is not wanted";
}

TEST(IserDataOut, EndsSoonWhenItIsAbandoned) {
    DataOut out;
    out.begin(write_of(1000, 0, true), {.first_burst_max = 50, .burst_max = 100}, true);
    out.want(1000);
    out.next_part(all);
    out.abandon();
    EXPECT_FALSE(out.has_part());
    EXPECT_FALSE(out.outcome()) << "one part is under way";
    out.part_came();
    EXPECT_EQ(out.outcome(), DataOutcome::abandoned);
}

}  // namespace
}  // namespace weft::iscsi::iser
