// SPDX-License-Identifier: Apache-2.0
// What a simulated disk is like, and the ways in which it can fail.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "weft/instant.hpp"

namespace weft::sim {

/// What is written at once or not at all: a power cut tears a longer write between two of these.
inline constexpr std::size_t sector_bytes = 512;

enum class FlushHonesty : std::uint8_t {
    honest,
    lies,  ///< says done and has done nothing, as some disks are known to do
};

struct DiskSpec {
    std::uint64_t size = 1u << 20;  ///< a multiple of sector_bytes
    /// How much can be allocated: a thin disk runs out before it is full. 0: all of it.
    std::uint64_t space = 0;
    Duration shortest_latency = std::chrono::microseconds(20);
    Duration longest_latency = std::chrono::milliseconds(2);
    Duration shortest_flush = std::chrono::microseconds(200);
    Duration longest_flush = std::chrono::milliseconds(10);
    /// How often a request is completed inside submit(), which every maker must be ready for.
    double immediate_percent = 5;
    std::size_t queue_depth = 32;  ///< requests served at once, in no particular order
    /// Sectors written and not yet stable. When full, the oldest writes become stable.
    std::size_t cache_sectors = 16384;
    double read_error_percent = 0;
    double write_error_percent = 0;
    FlushHonesty flush_honesty = FlushHonesty::honest;
};

/// What becomes of the requests in flight when a disk loses its power. In both cases the devices
/// that were opened before the cut stay useless, and open_disk() gives a working one.
enum class AfterPowerCut : std::uint8_t {
    requests_fail,   ///< the host lives on: they complete with Code::disconnected
    requests_vanish  ///< the host went dark too: nobody is there to hear, completed() never comes
};

enum class Death : std::uint8_t {
    fails,  ///< every request fails with Code::io_failed
    hangs,  ///< no request completes until revive()
};

/// The accesses a bad range fails.
enum class BadFor : std::uint8_t { reads, writes, all };

}  // namespace weft::sim
