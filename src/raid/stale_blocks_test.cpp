// SPDX-License-Identifier: Apache-2.0
#include "raid/stale_blocks.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "support/raid_memory.hpp"
#include "support/seeds.hpp"

namespace weft::raid {
namespace {

constexpr std::uint64_t home = 5 * slice_size;

Version written(std::uint64_t transaction) {
    return version_of(wire::TransactionNumber{transaction}, false);
}
Version made_anew(std::uint64_t transaction) {
    return version_of(wire::TransactionNumber{transaction}, true);
}

/// One row of slices as boxes have it, written as a volume writes it.
struct Row {
    Row(Level level, std::uint8_t boxes, std::uint64_t seed)
        : layout(*Layout::make(level, boxes, slice_size)), random(seed) {
        for (Column column = 0; column < boxes; ++column) {
            blocks.emplace_back(slice_size);
            versions.push_back({.kept = true, .columns = {}});
        }
        for (Column column = 0; column < layout.data_columns(); ++column) write(column);
    }
    bool is_mirror() const { return layout.level() == Level::mirror; }

    /// `losing` did not do what they said they had.
    void write(Column column, Mask losing = 0) {
        ++transaction;
        test::AlignedBytes fresh(slice_size);
        for (auto& octet : fresh.all()) octet = static_cast<std::byte>(random());
        truth.insert_or_assign(column, fresh);
        std::vector<test::AlignedBytes> now = right();
        for (Column each = 0; each < layout.boxes(); ++each) {
            const bool takes_part = is_mirror() || each == column || each >= layout.data_columns();
            if (!takes_part || contains(losing, each)) continue;
            blocks[each] = now[each];
            versions[each].columns[column] = written(transaction);
        }
    }
    /// From what the others have.
    void make_anew(Column column) {
        ++transaction;
        blocks[column] = right()[column];
        for (Column data = 0; data < layout.data_columns(); ++data)
            if (is_mirror() || column >= layout.data_columns() || data == column)
                versions[column].columns[data] = made_anew(transaction);
    }
    std::vector<test::AlignedBytes> right() {
        std::vector<test::AlignedBytes> all;
        if (is_mirror()) {
            for (Column column = 0; column < layout.boxes(); ++column) all.push_back(truth.at(0));
            return all;
        }
        test::AlignedBytes row(slice_size), diagonal(slice_size);
        std::vector<ConstBuffer> data;
        for (Column column = 0; column < layout.data_columns(); ++column) {
            if (!truth.contains(column)) truth.emplace(column, test::AlignedBytes(slice_size));
            all.push_back(truth.at(column));
        }
        for (auto& block : all) data.push_back(block.all());
        encode_parity(data, row.all(), layout.has_diagonal() ? diagonal.all() : Buffer{});
        all.push_back(row);
        if (layout.has_diagonal()) all.push_back(diagonal);
        return all;
    }
    std::vector<Testimony> testimonies() const {
        std::vector<Testimony> all;
        for (Column column = 0; column < layout.boxes(); ++column) {
            const bool diagonal = layout.has_diagonal();
            const Blend blend = !diagonal || column == layout.row_parity() ? Blend::copy
                                : column == layout.diagonal_parity()       ? Blend::add
                                                                           : Blend::add_diagonal;
            all.push_back({.column = column,
                           .digest = digest_of(blocks[column].all(), blend, column, home),
                           .versions = versions[column]});
        }
        return all;
    }
    bool agrees() const {
        std::vector<Digest> digests;
        for (const auto& each : testimonies()) digests.push_back(each.digest);
        return digests_agree(layout, digests);
    }
    Mask stale() const { return stale_columns(layout, testimonies()); }

