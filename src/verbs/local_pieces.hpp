// SPDX-License-Identifier: Apache-2.0
// The pieces of memory a request names, taken together.
#pragma once

#include <cstdint>
#include <span>

#include "verbs/limits.hpp"
#include "weft/verbs.hpp"

namespace weft::verbs {

inline std::uint64_t total_size(std::span<const LocalMemory> pieces) {
    std::uint64_t size = 0;
    for (auto& piece : pieces) size += piece.size;
    return size;
}

/// No message is longer than 32 bits can count, sent or received.
inline Result<void> check_total_size(std::span<const LocalMemory> pieces) {
    if (total_size(pieces) <= limits::message_bytes) return {};
    return Error{.code = Code::out_of_range, .where = limits::message_bytes};
}

}  // namespace weft::verbs
