// SPDX-License-Identifier: Apache-2.0
// Blocks that are not what was written, which their box has said instead of passing them on, or
// which a scrub finds to be stale. The request that found one restores it from the others, as if
// the box were absent for that one row, and then begins again.
#pragma once

#include "raid/request_planner.hpp"
#include "raid/volume_engine_owner.hpp"
#include "raid/volume_status.hpp"

namespace weft::raid {

class CorruptBlocks {
public:
    CorruptBlocks(VolumeEngineOwner& owner, const VolumeView& view, const RequestPlanner& planner,
                  VolumeCounters& counters)
        : owner_(owner), view_(view), planner_(planner), counters_(counters) {}

    /// A box has answered that a block is corrupt: the attempt ends, and the request restores it.
    void found(Attempt& attempt, const SentCommand& command, const wire::ArrayAnswer& answer);
    /// The plan that restores what the request came upon last; none if there is nothing to restore
    /// any more. `io_failed`: it is beyond repair.
    Result<std::optional<RequestPlanner::Planned>> plan(Request& request);
    void restored(Request& request);
    /// What a box says of its part of a stripe that is compared slice by slice.
    void heard(Request& request, const Attempt& attempt, const SentCommand& command,
               const wire::ArrayAnswer& answer);
    /// A part of a stripe was scrubbed. A column that is missing leaves nothing to compare.
    void scrubbed(Request& request, const Attempt& attempt);

private:
    CorruptRow row_of(std::uint64_t stripe, std::uint64_t offset, Mask places) const;
    void judge_row(Request& request);

    VolumeEngineOwner& owner_;
    const VolumeView& view_;
    const RequestPlanner& planner_;
    VolumeCounters& counters_;
};

}  // namespace weft::raid
