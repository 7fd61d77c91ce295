// SPDX-License-Identifier: Apache-2.0
// What the stock `rping` program puts in its Sends: where the other side may read or write.
#pragma once

#include "base/wire_format.hpp"
#include "weft/registered_memory.hpp"

namespace weft::wire {

/// Sixteen octets in every Send of either side; what the server sends has no meaning but its
/// coming.
struct RpingAdvertisement {
    std::uint64_t address = 0;
    SteeringTag tag{};
    std::uint32_t size = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("address", h.address);
        v("tag", h.tag);
        v("size", h.size);
    }
    bool operator==(const RpingAdvertisement&) const = default;
};
static_assert(wire_size<RpingAdvertisement>() == 16);

}  // namespace weft::wire
