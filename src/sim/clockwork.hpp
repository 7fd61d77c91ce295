// SPDX-License-Identifier: Apache-2.0
// What all parts of one simulated world share: its time, its chance and its trace.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/crc32c.hpp"
#include "sim/random.hpp"
#include "sim/schedule.hpp"
#include "sim/trace.hpp"

namespace weft::sim {

struct Clockwork {
    explicit Clockwork(std::uint64_t seed) : random(seed) {}

    Instant now() const { return schedule.now(); }
    void note(std::string_view kind, std::uint64_t subject) {
        trace.note(now(), kind, subject, 0, 0);
    }
    void note(std::string_view kind, std::uint64_t subject, ConstBuffer bytes) {
        trace.note(now(), kind, subject, bytes.size(), crc32c(bytes));
    }

    Random random;
    Trace trace;
    Schedule schedule{trace};
};

}  // namespace weft::sim
