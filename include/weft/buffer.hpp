// SPDX-License-Identifier: Apache-2.0
// A run of bytes somewhere in memory, whoever owns it. All that moves or describes bytes speaks of
// these, so they have a header of their own: a checksum need not know what a disk is.
#pragma once

#include <cstddef>
#include <span>

namespace weft {

using Buffer = std::span<std::byte>;
using ConstBuffer = std::span<const std::byte>;

}  // namespace weft
