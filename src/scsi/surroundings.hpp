// SPDX-License-Identifier: Apache-2.0
// The world as far as a target needs it. Given, so that a target can be simulated.
#pragma once

#include <functional>

#include "weft/instant.hpp"

namespace weft::scsi {

struct Surroundings {
    std::function<Instant()> now;
    /// Calls the function when so much time has passed, and never from inside.
    std::function<void(Duration, std::function<void()>)> call_later;
};

}  // namespace weft::scsi
