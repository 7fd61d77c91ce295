// SPDX-License-Identifier: Apache-2.0
#include "raid/digest.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/parity.hpp"
#include "support/raid_memory.hpp"

namespace weft::raid {
namespace {

using test::AlignedBytes;

AlignedBytes drawn(std::mt19937_64& random, std::size_t size) {
    AlignedBytes bytes(size);
    for (auto& octet : bytes.all()) octet = static_cast<std::byte>(random());
    return bytes;
}

TEST(Digest, OfASumIsTheSumOfTheDigests) {
    std::mt19937_64 random(1);
    auto a = drawn(random, 3 * slice_size), b = drawn(random, 3 * slice_size), sum = a;
    xor_into(b.all(), sum.all());
    for (auto blend : {Blend::copy, Blend::add, Blend::add_diagonal}) {
        auto added = digest_of(a.all(), blend, 5, 0);
        added.add(digest_of(b.all(), blend, 5, 0));
        EXPECT_EQ(added, digest_of(sum.all(), blend, 5, 0));
        EXPECT_NE(added, Digest{});
    }
}

/// As a scrub counts a column of RAID 6.
Digest digest_in(const Layout& layout, Column column, ConstBuffer slices, std::uint64_t home) {
    if (column == layout.row_parity()) return digest_of(slices, Blend::copy, 0, home);
    if (column == layout.diagonal_parity()) return digest_of(slices, Blend::add, 0, home);
    return digest_of(slices, Blend::add_diagonal, column, home);
}

TEST(Digest, SaysOfRaid6WhichColumnIsAtOdds) {
    std::mt19937_64 random(2);
    for (const auto boxes : std::initializer_list<std::uint8_t>{4, 7, 18}) {
        const auto layout = *Layout::make(Level::raid6, boxes, 8 * slice_size);
        EXPECT_EQ(column_at_odds(layout, {}), std::nullopt) << "none is";
        for (Column column = 0; column < boxes; ++column) {
            for (const std::size_t slices :
                 {1u, 3u}) {  // what is wrong in it is all that is summed
                const auto error = drawn(random, slices * slice_size);
                auto sum = digest_in(layout, column, error.all(), 5 * slice_size);
                EXPECT_EQ(column_at_odds(layout, sum), column) << int(boxes);
                const auto second = static_cast<Column>((column + 1) % boxes);
                sum.add(digest_in(layout, second, drawn(random, slice_size).all(), 0));
                EXPECT_EQ(column_at_odds(layout, sum), std::nullopt) << "two are " << int(column);
            }
        }
    }
    EXPECT_EQ(column_at_odds(*Layout::make(Level::raid5, 5, 8192), Digest{.row = 7}), std::nullopt);
}

TEST(Digest, IsZeroOfZeroes) {
    for (auto blend : {Blend::copy, Blend::add, Blend::add_diagonal})
        EXPECT_EQ(digest_of(AlignedBytes(slice_size).all(), blend, 3, 0), Digest{});
}

TEST(Digest, TellsPlacesApart) {
    std::mt19937_64 random(3);
    for (auto blend : {Blend::copy, Blend::add, Blend::add_diagonal}) {
        auto twice = AlignedBytes(2 * slice_size);
        const auto once = drawn(random, slice_size);
        std::ranges::copy(once.all(), twice.all().begin());
        EXPECT_NE(digest_of(twice.all(), blend, 4, 0), Digest{});
        std::ranges::copy(once.all(), twice.all().subspan(slice_size).begin());
        EXPECT_NE(digest_of(twice.all(), blend, 4, 0), Digest{}) << "the same in two slices";
        auto exchanged = drawn(random, 2 * slice_size), before = exchanged;
        std::ranges::copy(before.all().first(slice_size),
                          exchanged.all().subspan(slice_size).begin());
        std::ranges::copy(before.all().last(slice_size), exchanged.all().begin());
        EXPECT_NE(digest_of(exchanged.all(), blend, 4, 0), digest_of(before.all(), blend, 4, 0));
        EXPECT_NE(digest_of(once.all(), blend, 4, 0), digest_of(once.all(), blend, 4, slice_size));
    }
}

TEST(Digest, OfARunIsThatOfItsPartsWhereverItIsCut) {
    std::mt19937_64 random(4);
    const auto whole = drawn(random, 9 * slice_size);
    for (auto blend : {Blend::copy, Blend::add, Blend::add_diagonal}) {
        const std::uint64_t home = std::uint64_t{1'000'003} * slice_size;
        for (std::size_t cut = 0; cut <= 9; ++cut) {
            auto added = digest_of(whole.all().first(cut * slice_size), blend, 2, home);
            added.add(digest_of(whole.all().subspan(cut * slice_size), blend, 2,
                                home + cut * slice_size));
            EXPECT_EQ(added, digest_of(whole.all(), blend, 2, home)) << cut;
        }
    }
}

TEST(Digest, SumsToZeroOverARowAndToNothingElseIfOneOctetIsWrong) {
    std::mt19937_64 random(2);
    for (std::uint8_t boxes = 4; boxes <= 18; ++boxes) {
        auto layout = *Layout::make(Level::raid6, boxes, slice_size);
        std::vector<AlignedBytes> columns;
        std::vector<ConstBuffer> data;
        for (Column c = 0; c < boxes; ++c) columns.push_back(drawn(random, slice_size));
        for (Column c = 0; c + 2 < boxes; ++c) data.push_back(columns[c].all());
        encode_parity(data, columns[boxes - 2u].all(), columns[boxes - 1u].all());
        auto agree = [&] {
            std::vector<Digest> digests;
            for (Column c = 0; c < boxes; ++c)
                digests.push_back(digest_of(columns[c].all(),
                                            c == layout.row_parity()        ? Blend::copy
                                            : c == layout.diagonal_parity() ? Blend::add
                                                                            : Blend::add_diagonal,
                                            c, 7 * slice_size));
            return digests_agree(layout, digests);
        };
        EXPECT_TRUE(agree());
        for (Column c = 0; c < boxes; ++c) {
            auto& octet = columns[c].all()[random() % slice_size];
            octet ^= std::byte{1};
            EXPECT_FALSE(agree()) << int{c};
            octet ^= std::byte{1};
        }
    }
}

}  // namespace
}  // namespace weft::raid
