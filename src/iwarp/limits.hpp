// SPDX-License-Identifier: Apache-2.0
// Every bound of this folder in one place.
#pragma once

#include <chrono>
#include <cstddef>

#include "weft/instant.hpp"

namespace weft::iwarp::limits {

/// An FPDU up to this size needs no buffer from the pool to be verified in.
inline constexpr std::size_t small_fpdu = 256;
/// What all connections of a device may hold of FPDUs that are not verified yet. Beyond it a
/// connection waits its turn.
inline constexpr std::size_t fpdu_buffer_bytes = 64u << 20;
/// What the pool keeps of it for the next FPDU, so that it is in the processor's cache.
inline constexpr std::size_t fpdu_buffer_bytes_kept = 1u << 20;

/// Messages the sender may have begun and not sent whole.
inline constexpr std::size_t messages_under_way = 64;

/// How long an FPDU that has begun may take to come whole: one to two times this.
inline constexpr Duration fpdu_patience = std::chrono::seconds(30);
/// How long a Send may wait for a receive to be posted: one to two times this.
inline constexpr Duration receive_patience = std::chrono::seconds(5);
/// A responder may not speak before the initiator has. One that asked for no ready message and says
/// nothing for this long is waiting for us: Linux's is, and takes no harm.
inline constexpr Duration silent_initiator_grace = std::chrono::milliseconds(100);

}  // namespace weft::iwarp::limits
