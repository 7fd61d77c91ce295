// SPDX-License-Identifier: Apache-2.0
// Every bound of the software RNIC in one place: what a device reports as its limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "iwarp/limits.hpp"
#include "iwarp/message.hpp"
#include "weft/instant.hpp"

namespace weft::verbs::limits {

inline constexpr std::uint32_t sends = 32'768;     ///< of one queue pair, posted
inline constexpr std::uint32_t receives = 32'768;  ///< of one queue pair
inline constexpr std::uint32_t shared_receives = 327'680;
inline constexpr std::uint32_t completions = 3'276'800;  ///< of one queue
inline constexpr std::uint32_t pieces = iwarp::ranges_per_message;
inline constexpr std::uint32_t inline_bytes = 1024;
inline constexpr std::uint32_t message_bytes = 0xffff'ffff;
inline constexpr std::uint32_t regions = 1u << 20;
inline constexpr std::uint32_t pieces_per_region = 1u << 16;
inline constexpr std::uint16_t reads = 128;  ///< each way, per connection

/// Messages of one queue pair that the sender has begun: as many as it lends at a time, so that one
/// system call takes them all. With half of it 4 KiB reads over iSER took twice the calls.
inline constexpr std::size_t messages_under_way = iwarp::limits::messages_under_way;
inline constexpr std::size_t events_waiting = 4096;  ///< asynchronous ones, not told yet
/// Connections of a listener whose request nobody has answered yet.
inline constexpr std::size_t requests_waiting = 1024;
/// Connections of a device that have been rejected and whose rejection is not sent yet.
inline constexpr std::size_t rejections_waiting = 1024;
/// How long the last words of a connection may take to go.
inline constexpr Duration closing_patience = std::chrono::seconds(10);
/// Between a rejection and our end of the stream. Where both come at once, Linux sees the end only,
/// and its application never learns why.
inline constexpr Duration rejection_grace = std::chrono::milliseconds(20);

}  // namespace weft::verbs::limits
