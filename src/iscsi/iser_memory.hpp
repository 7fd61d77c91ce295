// SPDX-License-Identifier: Apache-2.0
// What both of iSER's movers do with memory and tags.
#pragma once

#include "weft/verbs.hpp"

namespace weft::iscsi {

/// Bytes of the mover's own, which need no registration to be sent.
inline verbs::LocalMemory own(ConstBuffer bytes) {
    return {.address = reinterpret_cast<std::uintptr_t>(bytes.data()),
            .size = static_cast<std::uint32_t>(bytes.size()),
            .tag = own_memory};
}

/// The same tag for its next use: who still has the former one finds it closed.
inline SteeringTag with_next_key(SteeringTag tag) {
    auto number = static_cast<std::uint32_t>(tag);
    return SteeringTag{(number & ~0xffu) | ((number + 1) & 0xffu)};
}

}  // namespace weft::iscsi
