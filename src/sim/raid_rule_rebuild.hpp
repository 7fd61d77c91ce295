// SPDX-License-Identifier: Apache-2.0
// L9: redundancy comes back within its bound, whatever hosts ask for meanwhile: a rebuild has its
// share of every box that it needs, and stripes are done at least as fast as that share allows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/rdma_memory_model.hpp"
#include "weft/instant.hpp"

namespace weft::sim {

class RaidRebuildRule {
public:
    explicit RaidRebuildRule(Complaints& complaints) : complaints_(complaints) {}

    /// Of one stripe, on a machine as slow as those that are drawn, beside as much load as is
    /// drawn.
    static constexpr Duration per_stripe = std::chrono::seconds(2);
    /// Until it begins, and what is noted of it is lasting.
    static constexpr Duration overhead = std::chrono::seconds(30);

    /// How it stands. `can_run`: all boxes are there, and nothing keeps it from being done.
    void look_at(bool is_whole, bool can_run, std::uint64_t stripes, Instant now);

private:
    Complaints& complaints_;
    std::optional<Instant> since_;  ///< it could have been rebuilt
};

}  // namespace weft::sim
