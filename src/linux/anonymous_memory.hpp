// SPDX-License-Identifier: Apache-2.0
// SparseMemory from the kernel: a private mapping, of which only the pages written exist.
#pragma once

#include <cstdint>
#include <memory>

#include "block/sparse_memory.hpp"
#include "weft/result.hpp"

namespace weft::linux {

Result<std::unique_ptr<block::SparseMemory>> make_anonymous_memory(std::uint64_t size);

}  // namespace weft::linux
