// SPDX-License-Identifier: Apache-2.0
// A moment of the world's own time. Zero is when the world began: boot for Linux, the start of
// the run for the simulator. Engines are told the time; they never ask for it.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace weft {

using Duration = std::chrono::nanoseconds;

struct Instant {
    std::int64_t nanoseconds = 0;

    constexpr auto operator<=>(const Instant&) const = default;
    constexpr Instant operator+(Duration span) const { return {nanoseconds + span.count()}; }
    constexpr Duration operator-(Instant earlier) const {
        return Duration(nanoseconds - earlier.nanoseconds);
    }
};

/// A moment as people name it: to be shown and kept, never to measure by.
using Date = std::chrono::sys_time<Duration>;

}  // namespace weft
