// SPDX-License-Identifier: Apache-2.0
// The volume as the engine has it now: plans are made for it, and orders are addressed by it.
#pragma once

#include "raid/health.hpp"
#include "raid/layout.hpp"
#include "wire/array_superblock.hpp"

namespace weft::raid {

struct VolumeView {
    std::optional<Layout> layout;  ///< none before the volume is set
    Health health;
    wire::ClusterIdentity cluster{};
    wire::Epoch epoch{};
    wire::ArrayVolume volume{};

    bool has_journal() const { return volume.consistency == wire::ArrayConsistency::journal; }
    const wire::BoxIdentity& box_at(BoxIndex place) const {
        return volume.members[number(place)].box;
    }
    /// The same, as if these boxes could not be read; none if the code cannot do without them.
    std::optional<Health> health_without(Mask boxes) const {
        Health without = health;
        for (std::uint8_t place = 0; place < layout->boxes(); ++place)
            if (contains(boxes, place) && !contains(health.out_of_reach(), place) &&
                !without.lose({.box = BoxIndex{place},
                               .rebuilt_stripes = 0,
                               .ahead = 0,
                               .takes_orders = true,
                               .lacks = nullptr}))
                return std::nullopt;
        return without;
    }
};

}  // namespace weft::raid
