// SPDX-License-Identifier: Apache-2.0
#include "block/buffer_pool.hpp"

#include <bit>
#include <cstdlib>
#include <utility>

#include "base/check.hpp"

namespace weft::block {

static_assert(BufferPool::alignment << 14 == BufferPool::largest);

BufferPool::~BufferPool() {
    WEFT_CHECK(lent_bytes_ == 0 && waiting_.empty());
    for (auto& buffers : idle_)
        for (auto* buffer : buffers) std::free(buffer);
}

std::size_t BufferPool::class_of(std::size_t size) {
    WEFT_CHECK(size <= largest);
    auto units = (size + alignment - 1) / alignment;
    return static_cast<std::size_t>(std::bit_width(units == 0 ? 0 : units - 1));
}

bool BufferPool::may_lend(const BufferShare& share, std::size_t size) const {
    size = rounded(size);
    if (share.held_bytes_ == 0 && size <= limits_.reserve_bytes) return true;
    auto would_be_lent = lent_bytes_ + size;
    return would_be_lent <= limits_.bytes &&
           share.held_bytes_ + size <= limits_.bytes - would_be_lent;
}

/// An idle buffer or a new one; null if the system has none.
std::byte* BufferPool::allocate(std::size_t which) {
    auto size = alignment << which;
    if (auto& buffers = idle_[which]; !buffers.empty()) {
        auto* buffer = buffers.back();
        buffers.pop_back();
        idle_bytes_ -= size;
        return buffer;
    }
    // What lies idle in other sizes makes room, so that the sum stays within its bound.
    for (auto other = class_count; other-- > 0;) {
        auto& buffers = idle_[other];
        while (!buffers.empty() && lent_bytes_ + idle_bytes_ + size > limits_.bytes) {
            std::free(buffers.back());
            buffers.pop_back();
            idle_bytes_ -= alignment << other;
        }
    }
    return static_cast<std::byte*>(std::aligned_alloc(alignment, size));
}

void BufferPool::keep_or_free(std::byte* buffer, std::size_t which) {
    auto size = alignment << which;
    bool fits = idle_bytes_ + size <= limits_.idle_bytes &&
                lent_bytes_ + idle_bytes_ + size <= limits_.bytes;
    if (!fits) return std::free(buffer);
    idle_[which].push_back(buffer);
    idle_bytes_ += size;
}

void BufferPool::serve_waiting() {
    serve_again_ = true;
    if (std::exchange(serving_, true)) return;  // called by a share being served: not recursively
    while (std::exchange(serve_again_, false)) {
        // Whoever tries and fails waits at the end again, so each is asked once.
        std::size_t place = 0;
        for (auto left = waiting_.size(); left > 0 && place < waiting_.size(); --left) {
            BufferShare& share = *waiting_[place];
            if (!may_lend(share, share.waiting_for_)) {
                ++place;
                continue;
            }
            share.stop_waiting();
            share.memory_came_();
        }
    }
    serving_ = false;
}

BufferShare::~BufferShare() {
    WEFT_CHECK(held_bytes_ == 0);
    stop_waiting();
}

Buffer BufferShare::take(std::size_t size) {
    WEFT_CHECK(size > 0);
    stop_waiting();
    auto which = BufferPool::class_of(size);
    auto* buffer = pool_.may_lend(*this, size) ? pool_.allocate(which) : nullptr;
    if (buffer == nullptr) {
        waiting_for_ = size;
        pool_.waiting_.push_back(this);
        return {};
    }
    pool_.lent_bytes_ += BufferPool::alignment << which;
    held_bytes_ += BufferPool::alignment << which;
    return {buffer, size};
}

void BufferShare::give_back(Buffer buffer) {
    auto which = BufferPool::class_of(buffer.size());
    pool_.lent_bytes_ -= BufferPool::alignment << which;
    held_bytes_ -= BufferPool::alignment << which;
    pool_.keep_or_free(buffer.data(), which);
}

void BufferShare::stop_waiting() {
    if (!waiting()) return;
    waiting_for_ = 0;
    std::erase(pool_.waiting_, this);
}

}  // namespace weft::block
