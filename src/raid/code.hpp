// SPDX-License-Identifier: Apache-2.0
// The codes of the array: row parity (XOR) and, for two losses, RDP's diagonal parity beside it.
//
// RDP (Corbett et al., FAST 2004) with p = 17 lives inside every slice of 4 KiB: a slice is 16
// symbols of 256 octets, the slices of one row are a whole codeword, and columns that a volume does
// not have are zeroes. So the code is the same for every number of boxes up to 16 + 2, and all of
// it is XOR. All is linear: a parity is what the columns add to it one by one, in any order and at
// any place, and what is lost is found from what the survivors leave of both parities (the
// syndromes).
//
// Buffers are whole slices, aligned as base/parity.hpp wants it, of equal size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft::raid {

inline constexpr std::size_t slice_size = 4096;
inline constexpr std::uint8_t rdp_prime = 17;
inline constexpr std::size_t symbols_per_slice = rdp_prime - 1;
inline constexpr std::size_t symbol_size = slice_size / symbols_per_slice;
inline constexpr std::uint8_t data_columns_max = rdp_prime - 1;

/// What a data column adds to the diagonal parity: its own diagonals, and the one that row parity,
/// which it changes, passes through. Of a change (old XOR new) it is what the change adds.
void add_diagonal(std::uint8_t column, ConstBuffer source, Buffer diagonal);

/// Data columns `first` and `second` are lost. In: what the others leave of row and diagonal
/// parity. Out: the two columns, in their places.
void solve_pair(std::uint8_t first, std::uint8_t second, Buffer row, Buffer diagonal);

/// Data column `column` and row parity are lost. In: what the other data columns leave of the
/// diagonal parity. Out: the column.
void solve_from_diagonal(std::uint8_t column, Buffer diagonal);

/// Both parities of data columns 0, 1, ...; without a second one `diagonal` is empty.
void encode_parity(std::span<const ConstBuffer> data, Buffer row, Buffer diagonal);

/// Columns are the data, then row parity, then (if `has_diagonal`) diagonal parity; those whose
/// number is in `lost` are computed from the others. More than the code can is `out_of_range`.
Result<void> reconstruct(std::span<const Buffer> columns, bool has_diagonal,
                         std::span<const std::uint8_t> lost);

}  // namespace weft::raid
