// SPDX-License-Identifier: Apache-2.0
#include "raid/digest.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/crc32c.hpp"

namespace weft::raid {
namespace {

template <std::size_t size>
std::uint32_t linear(std::uint32_t checksum) {
    static const std::uint32_t of_zeroes = crc32c(std::array<std::byte, size>{});
    return checksum ^ of_zeroes;
}

template <std::size_t size>
std::uint32_t linear_checksum(ConstBuffer octets) {
    return linear<size>(crc32c(octets));
}

// Checksums are polynomials over two elements, modulo that of CRC32C; the highest bit is x^0.
constexpr std::uint32_t polynomial = 0x82f63b78;
constexpr std::uint32_t one = 0x80000000;

constexpr std::uint32_t times_x(std::uint32_t a) {
    return a >> 1 ^ (a & 1 ? polynomial : 0);
}

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
    std::uint32_t sum = 0;
    for (std::uint32_t bit = one; bit != 0; bit >>= 1, b = times_x(b))
        if (a & bit) sum ^= b;
    return sum;
}

constexpr std::uint32_t power_of_x(std::uint64_t exponent) {
    std::uint32_t power = one;
    for (std::uint32_t square = one >> 1; exponent != 0; exponent >>= 1) {
        if (exponent & 1) power = product(power, square);
        square = product(square, square);
    }
    return power;
}

std::array<std::uint32_t, rdp_prime> symbol_checksums(ConstBuffer slice) {
    std::array<std::uint32_t, rdp_prime> words{};  // the last is of the imaginary symbol: zero
    for (std::size_t i = 0; i < symbols_per_slice; ++i)
        words[i] = linear_checksum<symbol_size>(slice.subspan(i * symbol_size, symbol_size));
    return words;
}

}  // namespace

void Digest::add(const Digest& other) {
    row ^= other.row;
    for (std::size_t d = 0; d < diagonals.size(); ++d) diagonals[d] ^= other.diagonals[d];
}

Digest digest_of(ConstBuffer slices, Blend blend, Column column, std::uint64_t home) {
    WEFT_CHECK(slices.size() % slice_size == 0 && home % slice_size == 0);
    Digest digest;
    // From the last, so that each is multiplied by x once for every slice before it.
    for (; !slices.empty(); slices = slices.first(slices.size() - slice_size)) {
        const auto slice = slices.last(slice_size);
        digest.row = times_x(digest.row);
        if (blend != Blend::add) digest.row ^= linear_checksum<slice_size>(slice);
        if (blend == Blend::copy) continue;
        const auto words = symbol_checksums(slice);
        for (std::size_t d = 0; d < symbols_per_slice; ++d)
            digest.diagonals[d] =
                times_x(digest.diagonals[d]) ^
                (blend == Blend::add ? words[d]
                                     : words[(d + rdp_prime - column) % rdp_prime] ^ words[d + 1]);
    }
    const auto place = power_of_x(home / slice_size);
    digest.row = product(digest.row, place);
    if (blend != Blend::copy)
        for (auto& word : digest.diagonals) word = product(word, place);
    return digest;
}

std::uint32_t row_digest_of(std::span<const std::uint32_t> checksums, std::uint64_t home) {
    std::uint32_t row = 0;
    for (; !checksums.empty(); checksums = checksums.first(checksums.size() - 1))
        row = times_x(row) ^ linear<slice_size>(checksums.back());
    return product(row, power_of_x(home / slice_size));
}

bool digests_agree(const Layout& layout, std::span<const Digest> digests) {
    if (layout.level() == Level::mirror)
        return std::ranges::all_of(digests, [&](const auto& d) { return d == digests[0]; });
    if (digests.size() != layout.boxes()) return true;  // with a column missing nothing can be said
    return preparations_agree(layout, digests);
}

namespace {

/// What the row's sum is if the diagonals' sums come from this column alone.
std::uint32_t row_by_diagonals(Column column, const Digest& sum) {
    // The code does to words what it does to symbols.
    constexpr std::size_t word = 4;
    alignas(64) std::array<std::byte, slice_size> symbols{};
    for (std::size_t d = 0; d < symbols_per_slice; ++d)
        store_big_endian<word>(sum.diagonals[d], symbols.data() + d * symbol_size);
    solve_from_diagonal(column, symbols);
    static const std::uint32_t behind_a_symbol = power_of_x(8 * symbol_size);
    std::uint32_t row = 0;
    for (std::size_t i = 0; i < symbols_per_slice; ++i)
        row = product(row, behind_a_symbol) ^
              static_cast<std::uint32_t>(load_big_endian<word>(symbols.data() + i * symbol_size));
    return row;
}

}  // namespace

std::optional<Column> column_at_odds(const Layout& layout, const Digest& sum) {
    if (!layout.has_diagonal() || sum == Digest{}) return std::nullopt;
    if (sum.row == 0) return layout.diagonal_parity();
    if (sum == Digest{.row = sum.row, .diagonals = {}}) return layout.row_parity();
    std::optional<Column> found;
    for (Column column = 0; column < layout.data_columns(); ++column) {
        if (row_by_diagonals(column, sum) != sum.row) continue;
        if (found) return std::nullopt;
        found = column;
    }
    return found;
}

bool preparations_agree(const Layout& layout, std::span<const Digest> digests) {
    if (layout.level() == Level::mirror)
        return std::ranges::all_of(digests, [&](const auto& d) { return d == digests[0]; });
    Digest sum;
    for (const auto& digest : digests) sum.add(digest);
    return sum == Digest{};
}

}  // namespace weft::raid
