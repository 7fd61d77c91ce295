// SPDX-License-Identifier: Apache-2.0
// Where FPDUs wait until their checksum is verified, and where answers to reads are copied to be
// sent: one pool for all connections of a device.
//
// The last buffer given back is the next one given out, so a busy connection works in one that the
// processor's cache still holds. What all may hold together is bounded; who finds nothing left is
// told when there is something again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/intrusive_queue.hpp"
#include "weft/buffer.hpp"

namespace weft::iwarp {

/// Someone who may have to wait for a buffer.
class FpduBufferWaiter {
public:
    virtual void buffer_available() = 0;
    FpduBufferWaiter* next = nullptr;  ///< for the pool's queue
    bool is_waiting_for_buffer = false;

protected:
    ~FpduBufferWaiter() = default;
};

class FpduBuffers {
public:
    explicit FpduBuffers(std::size_t bytes_max, std::size_t bytes_kept_max);

    /// At least `size` bytes, at most `largest`; or nothing now, and the waiter hears of it later.
    Buffer take(std::size_t size, FpduBufferWaiter& waiter);
    /// The same, but nobody waits: for who will ask again anyway.
    Buffer take_if_free(std::size_t size);
    /// Gives back what take() gave.
    void give_back(Buffer buffer);
    /// The waiter needs no buffer any more.
    void forget(FpduBufferWaiter& waiter);

    /// Whether others need what is lent.
    bool is_short() const { return !waiters_.empty(); }
    std::size_t bytes_lent() const { return bytes_lent_; }
    /// Holds any FPDU, also one with markers.
    static constexpr std::size_t largest = 68u << 10;

private:
    static constexpr unsigned smallest_class = 10;  ///< 1 KiB, and twice that, to 64 KiB
    static constexpr unsigned largest_class = 7;    ///< a little more than 64 KiB
    static unsigned class_of(std::size_t size);
    static std::size_t size_of(unsigned which);
    bool is_left(std::size_t size) const;
    Buffer lend(unsigned which);

    std::size_t bytes_max_;
    std::size_t bytes_kept_max_;
    std::size_t bytes_lent_ = 0;
    std::size_t bytes_kept_ = 0;
    std::array<std::vector<std::unique_ptr<std::byte[]>>, largest_class + 1> kept_;
    IntrusiveQueue<FpduBufferWaiter> waiters_;
};

}  // namespace weft::iwarp
