// SPDX-License-Identifier: Apache-2.0
#include "raid/bands.hpp"

#include <algorithm>
#include <array>

namespace weft::raid {
namespace {

/// What a range has of one stripe, as offsets into the stripe's data.
struct Part {
    std::uint64_t begin, end;
};

Mask columns_at(const Layout& layout, Part part, std::uint32_t offset) {
    Mask columns = 0;
    for (Column column = 0; column < layout.data_columns(); ++column) {
        auto at = std::uint64_t{column} * layout.chunk_bytes() + offset;
        if (at >= part.begin && at < part.end) columns |= only(column);
    }
    return columns;
}

void add_bands(std::vector<Band>& bands, const Layout& layout, std::uint64_t stripe, Part part) {
    const std::uint32_t chunk = layout.chunk_bytes();
    std::array cuts{std::uint32_t{0}, static_cast<std::uint32_t>(part.begin % chunk),
                    static_cast<std::uint32_t>(part.end % chunk), chunk};
    std::ranges::sort(cuts);
    const std::size_t first = bands.size();
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        if (cuts[i] == cuts[i + 1]) continue;
        Mask columns = columns_at(layout, part, cuts[i]);
        if (columns == 0) continue;
        const bool joins = bands.size() > first && bands.back().columns == columns &&
                           bands.back().offset + bands.back().length == cuts[i];
        if (joins)
            bands.back().length += cuts[i + 1] - cuts[i];
        else
            bands.push_back({.stripe = stripe,
                             .offset = cuts[i],
                             .length = cuts[i + 1] - cuts[i],
                             .columns = columns,
                             .whole_stripe = part.end - part.begin == layout.stripe_bytes()});
    }
}

}  // namespace

std::vector<Band> bands_of(const Layout& layout, Range range) {
    std::vector<Band> bands;
    const std::uint64_t size = layout.stripe_bytes(), end = range.offset + range.length;
    for (std::uint64_t stripe = range.offset / size; stripe * size < end; ++stripe) {
        const std::uint64_t base = stripe * size;
        add_bands(bands, layout, stripe,
                  {std::max(range.offset, base) - base, std::min(end, base + size) - base});
    }
    return bands;
}

}  // namespace weft::raid
