// SPDX-License-Identifier: Apache-2.0
// Aligned memory for payload, kept for reuse. Fit for O_DIRECT and for ISA-L.
//
// Sizes are rounded up to a power of two, so a buffer given back fits the next request of about
// that size. What lies idle is bounded; how much is lent out at a time is bounded by those who
// borrow, each for itself, so that one greedy connection cannot starve the others.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "weft/block_device.hpp"

namespace weft::block {

class BufferPool {
public:
    static constexpr std::size_t alignment = 4096;
    static constexpr std::size_t largest = 64u << 20;

    /// At most `idle_bytes_max` are kept for reuse.
    explicit BufferPool(std::size_t idle_bytes_max) : idle_bytes_max_(idle_bytes_max) {}
    BufferPool(const BufferPool&) = delete;
    BufferPool& operator=(const BufferPool&) = delete;
    ~BufferPool();

    /// Memory of at least `size` bytes (at most `largest`); the span is exactly `size` long.
    Buffer take(std::size_t size);
    /// Exactly what take() gave.
    void give_back(Buffer buffer);

    std::size_t idle_bytes() const { return idle_bytes_; }

private:
    static constexpr std::size_t class_count = 15;  // 4 KiB << 0 … 4 KiB << 14
    static std::size_t class_of(std::size_t size);

    std::array<std::vector<std::byte*>, class_count> idle_;
    std::size_t idle_bytes_ = 0;
    std::size_t idle_bytes_max_;
};

}  // namespace weft::block
