// SPDX-License-Identifier: Apache-2.0
// Every bound of this folder in one place.
#pragma once

#include <chrono>
#include <cstddef>

#include "weft/instant.hpp"

namespace weft::iwarp::limits {

/// An FPDU up to this size needs no buffer from the pool to be verified in.
inline constexpr std::size_t small_fpdu = 256;
/// What all connections of a device may hold of FPDUs that are not verified yet, and of answers
/// that are not sent yet. Beyond it a connection waits its turn.
inline constexpr std::size_t fpdu_buffer_bytes = 64u << 20;
/// A connection that holds a buffer while others wait for one must be getting on: at least so much
/// in each span, or it is ended. Else some thousand of them, each with the beginning of an FPDU or
/// with answers that are not read, would hold up all others for fpdu_patience or for ever.
inline constexpr std::size_t buffer_progress = 4096;
inline constexpr Duration buffer_patience = std::chrono::seconds(1);
/// What the pool keeps of it for the next FPDU, so that it is in the processor's cache.
inline constexpr std::size_t fpdu_buffer_bytes_kept = 1u << 20;

/// How long an FPDU that has begun may take to come whole: one to two times this.
inline constexpr Duration fpdu_patience = std::chrono::seconds(30);
/// How long a Send may wait for a receive to be posted: one to two times this. Meanwhile nothing is
/// read, so it is also how long the end of a peer that sent too much goes unnoticed; there are
/// programs (qperf) that give each other five seconds.
inline constexpr Duration receive_patience = std::chrono::seconds(2);
/// A responder may not speak before the initiator has. An initiator that promised no ready message
/// and says nothing for this long is waiting for us: Linux's is, and takes no harm.
inline constexpr Duration silent_initiator_grace = std::chrono::milliseconds(100);
/// How long a responder waits for the ready message it was promised. Only then is the connection
/// there for its application, who must hear of it one way or the other.
inline constexpr Duration ready_patience = std::chrono::seconds(10);

/// An initiator holds its first FPDU back for this long, unless the peer is Weft or has spoken: a
/// Linux responder overlooks what comes right behind its reply until more comes.
inline constexpr Duration first_word_delay = std::chrono::milliseconds(20);

/// FPDUs a connection lends to its stream at a time. A trailer and the header behind it are one
/// piece, so this many fill a sendmsg of 128 pieces.
inline constexpr std::size_t fpdus_lent = 64;
/// Messages the sender has begun and not sent whole. One begins when the one before is cut up and
/// there is room for an FPDU, so each has one lent, or the room for it.
inline constexpr std::size_t messages_under_way = fpdus_lent;
/// A connection that has sent nothing for this long (one to two times) gives back the room that
/// sending needs: some 26 KiB, which matters where ten thousand are idle.
inline constexpr Duration rest_after = std::chrono::seconds(1);
/// No further FPDU is made while this much is lent. Less costs long Writes speed, for every system
/// call then carries less: a quarter of it made 1 MiB Writes a quarter slower. More makes a
/// Terminate wait longer.
inline constexpr std::size_t lent_bytes = 1u << 20;
/// No further answer is copied while one connection has this much of the pool lent to its stream:
/// so much fits a core's cache, and a few hundred peers that do not read cannot have it all.
inline constexpr std::size_t copied_bytes = 512u << 10;
/// Pieces of memory whose bytes one FPDU carries. Where memory is in smaller pieces FPDUs are
/// shorter.
inline constexpr std::size_t payload_pieces_per_fpdu = 16;

}  // namespace weft::iwarp::limits
