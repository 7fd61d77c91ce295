// SPDX-License-Identifier: Apache-2.0
// How a SCSI command ended and in what order it may run (SAM-5).
#pragma once

#include <cstdint>

namespace weft::wire {

enum class ScsiStatus : std::uint8_t {
    good = 0x00,
    check_condition = 0x02,  ///< sense data says what was wrong
    condition_met = 0x04,    ///< PRE-FETCH: everything asked for is in the cache
    busy = 0x08,
    reservation_conflict = 0x18,
    task_set_full = 0x28,
    aca_active = 0x30,
    task_aborted = 0x40,
};

enum class TaskAttribute : std::uint8_t {
    untagged = 0,
    simple = 1,
    ordered = 2,
    head_of_queue = 3,
    auto_contingent_allegiance = 4,
};

}  // namespace weft::wire
