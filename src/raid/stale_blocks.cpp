// SPDX-License-Identifier: Apache-2.0
#include "raid/stale_blocks.hpp"

#include <algorithm>
#include <bit>

#include "raid/order.hpp"

namespace weft::raid {
namespace {

/// Whether a block of this column has a share of that data column.
bool has_share(const Layout& layout, Column column, Column data) {
    if (layout.level() == Level::mirror || column >= layout.data_columns()) return true;
    return column == data;
}

/// Whoever remembers an older write than another does of the same column. What was made anew is as
/// new as what it was made of, which may have been old: it speaks against nobody.
Mask by_versions(const Layout& layout, std::span<const Testimony> row) {
    Mask stale = 0;
    for (Column data = 0; data < layout.data_columns(); ++data) {
        std::uint64_t newest = 0;
        auto speaks = [&](const Testimony& box) {
            return box.versions.kept && has_share(layout, box.column, data);
        };
        for (const Testimony& box : row) {
            const Version version = box.versions.columns[data];
            if (speaks(box) && !is_restored(version)) newest = std::max(newest, age_of(version));
        }
        for (const Testimony& box : row)
            if (speaks(box) && age_of(box.versions.columns[data]) < newest)
                stale |= only(box.column);
    }
    return stale;
}

/// Copies that more than half of all do not agree with.
Mask by_vote(const Layout& layout, std::span<const Testimony> row) {
    for (const Testimony& candidate : row) {
        Mask against = 0;
        std::size_t votes = 0;
        for (const Testimony& box : row) {
            if (box.digest == candidate.digest)
                ++votes;
            else
                against |= only(box.column);
        }
        if (2 * votes > layout.boxes()) return against;
    }
    return 0;
}

Mask stale_copies(const Layout& layout, std::span<const Testimony> row) {
    const Mask stale = by_versions(layout, row);
    if (stale == 0) return by_vote(layout, row);
    const Testimony* first = nullptr;
    for (const Testimony& box : row) {
        if (contains(stale, box.column)) continue;
        if (first != nullptr && box.digest != first->digest) return 0;
        first = &box;
    }
    return stale;
}

}  // namespace

Mask stale_columns(const Layout& layout, std::span<const Testimony> row) {
    if (layout.level() == Level::mirror) return stale_copies(layout, row);
    const Mask stale = by_versions(layout, row);
    if (!layout.has_diagonal() || row.size() != layout.boxes()) return stale;
    Digest sum;
    for (const Testimony& box : row) sum.add(box.digest);
    const auto odd = column_at_odds(layout, sum);
    if (stale == 0) return odd ? only(*odd) : 0;
    if (std::popcount(stale) == 1 && (!odd || only(*odd) != stale)) return 0;
    return stale;
}

Digest digest_with(const Versions& versions, Column first) {
    Digest digest{.row = versions.kept ? 1u : 0u, .diagonals = {}};
    for (std::size_t i = 0; i < versions_per_answer && first + i < data_columns_max; ++i) {
        const auto version = static_cast<std::uint64_t>(versions.columns[first + i]);
        digest.diagonals[2 * i] = static_cast<std::uint32_t>(version >> 32);
        digest.diagonals[2 * i + 1] = static_cast<std::uint32_t>(version);
    }
    return digest;
}

void take_versions(const Digest& digest, Column first, Versions& into) {
    into.kept = digest.row == 1;
    for (std::size_t i = 0; i < versions_per_answer && first + i < data_columns_max; ++i)
        into.columns[first + i] =
            Version{std::uint64_t{digest.diagonals[2 * i]} << 32 | digest.diagonals[2 * i + 1]};
}

}  // namespace weft::raid
