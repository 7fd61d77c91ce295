// SPDX-License-Identifier: Apache-2.0
#include "raid/layout.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "raid/limits.hpp"

namespace weft::raid {
namespace {

Layout made(Level level, std::uint8_t boxes, std::uint32_t chunk) {
    auto layout = Layout::make(level, boxes, chunk);
    EXPECT_TRUE(layout);
    return *layout;
}

/// One line per stripe: what each box holds of it.
std::string picture(const Layout& layout, std::uint64_t stripes) {
    std::string text;
    for (std::uint64_t stripe = 0; stripe < stripes; ++stripe) {
        for (std::uint8_t box = 0; box < layout.boxes(); ++box) {
            Column column = layout.column_of(stripe, BoxIndex{box});
            if (layout.level() == Level::mirror)
                text += 'c';
            else if (column < layout.data_columns())
                text += std::to_string(stripe * layout.data_columns() + column);
            else
                text += column == layout.row_parity() ? 'P' : 'Q';
            text += box + 1 < layout.boxes() ? ' ' : '\n';
        }
    }
    return text;
}

TEST(Layout, OfRaid5IsTheLeftSymmetricOneOfLinux) {
    EXPECT_EQ(picture(made(Level::raid5, 5, 4096), 6),
              "0 1 2 3 P\n"
              "5 6 7 P 4\n"
              "10 11 P 8 9\n"
              "15 P 12 13 14\n"
              "P 16 17 18 19\n"
              "20 21 22 23 P\n");
}

TEST(Layout, OfRaid6TurnsBothParities) {
    EXPECT_EQ(picture(made(Level::raid6, 5, 4096), 5),
              "0 1 2 P Q\n"
              "Q 3 4 5 P\n"
              "P Q 6 7 8\n"
              "11 P Q 9 10\n"
              "13 14 P Q 12\n");
}

TEST(Layout, OfAMirrorIsTheSameEverywhere) {
    EXPECT_EQ(picture(made(Level::mirror, 3, 4096), 2), "c c c\nc c c\n");
    EXPECT_EQ(made(Level::mirror, 3, 4096).capacity(10 * 4096 + 1), 10u * 4096);
}

TEST(Layout, SendsEveryByteToOnePlaceAndBack) {
    for (auto [level, boxes] : {std::pair{Level::mirror, 2},
                                {Level::mirror, 4},
                                {Level::raid5, 3},
                                {Level::raid5, 17},
                                {Level::raid6, 4},
                                {Level::raid6, 18}}) {
        auto layout = made(level, static_cast<std::uint8_t>(boxes), 8192);
        std::set<std::pair<std::uint8_t, std::uint64_t>> taken;
        for (std::uint64_t at = 0; at < 40 * layout.stripe_bytes(); at += 4096) {
            auto place = layout.place_of(at);
            ASSERT_LT(place.column, layout.data_columns());
            ASSERT_EQ(layout.address_of(place), at);
            auto box = layout.box_of(place.stripe, place.column);
            ASSERT_LT(number(box), layout.boxes());
            ASSERT_EQ(layout.column_of(place.stripe, box), place.column);
            auto home = layout.home_of(place.stripe) + place.offset;
            ASSERT_TRUE(taken.insert({number(box), home}).second) << at;
        }
    }
}

TEST(Layout, HasEveryColumnOfAStripeOnABoxOfItsOwn) {
    for (auto level : {Level::raid5, Level::raid6}) {
        for (std::uint8_t boxes = 4; boxes <= 17; ++boxes) {
            auto layout = made(level, boxes, 4096);
            for (std::uint64_t stripe = 0; stripe < 2u * boxes; ++stripe) {
                std::set<std::uint8_t> used;
                for (Column column = 0; column < boxes; ++column)
                    used.insert(number(layout.box_of(stripe, column)));
                EXPECT_EQ(used.size(), boxes);
            }
        }
    }
}

TEST(Layout, GrowsWithItsSmallestBoxByWholeStripes) {
    auto layout = made(Level::raid5, 5, 128 * 1024);
    EXPECT_EQ(layout.capacity(1u << 30), 4ull << 30);
    EXPECT_EQ(layout.capacity((1u << 30) + 128 * 1024 - 1), 4ull << 30);
    EXPECT_EQ(layout.capacity((1u << 30) + 128 * 1024), (4ull << 30) + 4 * 128 * 1024);
}

TEST(Layout, RefusesWhatNoVolumeCanBe) {
    EXPECT_EQ(Layout::make(Level::raid5, 2, 4096).error().code, Code::out_of_range);
    EXPECT_EQ(Layout::make(Level::raid5, 18, 4096).error().code, Code::out_of_range);
    EXPECT_EQ(Layout::make(Level::raid6, 3, 4096).error().code, Code::out_of_range);
    EXPECT_EQ(Layout::make(Level::raid6, 19, 4096).error().code, Code::out_of_range);
    EXPECT_EQ(Layout::make(Level::mirror, 1, 4096).error().code, Code::out_of_range);
    EXPECT_EQ(Layout::make(Level::mirror, 5, 4096).error().code, Code::out_of_range);
    EXPECT_EQ(Layout::make(Level{4}, 5, 4096).error().code, Code::unsupported);
    EXPECT_EQ(Layout::make(Level::raid5, 5, 0).error().code, Code::malformed);
    EXPECT_EQ(Layout::make(Level::raid5, 5, 4097).error().code, Code::malformed);
    EXPECT_EQ(Layout::make(Level::raid5, 5, limits::chunk_bytes * 2).error().code, Code::malformed);
}

}  // namespace
}  // namespace weft::raid
