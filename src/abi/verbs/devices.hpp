// SPDX-License-Identifier: Apache-2.0
// The RNICs of the machine: one per network interface, the loopback last. One that was seen once
// stays in memory for good, so that pointers to it keep their meaning when an interface goes.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "abi/verbs/objects.hpp"

namespace weft::abi {

/// Inside a Hold. Those there are now, looked up anew; where the system does not say, as when there
/// are no descriptors left, those there were.
Result<std::vector<RnicDevice*>> list_devices();
/// Inside a Hold. The one that has this address, in numbers; or null, and errno.
RnicDevice* device_with_address(const std::string& address);

/// What an RNIC's names are made of. Some interfaces have none and get one that is always the same.
std::array<std::uint8_t, 6> hardware_address_of(const RnicDevice& device);
/// EUI-64, in network byte order.
__be64 guid_of(const RnicDevice& device);
ibv_gid gid_of(const RnicDevice& device);

}  // namespace weft::abi
