// SPDX-License-Identifier: Apache-2.0
// How a simulated connection behaves while nothing is wrong with it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/instant.hpp"

namespace weft::sim {

/// Where a stream is cut, both when it is taken from the sender and when it is given to the
/// receiver.
enum class Cutting : std::uint8_t {
    whole,        ///< as much at once as there is
    anywhere,     ///< a random piece: one byte, a few, some or all
    single_bytes  ///< slow, and the hardest on a receiver
};

struct LinkOptions {
    Duration shortest_delay = std::chrono::microseconds(50);
    Duration longest_delay = std::chrono::microseconds(500);
    /// Bytes sent and not yet taken by the receiving engine, in each direction.
    std::size_t window_bytes = 64 * 1024;
    Cutting cutting = Cutting::anywhere;
    std::uint64_t bytes_per_second = 0;  ///< 0: no limit
    std::size_t segment_bytes = 0;       ///< what Stream::segment_size() says
    /// How often what an engine lends is kept for a delay before it hears sent(), as a TCP does
    /// that may have to send again; nothing more is taken from it meanwhile. Else it is copied at
    /// once.
    unsigned kept_lent_percent = 20;
    /// How long a sender waits for bytes that cannot arrive; then it hears `timed_out`.
    Duration give_up_after = std::chrono::seconds(20);
};

}  // namespace weft::sim
