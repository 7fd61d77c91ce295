// SPDX-License-Identifier: Apache-2.0
// What the kernel's TCP knows of a connection's network.
#pragma once

#include <optional>

#include "weft/world.hpp"

namespace weft::linux {

/// None for what is not TCP.
std::optional<StreamCondition> condition_of(int socket);

}  // namespace weft::linux
