// SPDX-License-Identifier: Apache-2.0
// Aligned memory for payload, kept for reuse, and shared among those who borrow it. Fit for
// O_DIRECT and for ISA-L.
//
// Sizes are rounded up to a power of two, so a buffer given back fits the next request of about
// that size. The sum is bounded whatever the borrowers do. A borrower may hold as much as it leaves
// free, so a few greedy ones never take all; and one that holds nothing gets a small buffer even
// when nothing is free, so nobody is ever shut out. docs/decisions/payload-memory.md says why.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <vector>

#include "weft/block_device.hpp"

namespace weft::block {

class BufferShare;

class BufferPool {
public:
    static constexpr std::size_t alignment = 4096;
    static constexpr std::size_t largest = 64u << 20;

    struct Limits {
        std::size_t bytes;          ///< lent and idle together, but for the reserves
        std::size_t reserve_bytes;  ///< what each share may hold beyond that, in one buffer
        std::size_t idle_bytes;     ///< kept for reuse
    };

    explicit BufferPool(Limits limits) : limits_(limits) {}
    BufferPool(const BufferPool&) = delete;
    BufferPool& operator=(const BufferPool&) = delete;
    ~BufferPool();

    std::size_t idle_bytes() const { return idle_bytes_; }
    std::size_t lent_bytes() const { return lent_bytes_; }

    /// Lets those who wait, the longest first, try again if what they want is there now. Not done
    /// by give_back() itself, so that its caller can finish what it is doing.
    void serve_waiting();

private:
    friend class BufferShare;
    static constexpr std::size_t class_count = 15;  // 4 KiB << 0 … 4 KiB << 14
    static std::size_t class_of(std::size_t size);
    static std::size_t rounded(std::size_t size) { return alignment << class_of(size); }

    bool may_lend(const BufferShare& share, std::size_t size) const;
    std::byte* allocate(std::size_t which);
    void keep_or_free(std::byte* buffer, std::size_t which);

    Limits limits_;
    std::array<std::vector<std::byte*>, class_count> idle_;
    std::size_t idle_bytes_ = 0;
    std::size_t lent_bytes_ = 0;
    std::deque<BufferShare*> waiting_;  ///< each share once at the most
    bool serving_ = false;
    bool serve_again_ = false;
};

/// One borrower's part in a pool.
class BufferShare {
public:
    /// `memory_came` is called from serve_waiting(), after a take() that gave nothing, when it is
    /// worth trying again. It may take().
    BufferShare(BufferPool& pool, std::function<void()> memory_came)
        : pool_(pool), memory_came_(std::move(memory_came)) {}
    BufferShare(const BufferShare&) = delete;
    BufferShare& operator=(const BufferShare&) = delete;
    /// All must have been given back.
    ~BufferShare();

    /// Memory of at least `size` > 0 bytes (at most `largest`); the span is exactly `size` long.
    /// Empty if it cannot be had now: then the share waits for it.
    Buffer take(std::size_t size);
    /// Exactly what take() gave. Call serve_waiting() afterwards.
    void give_back(Buffer buffer);

    bool waiting() const { return waiting_for_ > 0; }
    void stop_waiting();
    std::size_t held_bytes() const { return held_bytes_; }

private:
    friend class BufferPool;

    BufferPool& pool_;
    std::function<void()> memory_came_;
    std::size_t held_bytes_ = 0;
    std::size_t waiting_for_ = 0;  ///< the size it wants
};

}  // namespace weft::block
