// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_rule_rebuild.hpp"

namespace weft::sim {

void RaidRebuildRule::look_at(bool is_whole, bool can_run, std::uint64_t stripes, Instant now) {
    if (is_whole || !can_run) return since_.reset();
    if (!since_) since_ = now;
    const auto bound = overhead + per_stripe * stripes;
    if (now < *since_ + bound) return;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - *since_).count();
    complaints_.add("L9: the volume is not whole after " + std::to_string(ms) +
                    " ms in which all its boxes were there");
    since_ = now;
}

}  // namespace weft::sim
