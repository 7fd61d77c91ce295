// SPDX-License-Identifier: Apache-2.0
// Every bound of the sockets in one place. The defaults are those people know from rsocket(7).
#pragma once

#include <cstdint>

namespace weft::abi::sockets::limits {

inline constexpr std::uint32_t queue_entries_min = 16;
inline constexpr std::uint32_t queue_entries_max = 0xfffe;  ///< sequence numbers have 16 bits
inline constexpr std::uint32_t queue_entries_default = 384;
inline constexpr std::uint32_t inline_bytes_default = 64;
inline constexpr std::uint32_t buffer_bytes_default = 128 * 1024;
inline constexpr std::uint32_t buffer_bytes_min = 4096;
inline constexpr std::uint32_t buffer_bytes_max = 1u << 30;
inline constexpr std::uint32_t polling_us_default = 10;

/// What one message carries at most: a long send is cut, so that the peer can begin to read.
inline constexpr std::uint32_t transfer_bytes = 64 * 1024;
/// Less room than this in the send buffer is no room: many small messages would cost more.
inline constexpr std::uint32_t send_low_water = 2048;

/// Of the send queue, kept for what is not the application's: two grants of credit, or one and a
/// farewell.
inline constexpr std::uint32_t control_entries = 4;
/// Of the peer's receives, not used for data: our grants need some as well, and an RNIC ends a
/// connection when a message finds none.
inline constexpr std::uint32_t credit_reserve = 8;
/// Receives posted beyond those the peer is told of, for its grants, for the same reason.
inline constexpr std::uint32_t control_receives = 128;

/// Windows into its receive buffer that each side may have told the other.
inline constexpr std::uint32_t windows = 2;
/// As one octet can say it: see wire form of the introduction.
inline constexpr std::uint32_t mappings_max = 127u << 8;

/// Connections made for a listener and not taken yet, at most.
inline constexpr int backlog = 4096;
/// Events of a completion queue that were taken and not acknowledged yet.
inline constexpr unsigned events_unacknowledged = 128;
/// What is said to be waited for an address to be resolved.
inline constexpr int resolution_ms = 10'000;

/// How long a thread sleeps that had no descriptor left to be woken by.
inline constexpr int deaf_ms = 10;

/// How long a close waits to hear that the connection has ended: all of ours is then with TCP.
inline constexpr int farewell_ms = 2000;

}  // namespace weft::abi::sockets::limits
