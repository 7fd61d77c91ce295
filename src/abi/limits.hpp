// SPDX-License-Identifier: Apache-2.0
// How many of everything the drop-in libraries give to one process: what ibv_query_device() says
// and what is refused beyond. The bounds of a single queue or message are the engine's own.
#pragma once

#include <chrono>
#include <cstddef>

#include "weft/instant.hpp"

namespace weft::abi::limits {

inline constexpr std::size_t domains = 65'536;
inline constexpr std::size_t regions = 131'072;
inline constexpr std::size_t windows = 32'768;
inline constexpr std::size_t completion_queues = 65'536;
inline constexpr std::size_t shared_receive_queues = 65'536;
inline constexpr std::size_t queue_pairs = 65'536;

/// Asynchronous events of one context that nobody has fetched. Of more the latest are lost.
inline constexpr std::size_t events_waiting = 4'096;
/// Events in a row that the reader of a channel found ready: after so many it waits for them
/// elsewhere.
inline constexpr unsigned events_of_a_habit = 8;
/// How long a thread that waits for an event is left without one although the network has moved.
inline constexpr Duration patience_with_events = std::chrono::milliseconds(10);
/// How long deregistering waits for bytes the network still has, before it ends the connections
/// that have them.
inline constexpr int deregistration_ms = 5'000;
/// How long a queue pair's way back to RESET waits for the end of its connection.
inline constexpr int reset_ms = 2'000;
/// How long the end of the process waits for the last bytes to arrive, and how long for the lock,
/// which nobody has for long except a thread that was interrupted in its Hold.
inline constexpr Duration last_words = std::chrono::milliseconds(1'500);
inline constexpr Duration lock_at_exit = std::chrono::milliseconds(200);
/// Destroyed, and still there for programs that poll them once more.
inline constexpr std::size_t buried_completion_queues = 16;
/// Every queue pair can send so many bytes without a look at tags, whether asked for or not.
inline constexpr std::size_t inline_bytes_least = 64;

}  // namespace weft::abi::limits
