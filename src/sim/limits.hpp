// SPDX-License-Identifier: Apache-2.0
// The bounds of a simulated world. They are generous: reaching one that is checked means that the
// code under test runs away, and the run should stop while its trace can still be read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::sim::limits {

/// Events waiting at one time.
inline constexpr std::size_t waiting_events = 1u << 20;
/// Events run without time passing: an engine whose deadline stays in the past never ends.
inline constexpr std::uint64_t events_per_instant = 1'000'000;
/// Connections alive at one time; connect() says `exhausted` beyond it.
inline constexpr std::size_t links = 4096;
inline constexpr std::size_t listeners = 1024;
/// Room given to StreamEngine::pending(), when the world is generous.
inline constexpr std::size_t outgoing_pieces = 8;
/// Pieces moved for one engine before the others have their turn.
inline constexpr unsigned pieces_per_visit = 64;

}  // namespace weft::sim::limits
