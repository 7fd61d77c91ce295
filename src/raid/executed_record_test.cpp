// SPDX-License-Identifier: Apache-2.0
#include "raid/executed_record.hpp"

#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace weft::raid {
namespace {

ExecutedRecord some_record() {
    return {.volume = {{7, 7}}, .notes = {{{{1, 2}}, 3}, {{{1, 2}}, 1ull << 63}, {{{9}}, 4}}};
}

TEST(ExecutedRecord, IsReadAsItWasWritten) {
    EXPECT_EQ(*parse_executed_record(encode_executed_record(some_record())), some_record());
    const ExecutedRecord none{.volume = {{7}}, .notes = {}};
    EXPECT_EQ(*parse_executed_record(encode_executed_record(none)), none);
}

TEST(ExecutedRecord, HasTheFormItHas) {
    const auto record = parse_executed_record(test::golden("raid/executed.hex"));
    ASSERT_TRUE(record);
    EXPECT_EQ(record->volume.octets[15], 0x2f);
    ASSERT_EQ(record->notes.size(), 1u);
    EXPECT_EQ(record->notes[0].first.octets[0], 0x50);
    EXPECT_EQ(record->notes[0].second, 77u);
    EXPECT_EQ(encode_executed_record(*record), test::golden("raid/executed.hex"));
}

TEST(ExecutedRecord, IsRefusedWhereAnythingIsWrong) {
    const auto whole = encode_executed_record(some_record());
    for (std::size_t at = 0; at < whole.size(); ++at) {
        auto damaged = whole;
        damaged[at] ^= std::byte{0x10};
        EXPECT_FALSE(parse_executed_record(damaged)) << at;
        EXPECT_FALSE(parse_executed_record(ConstBuffer(whole).first(at))) << at;
    }
    const std::vector<std::byte> uneven(30);
    EXPECT_FALSE(parse_executed_record(seal_record(wire::ArrayRecordKind::executed, uneven)));
}

}  // namespace
}  // namespace weft::raid
