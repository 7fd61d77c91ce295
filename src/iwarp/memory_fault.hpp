// SPDX-License-Identifier: Apache-2.0
// Why the memory table refuses. The first six can be a peer's doing and have words in a Terminate
// message; the others only those who register and bind can cause.
#pragma once

#include <cstdint>

#include "weft/result.hpp"

namespace weft::iwarp {

/// Error::detail of what the table returns.
enum class MemoryFault : std::uint16_t {
    invalid_tag,   ///< no such index, or another key, or of a wrong kind, or no memory under it now
    wrong_domain,  ///< or bound to another queue pair
    no_rights,
    out_of_bounds,
    offset_wraps,       ///< offset and size do not fit 64 bits
    cannot_invalidate,  ///< not a kind of tag that can be, or windows still stand on it

    already_open,     ///< must be invalidated before it is registered or bound again
    too_many_pieces,  ///< more than were allocated for, or than any region may have
    still_lent,       ///< bytes of its former memory are on their way: ask again after release()
    has_windows,      ///< a region is not removed before the windows bound to it
    table_full,
};

constexpr MemoryFault fault_of(Error error) {
    return static_cast<MemoryFault>(error.detail);
}

constexpr Error refused(MemoryFault fault) {
    auto code = [fault] {
        switch (fault) {
            case MemoryFault::out_of_bounds:
            case MemoryFault::offset_wraps:
            case MemoryFault::too_many_pieces:
                return Code::out_of_range;
            case MemoryFault::still_lent:
            case MemoryFault::has_windows:
            case MemoryFault::table_full:
                return Code::exhausted;
            case MemoryFault::invalid_tag:
            case MemoryFault::wrong_domain:
            case MemoryFault::no_rights:
            case MemoryFault::cannot_invalidate:
            case MemoryFault::already_open:
                break;
        }
        return Code::access_denied;
    }();
    return {.code = code, .detail = static_cast<std::uint16_t>(fault)};
}

}  // namespace weft::iwarp
