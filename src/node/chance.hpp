// SPDX-License-Identifier: Apache-2.0
// Octets nobody can foresee: identities, secrets, numbers used once. The simulator's follow from
// its seed.
#pragma once

#include "base/wire_format.hpp"
#include "weft/world.hpp"

namespace weft::node {

template <std::size_t count>
Octets<count> octets_of_chance(World& world) {
    Octets<count> octets{};
    for (auto& octet : octets) octet = static_cast<std::uint8_t>(world.random());
    return octets;
}

}  // namespace weft::node
