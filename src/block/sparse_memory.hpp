// SPDX-License-Identifier: Apache-2.0
// The memory under a memory disk. What it is made of is the outside's business: anonymous pages on
// Linux, plain heap in tests and in the simulator.
#pragma once

#include <cstdint>

#include "weft/buffer.hpp"

namespace weft::block {

/// Zeroed memory that costs nothing until written, and can be given back piecemeal.
class SparseMemory {
public:
    virtual ~SparseMemory() = default;
    virtual Buffer all() = 0;
    /// These bytes read as zero again, and take no space where whole pages are covered.
    virtual void release(std::uint64_t offset, std::uint64_t length) = 0;
};

}  // namespace weft::block
