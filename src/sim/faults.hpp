// SPDX-License-Identifier: Apache-2.0
// Makes things go wrong at random, for a while: what, where and when comes from the world's seed.
//
// When the time is over every outage has ended, so a test can ask whether all becomes well again.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "sim/world.hpp"

namespace weft::sim {

enum class FaultKind : std::uint8_t {
    link_reset,
    link_half_open,
    link_partition,
    link_clog,
    disk_errors,
    disk_hang,
    disk_bit_rot,
    disk_power_cut,
};

/// How often each kind is chosen, compared with the others; 0 is never.
struct FaultPlan {
    unsigned link_reset = 1;
    unsigned link_half_open = 1;
    unsigned link_partition = 1;
    unsigned link_clog = 1;
    unsigned disk_errors = 1;
    unsigned disk_hang = 1;
    unsigned disk_bit_rot = 0;
    unsigned disk_power_cut = 0;  ///< open devices are useless after it: see AfterPowerCut

    Duration shortest_pause = std::chrono::milliseconds(1);
    Duration longest_pause = std::chrono::milliseconds(200);
    Duration longest_outage = std::chrono::seconds(1);
    Duration longest_clog_delay = std::chrono::milliseconds(100);
};

class Faults {
public:
    Faults(World& world, const FaultPlan& plan);

    /// From now on and for this long.
    void start(Duration span);
    /// How many there were, of the kinds that found something to happen to.
    std::uint64_t injected() const { return injected_; }

private:
    void plan_next();
    void inject();
    bool inject_in_link(FaultKind kind);
    bool inject_in_disk(FaultKind kind);
    Instant draw_outage_end();

    World& world_;
    FaultPlan plan_;
    std::vector<FaultKind> lots_;  ///< each kind as often as its weight says
    Instant end_;
    std::uint64_t injected_ = 0;
    Appointment next_;
};

}  // namespace weft::sim
