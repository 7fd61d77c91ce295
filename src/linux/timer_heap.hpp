// SPDX-License-Identifier: Apache-2.0
// Timers in the order they are due. An entry knows its place in the heap, so setting it again or
// cancelling it searches nothing and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/instant.hpp"

namespace weft::linux {

class TimerHeap;

class TimerEntry {
public:
    explicit TimerEntry(TimerHeap& heap) : heap_(heap) {}
    TimerEntry(const TimerEntry&) = delete;
    TimerEntry& operator=(const TimerEntry&) = delete;

    void set_timer(Instant when);  ///< replaces an earlier time
    void cancel_timer();
    /// When it will go off, which is never before what has gone off; none if it is not set.
    std::optional<Instant> timer() const;

    /// The time has come; the timer is no longer set.
    virtual void expired() = 0;

protected:
    virtual ~TimerEntry() { cancel_timer(); }

private:
    friend class TimerHeap;
    static constexpr std::size_t nowhere = ~std::size_t{0};

    TimerHeap& heap_;
    Instant when_;
    std::uint64_t turn_ = 0;  ///< breaks ties: set first, goes off first
    std::size_t place_ = nowhere;
};

class TimerHeap {
public:
    bool empty() const { return heap_.empty(); }
    std::optional<Instant> next() const;

    /// Calls expired() on what is due. One set anew from inside waits for the next call, however
    /// early its time, so a timer that always sets itself again stops nobody.
    void fire(Instant now);

private:
    friend class TimerEntry;
    void insert(TimerEntry& entry);
    void remove(TimerEntry& entry);
    void put(TimerEntry& entry, std::size_t place);
    void rise(std::size_t place);
    void sink(std::size_t place);
    static bool earlier(const TimerEntry& a, const TimerEntry& b);

    std::vector<TimerEntry*> heap_;
    std::uint64_t next_turn_ = 0;
    Instant fired_until_;
};

}  // namespace weft::linux
