// SPDX-License-Identifier: Apache-2.0
// How the volume of one run is, who uses it, and what goes wrong: all of it drawn from the seed.
#pragma once

#include <string>

#include "raid/plan.hpp"
#include "sim/random.hpp"
#include "wire/array_superblock.hpp"

namespace weft::sim {

struct RaidHabits {
    /// With `beyond` more boxes fail at once than the code can do without.
    RaidHabits(Random& random, wire::ArrayConsistency consistency, bool beyond);

    raid::Level level{};
    std::uint8_t boxes = 0;
    std::uint32_t chunk_bytes = 0;
    std::uint64_t stripes = 0;
    std::uint64_t journal_blocks = 128;  ///< some twenty requests: full now and then
    wire::ArrayConsistency consistency{};
    bool beyond = false;
    bool has_spare = false;
    unsigned hosts = 1;
    unsigned steps = 0;            ///< of the run, in each of which something is done
    std::uint64_t slices_max = 1;  ///< of a request
    raid::PlanOptions plan{};

    // In percent of the requests.
    double reads = 40, flushes = 5, durable = 10, in_band = 0;
    // What goes wrong, in percent of the steps.
    double session_cuts = 0, power_cuts = 0, returns = 20, takeovers = 0, host_deaths = 0;
    double disk_errors = 0, link_faults = 0, refusals = 0, slow_boxes = 0, store_errors = 0;
    double rot = 0, lost_writes = 0, misdirected_writes = 0, damage = 0;

    std::string to_text() const;
};

}  // namespace weft::sim
