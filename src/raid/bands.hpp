// SPDX-License-Identifier: Apache-2.0
// A request cut the way the code sees it: stripe by stripe, and within a stripe into bands, runs of
// offsets at which the same columns are touched. In a band every row is alike, so one decision
// (write in full, or modify) serves all of it.
//
//     column 0   . . # #      a request from the middle of column 0 to the first quarter of
//     column 1   # # # #      column 2 makes three bands: {1,2}, {1}, {0,1}
//     column 2   # . . .
#pragma once

#include <cstdint>
#include <vector>

#include "raid/layout.hpp"

namespace weft::raid {

/// A run of bytes of a volume.
struct Range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;

    bool operator==(const Range&) const = default;
};

/// A set of columns, or of boxes: bit n is number n.
using Mask = std::uint32_t;
constexpr bool contains(Mask mask, unsigned n) {
    return (mask >> n & 1) != 0;
}
constexpr Mask only(unsigned n) {
    return Mask{1} << n;
}

struct Band {
    std::uint64_t stripe = 0;
    std::uint32_t offset = 0;  ///< within the chunk
    std::uint32_t length = 0;
    Mask columns = 0;           ///< data columns the request touches here
    bool whole_stripe = false;  ///< the band is all of a stripe that is touched everywhere

    bool operator==(const Band&) const = default;
};

/// The bands of a range, in order of stripe and offset.
std::vector<Band> bands_of(const Layout& layout, Range range);

}  // namespace weft::raid
