// SPDX-License-Identifier: Apache-2.0
// Which stripes of a volume are in question, as a record of the controller's store: what a member
// that is absent lacks, or what was written since all boxes last flushed.
#pragma once

#include "wire/array_superblock.hpp"

namespace weft::wire {

/// Words follow, in which every region of stripes has a bit, from the lowest of the first on.
struct ArrayDirtyHead {
    VolumeIdentity volume{};
    std::uint8_t place = 0;     ///< whose; `intent_place`: what is being written
    std::uint64_t stripes = 0;  ///< of the volume: regions are as large as it makes them
    std::uint32_t words = 0;
    /// By place: which life of its process each box was in. A box that has begun another may have
    /// lost what it had answered for and not flushed.
    std::array<std::uint64_t, 18> boots{};

    static constexpr void describe(auto& v, auto& h) {
        v.nested("volume", h.volume);
        v("place", h.place);
        v.pack(reserved<24>);
        v("words", h.words);
        v("stripes", h.stripes);
        for (auto& boot : h.boots) v("boot", boot);
    }
    bool operator==(const ArrayDirtyHead&) const = default;
};
static_assert(wire_size<ArrayDirtyHead>() == 32 + 18 * 8);
inline constexpr std::uint8_t intent_place = 0xff;

}  // namespace weft::wire
