// SPDX-License-Identifier: Apache-2.0
// The protocol is right with all its rules and wrong without any one of them.
#include "sim/row_model.hpp"

#include <gtest/gtest.h>

namespace weft::sim {
namespace {

std::string told(const RowModelOutcome& outcome) {
    std::string text = std::to_string(outcome.states) + " states: ";
    text += outcome.violation.value_or("nothing wrong");
    for (const auto& line : outcome.story) text += "\n    " + line;
    return text;
}

/// A row of RAID-5: two blocks of data and their parity, of which a write changes one and parity.
RowModelOptions raid5() {
    return {};
}
/// Two and two: a write of one block changes three boxes.
RowModelOptions two_and_two() {
    RowModelOptions options;
    options.boxes = 4;
    options.losses = 2;
    options.written = 0b1101;
    options.tries = 1;
    options.writes = 1;
    return options;
}

void expect_nothing_lost(const RowModelOptions& options) {
    const auto outcome = check_row(options);
    EXPECT_FALSE(outcome.violation) << told(outcome);
    EXPECT_TRUE(outcome.complete) << told(outcome);
    testing::Test::RecordProperty("states", std::to_string(outcome.states));
}

TEST(RowModel, LosesNothingWhenABoxLosesPowerAndAnOldControllerGoesOn) {
    auto options = raid5();
    options.exclusions = 0;
    expect_nothing_lost(options);
}

TEST(RowModel, LosesNothingWhenABoxIsCountedOutAndAnOldControllerGoesOn) {
    auto options = raid5();
    options.box_crashes = 0;
    options.tries = 1;
    options.two_hosts = true;
    expect_nothing_lost(options);
}

TEST(RowModel, LosesNothingWhenControllersFollowEachOther) {
    auto options = raid5();
    options.controllers = 3;
    options.tries = 1;
    options.box_crashes = 0;
    options.old_acts = false;
    expect_nothing_lost(options);
}

TEST(RowModel, LosesNothingOfTwoAndTwo) {
    auto options = two_and_two();
    options.exclusions = 0;
    options.old_acts = false;
    expect_nothing_lost(options);
}

TEST(RowModel, LosesNothingOfTwoAndTwoWhoseStripeIsWrittenWhole) {
    auto options = two_and_two();
    options.written = 0b1111;
    options.box_crashes = options.exclusions = 0;
    options.old_acts = false;
    expect_nothing_lost(options);
}

class WithoutARule : public testing::TestWithParam<RowRule> {};

TEST_P(WithoutARule, SomethingIsLost) {
    RowModelOptions options = raid5();
    options.without = GetParam();
    switch (GetParam()) {
        case RowRule::executed_once:
            options.two_hosts = true;
            options.box_crashes = options.exclusions = 0;
            break;
        case RowRule::abort_lasts:
            options.tries = 3;
            options.old_acts = false;
            break;
        case RowRule::late_prepare_is_refused:
            options.tries = 3;
            options.box_crashes = 0;
            options.old_acts = false;
            break;
        case RowRule::keep_until_settled:
        case RowRule::settled_waits_for_outcomes:
        case RowRule::survivors_decide:
        case RowRule::return_waits_for_settled:
            options.old_acts = false;
            break;
        default:
            break;
    }
    const auto outcome = check_row(options);
    EXPECT_TRUE(outcome.violation) << "without \"" << to_text(GetParam()) << "\" all is well";
    EXPECT_GT(outcome.story.size(), 4u) << "nothing is lost so easily";
    RecordProperty("story", told(outcome));
}

INSTANTIATE_TEST_SUITE_P(Rules, WithoutARule, testing::ValuesIn([] {
                             std::vector<RowRule> all;
                             for (unsigned rule = 0; rule < row_rules; ++rule)
                                 all.push_back(static_cast<RowRule>(rule));
                             return all;
                         }()));

}  // namespace
}  // namespace weft::sim
