// SPDX-License-Identifier: Apache-2.0
#include "iwarp/fpdu_buffers.hpp"

#include <algorithm>
#include <bit>

#include "base/check.hpp"

namespace weft::iwarp {

FpduBuffers::FpduBuffers(std::size_t bytes_max, std::size_t bytes_kept_max)
    : bytes_max_(bytes_max), bytes_kept_max_(bytes_kept_max) {
    WEFT_CHECK(bytes_max >= largest);
}

unsigned FpduBuffers::class_of(std::size_t size) {
    WEFT_CHECK(size > 0 && size <= largest);
    auto width = static_cast<unsigned>(std::bit_width(size - 1));
    return width <= smallest_class ? 0 : std::min(width - smallest_class, largest_class);
}

std::size_t FpduBuffers::size_of(unsigned which) {
    return which == largest_class ? largest : std::size_t{1} << (smallest_class + which);
}

bool FpduBuffers::is_left(std::size_t size) const {
    return bytes_lent_ + size_of(class_of(size)) <= bytes_max_;
}

Buffer FpduBuffers::take(std::size_t size, FpduBufferWaiter& waiter) {
    // Who has waited longest is served first, or small FPDUs here and there could starve a long
    // one.
    bool others_first = !waiters_.empty() && &waiters_.front() != &waiter;
    if (others_first || !is_left(size)) {
        if (!waiter.is_waiting_for_buffer) waiters_.push_back(waiter);
        waiter.is_waiting_for_buffer = true;
        return {};
    }
    auto buffer = lend(class_of(size));
    forget(waiter);
    return buffer;
}

Buffer FpduBuffers::take_if_free(std::size_t size) {
    return waiters_.empty() && is_left(size) ? lend(class_of(size)) : Buffer{};
}

Buffer FpduBuffers::lend(unsigned which) {
    auto bytes = size_of(which);
    bytes_lent_ += bytes;
    auto& kept = kept_[which];
    if (kept.empty()) return {new std::byte[bytes], bytes};
    bytes_kept_ -= bytes;
    auto* memory = kept.back().release();
    kept.pop_back();
    return {memory, bytes};
}

void FpduBuffers::give_back(Buffer buffer) {
    std::unique_ptr<std::byte[]> memory(buffer.data());
    WEFT_CHECK(bytes_lent_ >= buffer.size());
    bytes_lent_ -= buffer.size();
    if (bytes_kept_ + buffer.size() <= bytes_kept_max_) {
        bytes_kept_ += buffer.size();
        kept_[class_of(buffer.size())].push_back(std::move(memory));
    }
    if (!waiters_.empty()) waiters_.front().buffer_available();
}

void FpduBuffers::forget(FpduBufferWaiter& waiter) {
    if (!waiter.is_waiting_for_buffer) return;
    waiter.is_waiting_for_buffer = false;
    bool was_first = &waiters_.front() == &waiter;
    IntrusiveQueue<FpduBufferWaiter> others;
    while (!waiters_.empty()) {
        auto& each = waiters_.pop_front();
        if (&each != &waiter) others.push_back(each);
    }
    waiters_ = others;
    // Perhaps there is enough for the next.
    if (was_first && !waiters_.empty()) waiters_.front().buffer_available();
}

}  // namespace weft::iwarp
