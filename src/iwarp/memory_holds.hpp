// SPDX-License-Identifier: Apache-2.0
// That memory is in use: all of the memory table that those need who lend its bytes to the network.
#pragma once

#include "weft/registered_memory.hpp"

namespace weft::iwarp {

class MemoryHolds {
public:
    /// Keeps the memory of a resolved tag from being given back while bytes of it are lent to the
    /// network. Returns the tag to release() later, once for every hold().
    [[nodiscard]] virtual SteeringTag hold(SteeringTag tag) = 0;
    virtual void release(SteeringTag tag) = 0;

protected:
    ~MemoryHolds() = default;
};

}  // namespace weft::iwarp
