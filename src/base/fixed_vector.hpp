// SPDX-License-Identifier: Apache-2.0
// A vector inside its owner: a bound known at compile time, no allocation.
#pragma once

#include <array>
#include <cstddef>

#include "base/check.hpp"

namespace weft {

template <class T, std::size_t Capacity>
class FixedVector {
public:
    static constexpr std::size_t capacity() { return Capacity; }
    constexpr std::size_t size() const { return size_; }
    constexpr bool empty() const { return size_ == 0; }
    constexpr bool full() const { return size_ == Capacity; }

    constexpr void push_back(const T& value) {
        WEFT_CHECK(!full());
        items_[size_++] = value;
    }
    constexpr void pop_back() {
        WEFT_CHECK(!empty());
        --size_;
    }
    constexpr void clear() { size_ = 0; }

    constexpr T& operator[](std::size_t i) {
        WEFT_CHECK(i < size_);
        return items_[i];
    }
    constexpr const T& operator[](std::size_t i) const {
        WEFT_CHECK(i < size_);
        return items_[i];
    }
    constexpr T* data() { return items_.data(); }
    constexpr const T* data() const { return items_.data(); }
    constexpr T* begin() { return items_.data(); }
    constexpr T* end() { return items_.data() + size_; }
    constexpr const T* begin() const { return items_.data(); }
    constexpr const T* end() const { return items_.data() + size_; }

private:
    std::array<T, Capacity> items_{};
    std::size_t size_ = 0;
};

}  // namespace weft
