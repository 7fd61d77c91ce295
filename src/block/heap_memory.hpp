// SPDX-License-Identifier: Apache-2.0
// SparseMemory from the heap: not sparse at all, but the same everywhere.
#pragma once

#include <algorithm>
#include <vector>

#include "block/sparse_memory.hpp"

namespace weft::block {

class HeapMemory final : public SparseMemory {
public:
    explicit HeapMemory(std::size_t size) : octets_(size) {}

    Buffer all() override { return octets_; }
    void release(std::uint64_t offset, std::uint64_t length) override {
        std::ranges::fill(Buffer(octets_).subspan(offset, length), std::byte{0});
    }

private:
    std::vector<std::byte> octets_;
};

}  // namespace weft::block