    Layout layout;
    std::mt19937_64 random;
    std::uint64_t transaction = 1ull << 40;
    std::map<Column, test::AlignedBytes> truth;
    std::vector<test::AlignedBytes> blocks;
    std::vector<Versions> versions;
};

const std::vector<std::pair<Level, std::uint8_t>> shapes{
    {Level::mirror, 2}, {Level::mirror, 3}, {Level::mirror, 4},
    {Level::raid5, 3},  {Level::raid5, 5},  {Level::raid5, 17},
    {Level::raid6, 4},  {Level::raid6, 7},  {Level::raid6, 18}};

void for_each_shape(auto work) {
    for (const auto& [level, boxes] : shapes)
        for (Column lost = 0; lost < boxes; ++lost) {
            SCOPED_TRACE(testing::Message() << "level " << int(level) << ", box " << int(lost)
                                            << " of " << int(boxes));
            Row row(level, boxes, lost + 1u);
            ASSERT_TRUE(row.agrees());
            const auto data = lost < row.layout.data_columns() ? lost : Column{0};
            work(row, lost, data);
        }
}

TEST(StaleBlocks, AreNamedByWhatTheOthersRemember) {
    for_each_shape([](Row& row, Column lost, Column data) {
        row.write(data, only(lost));
        ASSERT_FALSE(row.agrees());
        EXPECT_EQ(row.stale(), only(lost)) << "whether it is data, a copy or parity";
        const auto beside = static_cast<Column>((data + 1) % row.layout.data_columns());
        if (beside != data && lost == data) row.write(beside);
        EXPECT_EQ(row.stale(), only(lost)) << "also when others were written since";
        row.make_anew(lost);
        EXPECT_TRUE(row.agrees());
        EXPECT_EQ(row.stale(), 0u);
    });
}

TEST(StaleBlocks, AreNamedOverEpochs) {
    for_each_shape([](Row& row, Column lost, Column data) {
        row.transaction = 2ull << 40 | 0xffff'fff0;
        row.write(data);
        row.transaction = 3ull << 40;  // whose low half is lower
        row.write(data, only(lost));
        EXPECT_EQ(row.stale(), only(lost));
    });
}

TEST(StaleBlocks, AreNotTheOnesThatWereMadeAnewSince) {
    for_each_shape([](Row& row, Column lost, Column data) {
        const auto others = static_cast<Column>((lost + 1) % row.layout.boxes());
        row.make_anew(others);
        row.make_anew(lost);
        EXPECT_EQ(row.stale(), 0u) << "its number is higher, its contents are not newer";
        row.write(data, only(lost));
        EXPECT_EQ(row.stale(), only(lost)) << "and a write it lost after that is newer";
    });
}

TEST(StaleBlocks, AreThoseOfABoxThatWasPutBack) {
    for_each_shape([](Row& row, Column lost, Column data) {
        const auto block = row.blocks[lost];
        const auto versions = row.versions[lost];
        for (int i = 0; i < 5; ++i)
            for (Column column = 0; column < row.layout.data_columns(); ++column) row.write(column);
        row.write(data);
        row.blocks[lost] = block;
        row.versions[lost] = versions;
        ASSERT_FALSE(row.agrees());
        EXPECT_EQ(row.stale(), only(lost));
    });
}

TEST(StaleBlocks, OfTwoAreBothNamedWhereTheCodeCanDoWithoutBoth) {
    Row row(Level::raid6, 6, 1);
    row.write(1, only(1) | only(5));
    ASSERT_FALSE(row.agrees());
    EXPECT_EQ(row.stale(), only(1) | only(5));
    row.write(2, only(2));
    EXPECT_EQ(row.stale(), only(1) | only(2) | only(5)) << "which is then one too many";
}

TEST(StaleBlocks, AreNotGuessedWhereNobodyRemembers) {
    for (const auto& [level, boxes] : shapes) {
        Row row(level, boxes, 1);
        for (auto& each : row.versions) each = {};  // parts made before there were versions
        row.blocks[0].all()[100] ^= std::byte{1};
        ASSERT_FALSE(row.agrees());
        const bool is_solvable = level == Level::raid6 || (level == Level::mirror && boxes > 2);
        EXPECT_EQ(row.stale(), is_solvable ? only(0) : 0u) << int(level) << " " << int(boxes);
    }
}

TEST(StaleBlocks, DoNotCountWhereABoxKeepsNoVersionsAndOthersDo) {
    Row row(Level::raid5, 5, 1);
    row.versions[4] = {};
    row.write(2);
    row.versions[4] = {};
    row.blocks[3].all()[100] ^= std::byte{1};
    EXPECT_EQ(row.stale(), 0u) << "its zeroes are no older write";
}

// A partial write on top of one that was lost reads what is old and changes parity by too little:
// then it is parity that is wrong, and no version says so.
TEST(StaleBlocks, AreNotNamedOnceParityWasChangedByWhatWasOld) {
    Row row(Level::raid5, 5, 1);
    const auto old = row.blocks[1];
    row.write(1, only(1));
    const auto parity = row.blocks[4];
    row.write(1);
    for (std::size_t i = 0; i < slice_size; ++i)
        row.blocks[4].all()[i] = parity.all()[i] ^ old.all()[i] ^ row.blocks[1].all()[i];
    ASSERT_FALSE(row.agrees());
    EXPECT_EQ(row.stale(), 0u) << "above all not the data, which is right";
}

TEST(StaleBlocks, AreNotNamedWhereTwoWaysOfTellingContradict) {
    Row row(Level::raid6, 6, 1);
    row.versions[2].columns[2] = written(1);  // it seems to have missed a write,
    row.blocks[3].all()[7] ^= std::byte{1};   // and another is wrong
    EXPECT_EQ(row.stale(), 0u);
}

TEST(StaleBlocks, TravelAsWordsOfADigest) {
    Versions all{.kept = true, .columns = {}};
    for (std::size_t i = 0; i < data_columns_max; ++i)
        all.columns[i] = Version{0x0123'4567'89ab'cd00 + i};
    Versions got;
    for (Column first = 0; first < data_columns_max; first += 8)
        take_versions(digest_with(all, first), first, got);
    EXPECT_EQ(got, all);
    take_versions(digest_with({}, 0), 0, got);
    EXPECT_FALSE(got.kept);
}

}  // namespace
}  // namespace weft::raid
