// SPDX-License-Identifier: Apache-2.0
// S18: no box, link or host is declared broken that is not. What was done to a machine or a way
// covers what is said of it, as long as it lasts and for a while after. Slowness, congestion,
// connections that end and machines that stand still for less than the silence that counts cover
// nothing; neither does what happened to somebody else.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "raid/volume_status.hpp"
#include "sim/raid_cluster.hpp"
#include "sim/rdma_memory_model.hpp"

namespace weft::sim {

class RaidBlameRule {
public:
    RaidBlameRule(Complaints& complaints, RaidCluster& cluster)
        : complaints_(complaints), cluster_(cluster) {}

    /// Something was done to a box besides what the cluster knows: its disk, its part.
    void note_harm(unsigned box) { harmed_.insert(box); }
    /// Of the controller in office, when it happens.
    void look_at(const raid::VolumeEvent& event, Instant now);

private:
    bool is_covered(const raid::VolumeEvent& event, unsigned box, Instant now);
    bool is_recent(std::optional<Instant> when, Instant now) const;

    Complaints& complaints_;
    RaidCluster& cluster_;
    std::set<unsigned> harmed_;
    std::set<unsigned> failed_;  ///< and that was covered
};

}  // namespace weft::sim
