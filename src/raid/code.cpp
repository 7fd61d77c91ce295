// SPDX-License-Identifier: Apache-2.0
#include "raid/code.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "base/parity.hpp"

namespace weft::raid {
namespace {

constexpr unsigned prime = rdp_prime;
constexpr unsigned imaginary = prime - 1;  ///< the row, and the diagonal, that nobody stores

ConstBuffer symbols(ConstBuffer slice, unsigned first, unsigned count) {
    return slice.subspan(first * symbol_size, count * symbol_size);
}
Buffer symbols(Buffer slice, unsigned first, unsigned count) {
    return slice.subspan(first * symbol_size, count * symbol_size);
}

void copy_symbol(ConstBuffer from, unsigned i, Buffer to, unsigned j) {
    std::ranges::copy(symbols(from, i, 1), symbols(to, j, 1).begin());
}

void add_diagonal_of_slice(unsigned column, ConstBuffer source, Buffer diagonal) {
    // Row i lies on diagonal i + column: a run up to the imaginary diagonal, and one behind it.
    unsigned before = imaginary - column;
    xor_into(symbols(source, 0, before), symbols(diagonal, column, before));
    if (column > 1) {
        unsigned behind = column - 1;
        xor_into(symbols(source, before + 1, behind), symbols(diagonal, 0, behind));
    }
    // Row parity is the column p - 1, so its row i lies on diagonal i - 1.
    xor_into(symbols(source, 1, imaginary - 1), symbols(diagonal, 0, imaginary - 1));
}

/// Memory for one slice that ISA-L can work on.
struct alignas(parity_alignment) Slice {
    std::array<std::byte, slice_size> octets;
};

void solve_pair_of_slice(unsigned first, unsigned second, Buffer row, Buffer diagonal) {
    Slice found_first, found_second;
    std::array<Buffer, 2> found{found_first.octets, found_second.octets};
    std::array<unsigned, 2> column{first, second};
    std::array<bool, imaginary> known{};
    // The diagonal one of them does not touch has a single unknown, on the other; its row then
    // gives the one's symbol there, which lies on a further diagonal. Two such chains meet every
    // symbol.
    for (unsigned x : {0u, 1u}) {
        unsigned y = 1 - x;
        unsigned d = (column[x] + prime - 1) % prime;
        while (d != imaginary) {
            unsigned i = (d + prime - column[y]) % prime;
            if (known[i]) break;
            copy_symbol(diagonal, d, found[y], i);
            Buffer here = symbols(found[y], i, 1);
            if (unsigned r = (d + prime - column[x]) % prime; r != imaginary)
                xor_into(symbols(found[x], r, 1), here);
            if (d + 1 != imaginary) xor_into(symbols(row, d + 1, 1), here);
            copy_symbol(row, i, found[x], i);
            xor_into(here, symbols(found[x], i, 1));
            known[i] = true;
            d = (i + column[x]) % prime;
        }
    }
    std::ranges::copy(found_first.octets, row.begin());
    std::ranges::copy(found_second.octets, diagonal.begin());
}

void solve_from_diagonal_of_slice(unsigned column, Buffer diagonal) {
    Slice memory;
    Buffer found(memory.octets);
    // Diagonal d is the sum of symbol d - column and, by way of row parity, symbol d + 1: each
    // gives the other. The imaginary symbol, which is zero, begins a chain in both directions; the
    // chains end at either side of the imaginary diagonal, and together meet every symbol.
    auto learn = [&](unsigned symbol, unsigned d, unsigned known) {
        copy_symbol(diagonal, d, found, symbol);
        if (known != imaginary) xor_into(symbols(found, known, 1), symbols(found, symbol, 1));
        return symbol;
    };
    unsigned known = imaginary;
    for (unsigned d; (d = (known + column) % prime) != imaginary;) known = learn(d + 1, d, known);
    known = imaginary;
    while (known != 0) known = learn((known - 1 + prime - column) % prime, known - 1, known);
    std::ranges::copy(memory.octets, diagonal.begin());
}

template <class Work>
void for_each_slice(std::size_t size, Work work) {
    WEFT_CHECK(size % slice_size == 0);
    for (std::size_t at = 0; at < size; at += slice_size) work(at);
}

}  // namespace

void add_diagonal(std::uint8_t column, ConstBuffer source, Buffer diagonal) {
    WEFT_CHECK(column < data_columns_max && source.size() == diagonal.size());
    for_each_slice(source.size(), [&](std::size_t at) {
        add_diagonal_of_slice(column, source.subspan(at, slice_size),
                              diagonal.subspan(at, slice_size));
    });
}

void solve_pair(std::uint8_t first, std::uint8_t second, Buffer row, Buffer diagonal) {
    WEFT_CHECK(first != second && std::max(first, second) < data_columns_max);
    WEFT_CHECK(row.size() == diagonal.size());
    for_each_slice(row.size(), [&](std::size_t at) {
        solve_pair_of_slice(first, second, row.subspan(at, slice_size),
                            diagonal.subspan(at, slice_size));
    });
}

void solve_from_diagonal(std::uint8_t column, Buffer diagonal) {
    WEFT_CHECK(column < data_columns_max);
    for_each_slice(diagonal.size(), [&](std::size_t at) {
        solve_from_diagonal_of_slice(column, diagonal.subspan(at, slice_size));
    });
}

void encode_parity(std::span<const ConstBuffer> data, Buffer row, Buffer diagonal) {
    WEFT_CHECK(!data.empty() && data.size() <= data_columns_max);
    if (data.size() == 1)
        std::ranges::copy(data[0], row.begin());
    else
        WEFT_CHECK(xor_parity(data, row).has_value());
    if (diagonal.empty()) return;
    std::ranges::fill(diagonal, std::byte{0});
    for (std::size_t j = 0; j < data.size(); ++j)
        add_diagonal(static_cast<std::uint8_t>(j), data[j], diagonal);
}

namespace {

/// Which of the columns are lost, by what they are.
struct Losses {
    std::array<std::uint8_t, 2> data{};
    std::size_t data_count = 0;
    bool row = false, diagonal = false;
};

/// The data columns that are there, added to what `row` and `diagonal` hold already.
void add_survivors(std::span<const Buffer> data, const Losses& losses, Buffer row,
                   Buffer diagonal) {
    auto gone = std::span(losses.data).first(losses.data_count);
    for (std::size_t j = 0; j < data.size(); ++j) {
        auto column = static_cast<std::uint8_t>(j);
        if (std::ranges::find(gone, column) != gone.end()) continue;
        if (!row.empty()) xor_into(data[j], row);
        if (!diagonal.empty()) add_diagonal(column, data[j], diagonal);
    }
}

void copy(ConstBuffer from, Buffer to) {
    std::ranges::copy(from, to.begin());
}

}  // namespace

Result<void> reconstruct(std::span<const Buffer> columns, bool has_diagonal,
                         std::span<const std::uint8_t> lost) {
    const std::size_t parities = has_diagonal ? 2 : 1;
    if (lost.size() > parities || columns.size() <= parities) return Error{Code::out_of_range};
    auto data = columns.first(columns.size() - parities);
    Losses losses;
    for (auto column : lost) {
        if (column >= columns.size()) return Error{Code::out_of_range};
        if (column < data.size())
            losses.data[losses.data_count++] = column;
        else
            (column == data.size() ? losses.row : losses.diagonal) = true;
    }
    Buffer row = columns[data.size()];
    Buffer diagonal = has_diagonal ? columns.back() : Buffer{};
    if (losses.data_count == 2) {
        // The parities are whole: work on copies of them, in the places of what is lost.
        Buffer first = data[losses.data[0]], second = data[losses.data[1]];
        copy(row, first), copy(diagonal, second);
        add_survivors(data, losses, first, second);
        solve_pair(losses.data[0], losses.data[1], first, second);
    } else if (losses.data_count == 1) {
        Buffer wanted = data[losses.data[0]];
        copy(losses.row ? diagonal : row, wanted);
        add_survivors(data, losses, losses.row ? Buffer{} : wanted, losses.row ? wanted : Buffer{});
        if (losses.row) solve_from_diagonal(losses.data[0], wanted);
    }
    if (losses.row) std::ranges::fill(row, std::byte{0});
    if (losses.diagonal) std::ranges::fill(diagonal, std::byte{0});
    add_survivors(data, Losses{}, losses.row ? row : Buffer{},
                  losses.diagonal ? diagonal : Buffer{});
    return {};
}

}  // namespace weft::raid
