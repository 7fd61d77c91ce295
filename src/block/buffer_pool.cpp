// SPDX-License-Identifier: Apache-2.0
#include "block/buffer_pool.hpp"

#include <bit>
#include <cstdlib>

#include "base/check.hpp"

namespace weft::block {

static_assert(BufferPool::alignment << 14 == BufferPool::largest);

BufferPool::~BufferPool() {
    for (auto& buffers : idle_)
        for (auto* buffer : buffers) std::free(buffer);
}

std::size_t BufferPool::class_of(std::size_t size) {
    WEFT_CHECK(size <= largest);
    auto units = (size + alignment - 1) / alignment;
    return static_cast<std::size_t>(std::bit_width(units == 0 ? 0 : units - 1));
}

Buffer BufferPool::take(std::size_t size) {
    auto which = class_of(size);
    auto& buffers = idle_[which];
    if (!buffers.empty()) {
        auto* buffer = buffers.back();
        buffers.pop_back();
        idle_bytes_ -= alignment << which;
        return {buffer, size};
    }
    auto* fresh = static_cast<std::byte*>(std::aligned_alloc(alignment, alignment << which));
    WEFT_CHECK(fresh != nullptr);
    return {fresh, size};
}

void BufferPool::give_back(Buffer buffer) {
    auto which = class_of(buffer.size());
    if (idle_bytes_ + (alignment << which) > idle_bytes_max_) {
        std::free(buffer.data());
        return;
    }
    idle_[which].push_back(buffer.data());
    idle_bytes_ += alignment << which;
}

}  // namespace weft::block
