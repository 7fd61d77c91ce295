// SPDX-License-Identifier: Apache-2.0
// Which plan serves a request now: how much of what is left fits into windows, around which boxes
// and links, and by which way the data goes. A pure function of the request, the volume and the
// links; what cannot be planned is refused with the reason.
#pragma once

#include "raid/link_table.hpp"
#include "raid/plan.hpp"
#include "raid/request.hpp"
#include "raid/volume_view.hpp"

namespace weft::raid {

class RequestPlanner {
public:
    struct Options {
        PlanOptions plan{};
        std::uint32_t window_bytes = 2 << 20;
        std::uint32_t upkeep_bytes = 128 << 10;
        /// The controller's own windows; 0: no data can go by way of it.
        std::uint32_t own_window_bytes = 0;
    };
    struct Planned {
        Plan plan;
        std::uint64_t part = 0;  ///< octets of the request it is about
        bool in_band = false;
        Avoided detour;  ///< in-band only to go around these; empty: for itself
    };

    RequestPlanner(const Options& options, const VolumeView& view, const LinkTable& links)
        : options_(options), view_(view), links_(links) {}

    bool can_detour() const { return options_.own_window_bytes > 0; }
    /// Its next part, without these boxes if the code can do without them.
    Result<Planned> plan_part(const Request& request, Mask around) const;
    /// The block it has come upon is restored from the others of its row.
    Result<Planned> plan_restoring(const Request& request, const CorruptRow& row) const;
    /// Whether these boxes could be gone around by a read.
    bool can_read_without(const Request& request, Mask boxes) const;

private:
    bool goes_in_band(const Request& request, bool detours) const;
    Result<Planned> plan_fitting(const Request& request, Mask around, bool detours) const;
    /// Empty: the plan may be carried out as it is.
    Avoided avoided_by(const Request& request, const Planned& planned) const;
    Result<Plan> plan_of(const Request& request, std::uint64_t part, Mask around,
                         bool in_band) const;
    Result<Plan> plan_upkeep(const Request& request, std::uint64_t part,
                             const PlanOptions& options) const;
    Result<Plan> plan_reading(const Request& request, Range range, Mask around,
                              const PlanOptions& options) const;
    Result<Plan> plan_flush_if_any() const;
    PlanOptions options_for(bool in_band) const;

    const Options options_;
    const VolumeView& view_;
    const LinkTable& links_;
};

}  // namespace weft::raid
