// SPDX-License-Identifier: Apache-2.0
#include "linux/timer_heap.hpp"

#include <algorithm>

namespace weft::linux {

void TimerEntry::set_timer(Instant when) {
    cancel_timer();
    when_ = when;
    heap_.insert(*this);
}

void TimerEntry::cancel_timer() {
    if (place_ != nowhere) heap_.remove(*this);
}

std::optional<Instant> TimerEntry::timer() const {
    if (place_ == nowhere) return std::nullopt;
    return when_;
}

std::optional<Instant> TimerHeap::next() const {
    if (heap_.empty()) return std::nullopt;
    return heap_.front()->when_;
}

void TimerHeap::fire(Instant now) {
    auto this_turn = next_turn_;
    fired_until_ = now;
    while (!heap_.empty()) {
        TimerEntry& first = *heap_.front();
        if (first.when_ > now || first.turn_ >= this_turn) return;
        remove(first);
        first.expired();
    }
}

bool TimerHeap::earlier(const TimerEntry& a, const TimerEntry& b) {
    return a.when_ != b.when_ ? a.when_ < b.when_ : a.turn_ < b.turn_;
}

void TimerHeap::put(TimerEntry& entry, std::size_t place) {
    heap_[place] = &entry;
    entry.place_ = place;
}

void TimerHeap::insert(TimerEntry& entry) {
    entry.turn_ = next_turn_++;
    // Nothing is earlier than what has gone off: one set to the past must not come to stand before
    // those that are due and have waited longer.
    entry.when_ = std::max(entry.when_, fired_until_);
    heap_.push_back(&entry);
    entry.place_ = heap_.size() - 1;
    rise(entry.place_);
}

void TimerHeap::remove(TimerEntry& entry) {
    auto place = entry.place_;
    TimerEntry& last = *heap_.back();
    heap_.pop_back();
    entry.place_ = TimerEntry::nowhere;
    if (&last == &entry) return;
    put(last, place);
    rise(place);
    sink(last.place_);
}

void TimerHeap::rise(std::size_t place) {
    TimerEntry& entry = *heap_[place];
    while (place > 0) {
        auto parent = (place - 1) / 2;
        if (!earlier(entry, *heap_[parent])) break;
        put(*heap_[parent], place);
        place = parent;
    }
    put(entry, place);
}

void TimerHeap::sink(std::size_t place) {
    TimerEntry& entry = *heap_[place];
    for (;;) {
        auto child = 2 * place + 1;
        if (child >= heap_.size()) break;
        if (child + 1 < heap_.size() && earlier(*heap_[child + 1], *heap_[child])) ++child;
        if (!earlier(*heap_[child], entry)) break;
        put(*heap_[child], place);
        place = child;
    }
    put(entry, place);
}

}  // namespace weft::linux
