// SPDX-License-Identifier: Apache-2.0
#include "raid/dirty_record.hpp"

#include <gtest/gtest.h>

namespace weft::raid {
namespace {

DirtyRecord some_record(std::uint64_t stripes) {
    DirtyRecord record{.volume = {{7, 7}},
                       .place = 3,
                       .stripes = RegionMap(stripes, limits::lasting_regions),
                       .boots = {1, 2, 0xffff'ffff'ffff'fff0}};
    record.stripes.add(0);
    record.stripes.add(stripes - 1);
    return record;
}

TEST(DirtyRecord, IsReadAsItWasWritten) {
    for (std::uint64_t stripes : {1u, 8u, 64u, 65u, 4096u, 4097u, 1'000'000u}) {
        auto record = some_record(stripes);
        EXPECT_EQ(*parse_dirty_record(encode_dirty_record(record)), record) << stripes;
        record.place = wire::intent_place;
        EXPECT_EQ(*parse_dirty_record(encode_dirty_record(record)), record) << stripes;
    }
    EXPECT_LT(encode_dirty_record(some_record(std::uint64_t{1} << 50)).size(), 1024u);
}

TEST(DirtyRecord, IsRefusedWhereAnythingIsWrong) {
    const auto whole = encode_dirty_record(some_record(1000));
    for (std::size_t at = 0; at < whole.size(); ++at) {
        auto damaged = whole;
        damaged[at] ^= std::byte{0x10};
        EXPECT_FALSE(parse_dirty_record(damaged)) << at;
        EXPECT_FALSE(parse_dirty_record(ConstBuffer(whole).first(at))) << at;
    }
    EXPECT_EQ(parse_record<wire::ArrayRebuildRecord>(whole).error().code, Code::malformed);
}

TEST(DirtyRecord, IsRefusedWithBitsThatAreNoRegions) {
    RegionMap map(65, limits::lasting_regions);
    EXPECT_TRUE(map.set_words({~std::uint64_t{0}, 1}));
    EXPECT_FALSE(map.set_words({0, 2}));
    EXPECT_FALSE(map.set_words({0}));
}

}  // namespace
}  // namespace weft::raid
