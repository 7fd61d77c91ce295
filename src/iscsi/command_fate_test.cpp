// SPDX-License-Identifier: Apache-2.0
#include "iscsi/command_fate.hpp"

#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace weft::iscsi {
namespace {

using wire::AdditionalSense;
using wire::ScsiStatus;
using wire::SenseKey;

Fate of_sense(SenseKey key, AdditionalSense additional) {
    test::Bytes sense(18);
    encode(wire::FixedSense{.key = key, .additional = additional}, sense);
    return fate_of({.status = ScsiStatus::check_condition, .sense = sense});
}

TEST(Fate, OfAStatusAlone) {
    EXPECT_EQ(fate_of({.status = ScsiStatus::good}).kind, FateKind::done);
    EXPECT_EQ(fate_of({.status = ScsiStatus::condition_met}).kind, FateKind::done);
    EXPECT_EQ(fate_of({.status = ScsiStatus::busy}).kind, FateKind::later);
    EXPECT_EQ(fate_of({.status = ScsiStatus::task_set_full}).kind, FateKind::later);
    EXPECT_EQ(fate_of({.status = ScsiStatus::task_aborted}).kind, FateKind::again);
    const Fate conflict = fate_of({.status = ScsiStatus::reservation_conflict});
    EXPECT_EQ(conflict.kind, FateKind::failed);
    EXPECT_EQ(conflict.error.code, Code::access_denied);
    EXPECT_EQ(fate_of({.status = ScsiStatus::check_condition}).kind, FateKind::failed);
}

TEST(Fate, OfSense) {
    EXPECT_EQ(of_sense(SenseKey::recovered_error, AdditionalSense::none).kind, FateKind::done);
    EXPECT_EQ(of_sense(SenseKey::unit_attention, AdditionalSense::power_on_occurred).kind,
              FateKind::again);
    EXPECT_EQ(of_sense(SenseKey::not_ready, AdditionalSense::becoming_ready).kind, FateKind::later);
    EXPECT_EQ(of_sense(SenseKey::not_ready, AdditionalSense::medium_not_present).kind,
              FateKind::failed);
}

TEST(Fate, HasAWordForEachFailure) {
    auto code = [](SenseKey key, AdditionalSense additional) {
        return of_sense(key, additional).error.code;
    };
    using enum AdditionalSense;
    EXPECT_EQ(code(SenseKey::illegal_request, block_address_out_of_range), Code::out_of_range);
    EXPECT_EQ(code(SenseKey::illegal_request, invalid_operation_code), Code::unsupported);
    EXPECT_EQ(code(SenseKey::illegal_request, logical_unit_not_supported), Code::disconnected);
    EXPECT_EQ(code(SenseKey::illegal_request, invalid_field_in_command_block), Code::malformed);
    EXPECT_EQ(code(SenseKey::data_protect, write_protected), Code::access_denied);
    EXPECT_EQ(code(SenseKey::data_protect, space_allocation_failed), Code::exhausted);
    EXPECT_EQ(code(SenseKey::medium_error, unrecovered_read_error), Code::io_failed);
}

}  // namespace
}  // namespace weft::iscsi
