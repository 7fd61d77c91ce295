// SPDX-License-Identifier: Apache-2.0
#include "wire/scsi_lun.hpp"

#include <gtest/gtest.h>

namespace weft::wire {
namespace {

struct Spelling {
    std::uint32_t number;
    std::uint64_t octets;
    LogicalUnitAddressing addressing;
};

/// As sg_luns (sg3_utils 1.46) --test decodes them.
constexpr Spelling spellings[] = {
    {0, 0x0000'0000'0000'0000, LogicalUnitAddressing::peripheral_device},
    {5, 0x0005'0000'0000'0000, LogicalUnitAddressing::peripheral_device},
    {255, 0x00ff'0000'0000'0000, LogicalUnitAddressing::peripheral_device},
    {256, 0x4100'0000'0000'0000, LogicalUnitAddressing::flat_space},
    {258, 0x4102'0000'0000'0000, LogicalUnitAddressing::flat_space},
    {16383, 0x7fff'0000'0000'0000, LogicalUnitAddressing::flat_space},
    {16384, 0xd200'4000'0000'0000, LogicalUnitAddressing::extended},
    {66051, 0xd201'0203'0000'0000, LogicalUnitAddressing::extended},
    {0xffffff, 0xd2ff'ffff'0000'0000, LogicalUnitAddressing::extended},
};

TEST(LogicalUnit, IsSpeltAsOthersSpellIt) {
    for (auto& [number, octets, addressing] : spellings) {
        auto unit = spell_logical_unit(number);
        ASSERT_TRUE(unit) << number;
        EXPECT_EQ(static_cast<std::uint64_t>(*unit), octets) << number;
        EXPECT_EQ(addressing_of(*unit), addressing);
        EXPECT_EQ(*number_of(*unit), number);
    }
}

TEST(LogicalUnit, HasOneNumberHoweverItIsSpelt) {
    EXPECT_EQ(*number_of(LogicalUnit{0x4005'0000'0000'0000}), 5u);
    EXPECT_EQ(*number_of(LogicalUnit{0xd200'0005'0000'0000}), 5u);
}

TEST(LogicalUnit, HasNoNumberBehindABusOrAController) {
    for (std::uint64_t octets :
         {0x0105'0000'0000'0000ull, 0x0005'0001'0000'0000ull, 0x4005'0001'0000'0000ull,
          0xd200'0005'0000'0001ull, 0x8005'0000'0000'0000ull, 0xc101'0000'0000'0000ull})
        EXPECT_EQ(number_of(LogicalUnit{octets}).error().code, Code::unsupported)
            << std::hex << octets;
}

TEST(LogicalUnit, HasNoSpellingForNumbersBeyond24Bits) {
    EXPECT_EQ(spell_logical_unit(0x1000000).error().code, Code::out_of_range);
}

}  // namespace
}  // namespace weft::wire
