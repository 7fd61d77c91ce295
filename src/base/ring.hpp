// SPDX-License-Identifier: Apache-2.0
// A queue of fixed capacity: first in, first out, no allocation after it is made.
#pragma once

#include <cstddef>
#include <vector>

#include "base/check.hpp"

namespace weft {

template <class T>
class Ring {
public:
    explicit Ring(std::size_t capacity) : slots_(capacity) { WEFT_CHECK(capacity > 0); }

    std::size_t capacity() const { return slots_.size(); }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    bool full() const { return size_ == slots_.size(); }

    T& push_back(T value) {
        WEFT_CHECK(!full());
        T& slot = slots_[index(size_++)];
        slot = std::move(value);
        return slot;
    }
    T& front() { return (*this)[0]; }
    T& back() { return (*this)[size_ - 1]; }
    /// The i-th oldest.
    T& operator[](std::size_t i) {
        WEFT_CHECK(i < size_);
        return slots_[index(i)];
    }
    void pop_front() {
        WEFT_CHECK(!empty());
        slots_[first_] = T{};
        first_ = index(1);
        --size_;
    }
    void clear() {
        while (!empty()) pop_front();
    }

private:
    std::size_t index(std::size_t i) const {
        std::size_t at = first_ + i;
        return at < slots_.size() ? at : at - slots_.size();
    }

    std::vector<T> slots_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
};

}  // namespace weft
