// SPDX-License-Identifier: Apache-2.0
// The number TCP and UDP tell conversations apart by.
#pragma once

#include <cstdint>

namespace weft::wire {

enum class Port : std::uint16_t {};

}  // namespace weft::wire
