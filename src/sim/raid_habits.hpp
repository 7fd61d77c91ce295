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
    /// The faults that were thought of later. Drawn apart, so that seeds noted before keep their
    /// stories for who leaves them out.
    void draw_more(Random random);
    /// And those that were thought of last: too little room.
    void draw_room(Random random, bool small_rings);

    raid::Level level{};
    std::uint8_t boxes = 0;
    std::uint32_t chunk_bytes = 0;
    std::uint64_t stripes = 0;
    wire::ArrayConsistency consistency{};
    bool beyond = false;
    unsigned hosts = 1;
    unsigned steps = 0;            ///< of the run, in each of which something is done
    std::uint64_t slices_max = 1;  ///< of a request
    raid::PlanOptions plan{};

    // In percent of the requests.
    double reads = 40, flushes = 5, durable = 10, in_band = 0;
    // What goes wrong, in percent of the steps.
    double session_cuts = 0, power_cuts = 0, returns = 20, takeovers = 0, host_deaths = 0;
    double disk_errors = 0, refusals = 0, slow_boxes = 0, store_errors = 0;

    // Of draw_more().
    unsigned spares = 0;  ///< boxes without a part
    static constexpr std::uint64_t usual_ring = 96;
    std::uint64_t journal_blocks = 128;  ///< room for some twenty requests: full now and then
    double late_repeats = 0;             ///< in percent of the requests a new controller is sent
    double late_transfers = 0;           ///< what a box is sending comes when it was given up
    double hurry = 0;                    ///< time passes while a box takes its own
    double replacements = 0, wipes = 0, full_disks = 0, scrubs = 0;
    double box_links = 0, host_links = 0;
    // Only with a journal: nothing else would notice, or make up for it.
    double rot = 0, checksum_rot = 0, superblock_rot = 0, lost_writes = 0, misdirected_writes = 0;
    double damage = 0;     ///< done to data on its way
    double blackouts = 0;  ///< all boxes restart at once
    double put_backs = 0;  ///< a disk becomes what it was under the same controller
    double disasters = 0;  ///< a box and the controller are lost at once

    // Of draw_room(), and small journals.
    double full_file_systems = 0;

    /// What is slow and what is crowded: nothing of it is broken, and nothing may be taken for it.
    void draw_gray(Random random);
    /// That alone.
    void leave_only_gray();

    // Of draw_gray(), in percent of the steps.
    double pauses = 0, long_pauses = 0, controller_pauses = 0, host_pauses = 0;
    double slow_disks = 0, crowded_lines = 0, clogs = 0, resets = 0, bursts = 0;
    unsigned load_depth = 0;     ///< of readers that never rest, for a while; 0: there are none
    bool load_rebuilds = false;  ///< and a box has to be rebuilt meanwhile

    std::string to_text() const;
};

}  // namespace weft::sim
