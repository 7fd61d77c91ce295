// SPDX-License-Identifier: Apache-2.0
// What whoever exports a device decides about its logical unit. What the device itself knows (size,
// holes, cache) is taken from its traits and reported truly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scsi/limits.hpp"
#include "weft/instant.hpp"

namespace weft::scsi {

class ReservationStore;
class VendorCommands;

struct UnitOptions {
    /// From this serial number and identifier are derived, the same ones each time. Empty: from the
    /// target's name and the unit's number.
    std::string seed{};
    std::string serial{};                       ///< empty: derived
    std::optional<std::uint64_t> identifier{};  ///< NAA; none: derived
    std::string vendor = "WEFT";
    std::string product = "disk";
    std::string revision = "0.1";
    std::uint32_t block_bytes = 512;
    bool thin = true;  ///< offer unmapping, if the device can trim
    bool removable = false;
    bool read_only = false;
    bool long_commands = false;  ///< offer the commands of 32 octets though nothing is protected
    bool cache_control = true;   ///< DPOFUA: DPO and FUA are accepted
    std::size_t transfer_bytes = transfer_bytes_usual;  ///< the longest of one command
    ReservationStore* reservations = nullptr;           ///< none: they end with the target
    VendorCommands* vendor_commands = nullptr;          ///< none: a disk like any other
    /// Otherwise it knows the commands that say what it is, and the vendor's, and is no disk.
    bool has_medium = true;
    /// What LBPPBE tells; a power of two times block_bytes, 0: the same.
    std::uint32_t physical_block_bytes = 0;
    /// The least time a SANITIZE or FORMAT UNIT takes. Who watches progress wants to see some.
    Duration erasure_time{};
};

}  // namespace weft::scsi
