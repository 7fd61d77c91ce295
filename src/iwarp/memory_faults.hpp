// SPDX-License-Identifier: Apache-2.0
// A refusal of the memory table, in the words of the layer that must report it: DDP where bytes
// were to be placed, RDMAP where they were to be read or changed.
#pragma once

#include "iwarp/fault.hpp"
#include "iwarp/memory_table.hpp"

namespace weft::iwarp {

constexpr Error placement_fault(MemoryFault why) {
    switch (why) {
        case MemoryFault::wrong_domain:
            return fault(wire::TaggedBufferError::wrong_stream);
        case MemoryFault::no_rights:  // DDP knows no rights; RDMAP does (RFC 5040 section 7.1)
            return fault(wire::RemoteProtectionError::access_rights);
        case MemoryFault::out_of_bounds:
            return fault(wire::TaggedBufferError::out_of_bounds);
        case MemoryFault::offset_wraps:
            return fault(wire::TaggedBufferError::offset_wraps);
        default:
            return fault(wire::TaggedBufferError::invalid_steering_tag);
    }
}

constexpr Error access_fault(MemoryFault why) {
    switch (why) {
        case MemoryFault::wrong_domain:
            return fault(wire::RemoteProtectionError::wrong_stream);
        case MemoryFault::no_rights:
            return fault(wire::RemoteProtectionError::access_rights);
        case MemoryFault::out_of_bounds:
            return fault(wire::RemoteProtectionError::out_of_bounds);
        case MemoryFault::offset_wraps:
            return fault(wire::RemoteProtectionError::offset_wraps);
        case MemoryFault::cannot_invalidate:
            return fault(wire::RemoteProtectionError::cannot_invalidate);
        default:
            return fault(wire::RemoteProtectionError::invalid_steering_tag);
    }
}

/// Something of our own went wrong, and the peer can only be told that it did.
constexpr Error local_fault() {
    return {.code = Code::io_failed,
            .detail = detail_of(wire::terminate_for(wire::TerminateLayer::rdmap,
                                                    wire::RdmapErrorType::local_catastrophic, 0))};
}

}  // namespace weft::iwarp
