// SPDX-License-Identifier: Apache-2.0
// How a volume's engine is to work: its limits, shares and patience.
#pragma once

#include "raid/box_pace.hpp"
#include "raid/own_work.hpp"
#include "raid/plan.hpp"

namespace weft::raid {

struct VolumeEngineOptions {
    PlanOptions plan{};
    OwnSide own{};
    std::uint32_t windows = 16;              ///< of each box
    std::uint32_t window_bytes = 2 << 20;    ///< of each window; longer requests go in parts
    std::uint32_t upkeep_bytes = 128 << 10;  ///< of a chunk, at a time
    unsigned upkeep_percent = 20;            ///< of what is started, while upkeep has work
    std::size_t host_requests = 128;         ///< of one session, under way or waiting
    Duration request_patience = std::chrono::seconds(60);
    HedgeOptions hedge{};
};

}  // namespace weft::raid
