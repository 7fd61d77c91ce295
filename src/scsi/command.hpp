// SPDX-License-Identifier: Apache-2.0
// One table of all commands a unit knows. What is refused because of a reservation, a write
// protection, an empty drive or an erasure under way, and what REPORT SUPPORTED OPERATION CODES
// tells, all follows from it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "scsi/task_work.hpp"
#include "weft/buffer.hpp"
#include "wire/scsi_operation.hpp"

namespace weft::scsi {

/// What somebody else's reservation leaves one to do (SPC-4 table 66, SBC-3 table 13).
enum class Reach : std::uint8_t {
    anything,  ///< never in conflict
    facts,     ///< in conflict with RESERVE, not with persistent reservations
    reads,     ///< in conflict with exclusive access
    writes,    ///< in conflict with write exclusive too
    own,       ///< the command looks itself
};

/// What else there is to know of a command, to be combined.
enum class Trait : std::uint16_t {
    none = 0,
    unattended = 1,        ///< runs in spite of unit attentions
    needs_medium = 2,      ///< not without one
    changes = 4,           ///< not if write protected
    while_erasing = 8,     ///< runs while the medium is erased
    strict = 16,           ///< reserved bits must be zero
    without_unit = 32,     ///< answered where there is no unit
    any_access = 64,       ///< runs through ports in standby or worse
    cached = 128,          ///< has the flags for page out and unit access (DPO, FUA)
    without_medium = 256,  ///< known to units that are no disks
};
constexpr Trait operator|(Trait one, Trait other) {
    return static_cast<Trait>(static_cast<unsigned>(one) | static_cast<unsigned>(other));
}
constexpr bool has(Trait all, Trait one) {
    return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

/// Where a command exists.
enum class Offered : std::uint8_t {
    always,
    if_thin,
    if_removable,
    if_long,  ///< of 32 octets: SBC-3 has them for protection information of type 2 only
    if_vendor,
};

inline constexpr int no_service_action = -1;

struct Command {
    wire::ScsiOperation operation{};
    int service_action = no_service_action;
    std::uint8_t size = 0;  ///< octets of its command block
    Step begin = nullptr;
    Reach reach{};
    Trait traits{};
    Offered offered{};
    /// The bits that count, of the octets after the first, in hexadecimal.
    std::string_view usage{};

    bool is(Trait trait) const { return has(traits, trait); }
    bool has_service_action() const { return service_action != no_service_action; }
    /// The bits that count of one octet of the command block.
    std::uint8_t usage_of(std::size_t octet) const;
    /// The same, where a unit may not honour the flags for page out and unit access.
    std::uint8_t usage_of(std::size_t octet, bool cache_control) const;
};

std::span<const Command> all_commands();

/// Why there is none: the operation is unknown, or only its service action.
enum class Unknown : std::uint8_t { operation, service_action };
struct Found {
    const Command* command = nullptr;
    Unknown why{};
};
Found find_command(ConstBuffer block);
Found find_command(wire::ScsiOperation operation, int service_action);

}  // namespace weft::scsi
