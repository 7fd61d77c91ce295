// SPDX-License-Identifier: Apache-2.0
// Where a byte of a volume lies: which stripe, which column of it, which box, where on that box.
//
// A stripe has one chunk on every box. Columns are what the code knows: the data first, then row
// parity, then diagonal parity; a mirror's columns are copies. Which box has which column turns
// with the stripes, so that no box is the busy one:
//     RAID 5   left-symmetric, as Linux md: parity moves one box to the left with each stripe and
//              the data begins at its right
//     RAID 6   column c of stripe s is on box (c + s) mod boxes
//     mirror   copy c is on box c
// A layout is a value of twelve octets; nothing is stored of it but its four numbers.
#pragma once

#include <cstdint>

#include "raid/code.hpp"
#include "weft/result.hpp"

namespace weft::raid {

enum class Level : std::uint8_t { mirror = 1, raid5 = 5, raid6 = 6 };

/// A box's place in its volume, from 0.
enum class BoxIndex : std::uint8_t {};
constexpr std::uint8_t number(BoxIndex box) {
    return static_cast<std::uint8_t>(box);
}

using Column = std::uint8_t;

/// A byte of the volume as the code sees it.
struct Place {
    std::uint64_t stripe = 0;
    Column column = 0;
    std::uint32_t offset = 0;  ///< within the chunk

    bool operator==(const Place&) const = default;
};

class Layout {
public:
    /// Refuses what no volume can be: `out_of_range` for too few or too many boxes, `malformed` for
    /// chunks that are not whole slices.
    static Result<Layout> make(Level level, std::uint8_t boxes, std::uint32_t chunk_bytes);

    constexpr Level level() const { return level_; }
    constexpr std::uint8_t boxes() const { return boxes_; }
    constexpr std::uint32_t chunk_bytes() const { return chunk_bytes_; }

    constexpr std::uint8_t data_columns() const {
        return level_ == Level::mirror ? std::uint8_t{1}
                                       : static_cast<std::uint8_t>(boxes_ - parity_columns());
    }
    /// Columns that hold parity; a mirror's copies are none.
    constexpr std::uint8_t parity_columns() const {
        return level_ == Level::mirror ? 0 : level_ == Level::raid5 ? 1 : 2;
    }
    constexpr bool has_diagonal() const { return level_ == Level::raid6; }
    constexpr Column row_parity() const { return data_columns(); }
    constexpr Column diagonal_parity() const { return static_cast<Column>(data_columns() + 1); }
    /// How many boxes may be lost.
    constexpr std::uint8_t spare_columns() const {
        return level_ == Level::mirror ? static_cast<std::uint8_t>(boxes_ - 1) : parity_columns();
    }
    /// Octets of data in a stripe.
    constexpr std::uint64_t stripe_bytes() const {
        return std::uint64_t{data_columns()} * chunk_bytes_;
    }

    constexpr Place place_of(std::uint64_t at) const {
        return {.stripe = at / stripe_bytes(),
                .column = static_cast<Column>(at % stripe_bytes() / chunk_bytes_),
                .offset = static_cast<std::uint32_t>(at % chunk_bytes_)};
    }
    /// The byte of the volume at a place in a data column.
    constexpr std::uint64_t address_of(const Place& place) const {
        return place.stripe * stripe_bytes() + std::uint64_t{place.column} * chunk_bytes_ +
               place.offset;
    }

    constexpr BoxIndex box_of(std::uint64_t stripe, Column column) const {
        auto turn = static_cast<std::uint8_t>(stripe % boxes_);
        if (level_ == Level::mirror) return BoxIndex{column};
        if (level_ == Level::raid6) return turned(static_cast<unsigned>(column + turn));
        unsigned parity = boxes_ - 1u - turn;
        return turned(column == row_parity() ? parity : parity + 1u + column);
    }
    constexpr Column column_of(std::uint64_t stripe, BoxIndex box) const {
        for (Column column = 0; column + 1u < boxes_; ++column)
            if (box_of(stripe, column) == box) return column;
        return static_cast<Column>(boxes_ - 1);
    }
    /// Where a chunk begins on whichever box has it.
    constexpr std::uint64_t home_of(std::uint64_t stripe) const { return stripe * chunk_bytes_; }

    /// Whole stripes on boxes of this size: what is left over at the end of a box is not used. The
    /// smallest box counts, so a volume grows when all its boxes have.
    constexpr std::uint64_t stripes_on(std::uint64_t box_bytes) const {
        return box_bytes / chunk_bytes_;
    }
    constexpr std::uint64_t capacity(std::uint64_t box_bytes) const {
        return stripes_on(box_bytes) * stripe_bytes();
    }

    bool operator==(const Layout&) const = default;

private:
    constexpr Layout(Level level, std::uint8_t boxes, std::uint32_t chunk_bytes)
        : level_(level), boxes_(boxes), chunk_bytes_(chunk_bytes) {}
    constexpr BoxIndex turned(unsigned box) const {
        return BoxIndex{static_cast<std::uint8_t>(box % boxes_)};
    }

    Level level_;
    std::uint8_t boxes_;
    std::uint32_t chunk_bytes_;
};

}  // namespace weft::raid
