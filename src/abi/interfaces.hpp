// SPDX-License-Identifier: Apache-2.0
// The machine's network interfaces. Each is shown to applications as one RNIC.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/result.hpp"

namespace weft::abi {

struct Interface {
    std::string name;
    unsigned index = 0;
    std::array<std::uint8_t, 6> hardware_address{};
    unsigned mtu = 0;
    bool is_loopback = false;
    bool is_up = false;
    std::vector<std::string> addresses;  ///< in numbers, without a zone

    bool is_usable() const { return is_up && !addresses.empty(); }
};

/// In the order of their indexes, the loopback after the others and what cannot be used after that:
/// who takes the first there is, wants a network.
Result<std::vector<Interface>> list_interfaces();

}  // namespace weft::abi
