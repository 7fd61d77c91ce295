// SPDX-License-Identifier: Apache-2.0
// Every number of data columns, every loss of one or two, against the definition of the code
// written as plainly as it can be: octet by octet, symbol (i, j) on diagonal (i + j) mod 17.
#include "raid/code.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/raid_memory.hpp"

namespace weft::raid {
namespace {

using test::AlignedBytes;

constexpr std::size_t slices = 2;
constexpr std::size_t size = slices * slice_size;

struct Codeword {
    std::vector<AlignedBytes> columns;  ///< the data, row parity, diagonal parity

    Codeword(std::size_t data_columns, std::uint64_t seed) {
        std::mt19937_64 random(seed);
        for (std::size_t j = 0; j < data_columns + 2; ++j) columns.emplace_back(size);
        for (std::size_t j = 0; j < data_columns; ++j)
            for (auto& octet : columns[j].all()) octet = static_cast<std::byte>(random());
    }

    std::size_t data_columns() const { return columns.size() - 2; }
    std::vector<ConstBuffer> data() const {
        std::vector<ConstBuffer> list;
        for (std::size_t j = 0; j < data_columns(); ++j) list.push_back(columns[j].all());
        return list;
    }
    std::vector<Buffer> all() {
        std::vector<Buffer> list;
        for (auto& column : columns) list.push_back(column.all());
        return list;
    }
    Buffer row() { return columns[data_columns()].all(); }
    Buffer diagonal() { return columns.back().all(); }

    /// By definition, not by the code under test.
    void encode_naively() {
        std::fill(row().begin(), row().end(), std::byte{0});
        std::fill(diagonal().begin(), diagonal().end(), std::byte{0});
        for (std::size_t at = 0; at < size; ++at)
            for (std::size_t j = 0; j < data_columns(); ++j) row()[at] ^= columns[j].all()[at];
        for (std::size_t j = 0; j < data_columns(); ++j) add_naively(j, columns[j].all());
        add_naively(16, row());
    }
    void add_naively(std::size_t j, Buffer column) {
        for (std::size_t at = 0; at < size; ++at) {
            std::size_t slice = at / slice_size, i = at % slice_size / symbol_size;
            std::size_t d = (i + j) % 17;
            if (d == 16) continue;
            diagonal()[slice * slice_size + d * symbol_size + at % symbol_size] ^= column[at];
        }
    }
};

TEST(Code, IsWhatItsDefinitionSays) {
    for (std::size_t n = 1; n <= data_columns_max; ++n) {
        Codeword expected(n, n), made(n, n);
        expected.encode_naively();
        encode_parity(made.data(), made.row(), made.diagonal());
        EXPECT_EQ(made.columns, expected.columns) << n << " data columns";
    }
}

TEST(Code, LeavesOutTheDiagonalWhereThereIsNone) {
    Codeword expected(5, 1), made(5, 1);
    expected.encode_naively();
    encode_parity(made.data(), made.row(), {});
    EXPECT_EQ(made.columns[5], expected.columns[5]);
    EXPECT_EQ(made.columns[6], AlignedBytes(size));
}

TEST(Code, FindsEveryPairOfLostColumns) {
    for (std::size_t n = 1; n <= data_columns_max; ++n) {
        Codeword whole(n, 100 + n);
        whole.encode_naively();
        for (std::size_t a = 0; a < n + 2; ++a) {
            for (std::size_t b = a; b < n + 2; ++b) {
                Codeword hurt = whole;
                for (auto column : {a, b})
                    std::fill(hurt.columns[column].all().begin(), hurt.columns[column].all().end(),
                              std::byte{0xee});
                std::vector<std::uint8_t> lost{static_cast<std::uint8_t>(b)};
                if (a != b) lost.push_back(static_cast<std::uint8_t>(a));
                ASSERT_TRUE(reconstruct(hurt.all(), true, lost));
                ASSERT_EQ(hurt.columns, whole.columns) << n << " columns, lost " << a << ", " << b;
            }
        }
    }
}

TEST(Code, FindsEverySingleLossByRowsAlone) {
    for (std::size_t n = 1; n <= data_columns_max; ++n) {
        Codeword whole(n, 200 + n);
        whole.encode_naively();
        for (std::size_t a = 0; a <= n; ++a) {
            Codeword hurt = whole;
            std::fill(hurt.columns[a].all().begin(), hurt.columns[a].all().end(), std::byte{1});
            auto columns = hurt.all();
            columns.pop_back();
            ASSERT_TRUE(reconstruct(columns, false, std::array{static_cast<std::uint8_t>(a)}));
            ASSERT_EQ(hurt.columns, whole.columns) << n << " columns, lost " << a;
        }
    }
}

TEST(Code, RefusesToFindMoreThanItCan) {
    Codeword word(4, 1);
    auto columns = word.all();
    EXPECT_FALSE(reconstruct(columns, true, std::array<std::uint8_t, 3>{0, 1, 2}));
    EXPECT_FALSE(reconstruct(columns, false, std::array<std::uint8_t, 2>{0, 1}));
    EXPECT_FALSE(reconstruct(columns, true, std::array<std::uint8_t, 1>{6}));
}

TEST(Code, IsBroughtUpToDateByWhatChanged) {
    for (std::size_t n = 1; n <= data_columns_max; ++n) {
        for (std::size_t j = 0; j < n; ++j) {
            Codeword word(n, 300 + n), changed = word;
            word.encode_naively();
            AlignedBytes change(size);
            for (std::size_t at = 0; at < size; ++at) {
                change.all()[at] = static_cast<std::byte>(at * 37 + j);
                changed.columns[j].all()[at] ^= change.all()[at];
                word.columns[j].all()[at] ^= change.all()[at];
                word.row()[at] ^= change.all()[at];
            }
            changed.encode_naively();
            add_diagonal(static_cast<std::uint8_t>(j), change.all(), word.diagonal());
            ASSERT_EQ(word.columns, changed.columns) << n << " columns, changed " << j;
        }
    }
}

TEST(Code, DoesNotChangeWhenAColumnOfZeroesIsAdded) {
    Codeword narrow(4, 7), wide(5, 7);
    for (std::size_t j = 0; j < 4; ++j) wide.columns[j] = narrow.columns[j];
    wide.columns[4] = AlignedBytes(size);
    encode_parity(narrow.data(), narrow.row(), narrow.diagonal());
    encode_parity(wide.data(), wide.row(), wide.diagonal());
    EXPECT_EQ(narrow.columns[4], wide.columns[5]);
    EXPECT_EQ(narrow.columns[5], wide.columns[6]);
}

}  // namespace
}  // namespace weft::raid
