// SPDX-License-Identifier: Apache-2.0
// The machine's network interfaces. Each is shown to applications as one RNIC.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/world.hpp"

namespace weft::abi {

struct Interface {
    std::string name;
    unsigned index = 0;
    std::array<std::uint8_t, 6> hardware_address{};
    unsigned mtu = 0;
    bool is_loopback = false;
    bool is_up = false;
    std::vector<std::string> addresses;  ///< in numbers, without a zone
};

/// Those first that are up and have an address, and of them the loopback last; else in the order of
/// their indexes. Who takes the first there is, as many programs do, wants a network that works.
std::vector<Interface> list_interfaces();

}  // namespace weft::abi
