// SPDX-License-Identifier: Apache-2.0
#include "raid/bands.hpp"

#include <gtest/gtest.h>

#include <set>

namespace weft::raid {
namespace {

constexpr std::uint32_t k = 1024;

Layout five_boxes() {
    return *Layout::make(Level::raid5, 5, 64 * k);
}

TEST(Bands, AreOneForABlockAndOneForAWholeStripe) {
    EXPECT_EQ(bands_of(five_boxes(), {68 * k, 4 * k}),
              (std::vector<Band>{{.offset = 4 * k, .length = 4 * k, .columns = 0b10}}));
    EXPECT_EQ(bands_of(five_boxes(), {256 * k, 256 * k}),
              (std::vector<Band>{
                  {.stripe = 1, .length = 64 * k, .columns = 0b1111, .whole_stripe = true}}));
}

TEST(Bands, CutAStripeWhereTheSetOfColumnsChanges) {
    EXPECT_EQ(bands_of(five_boxes(), {32 * k, (32 + 64 + 16) * k}),
              (std::vector<Band>{{.offset = 0, .length = 16 * k, .columns = 0b110},
                                 {.offset = 16 * k, .length = 16 * k, .columns = 0b010},
                                 {.offset = 32 * k, .length = 32 * k, .columns = 0b011}}));
    EXPECT_EQ(bands_of(five_boxes(), {60 * k, 8 * k}),
              (std::vector<Band>{{.offset = 0, .length = 4 * k, .columns = 0b10},
                                 {.offset = 60 * k, .length = 4 * k, .columns = 0b01}}));
}

TEST(Bands, CoverEveryRangeOnce) {
    auto layout = *Layout::make(Level::raid6, 5, 16 * k);
    for (std::uint64_t begin = 0; begin < 28; ++begin) {
        for (std::uint64_t length = 1; length < 40; ++length) {
            std::set<std::uint64_t> covered;
            for (const auto& band : bands_of(layout, {begin * 4 * k, length * 4 * k}))
                for (Column column = 0; column < 3; ++column)
                    for (std::uint32_t at = 0; contains(band.columns, column) && at < band.length;
                         at += 4 * k)
                        ASSERT_TRUE(covered
                                        .insert(layout.address_of({.stripe = band.stripe,
                                                                   .column = column,
                                                                   .offset = band.offset + at}))
                                        .second);
            ASSERT_EQ(covered.size(), length);
            ASSERT_EQ(*covered.begin(), begin * 4 * k);
            ASSERT_EQ(*covered.rbegin(), (begin + length - 1) * 4 * k);
        }
    }
}

}  // namespace
}  // namespace weft::raid
