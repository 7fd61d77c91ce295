// SPDX-License-Identifier: Apache-2.0
// Checksums that can be added up. CRC32C is linear over XOR but for a constant; without it the sum
// of the digests of all columns of a row is the digest of their sum, which is zero if parity is
// right. So parity is checked by words of four octets, and the controller, which sees no data, can
// do it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "raid/code.hpp"
#include "raid/layout.hpp"
#include "raid/order.hpp"

namespace weft::raid {

/// Of any number of slices: theirs are added up, each multiplied by a power of x that its place at
/// home decides, the same on all boxes. So what is wrong alike in two slices, or in the place of
/// the other, does not cancel out. A sum that is zero by chance is one in 2^32.
struct Digest {
    std::uint32_t row = 0;
    std::array<std::uint32_t, symbols_per_slice> diagonals{};

    void add(const Digest& other);
    bool operator==(const Digest&) const = default;
};

/// What a run of slices adds to the sums. As pieces say it: `copy` counts in the row, `add` in the
/// diagonals as they are, `add_diagonal` in the row and in the diagonals of that column. `home` is
/// where the first of them lies.
Digest digest_of(ConstBuffer slices, Blend blend, Column column, std::uint64_t home);

/// The same, of what counts in the row alone, by the CRC32C of each slice.
std::uint32_t row_digest_of(std::span<const std::uint32_t> checksums, std::uint64_t home);

/// Whether the digests of the boxes of one run, all of them, agree.
bool digests_agree(const Layout& layout, std::span<const Digest> digests);
/// Of RAID 6, from the sum of all digests of a run: the one column that is wrong, if it is one. Two
/// equations do not only say that something is, as one does; what is wrong in a column puts both
/// wrong in a way that no other column would.
std::optional<Column> column_at_odds(const Layout& layout, const Digest& sum);
/// Whether what the participants of a write have prepared agrees, by the digests they gave of it:
/// one of each participant. What cannot be compared they have not counted.
bool preparations_agree(const Layout& layout, std::span<const Digest> digests);

}  // namespace weft::raid
