// SPDX-License-Identifier: Apache-2.0
// First in, first out, chained through the items' own `next`: a queue that costs no memory.
#pragma once

#include <cstddef>

#include "base/check.hpp"

namespace weft {

template <class T>
class IntrusiveQueue {
public:
    bool empty() const { return first_ == nullptr; }
    std::size_t size() const { return size_; }

    T& front() {
        WEFT_CHECK(!empty());
        return *first_;
    }
    void push_back(T& item) {
        item.next = nullptr;
        (empty() ? first_ : last_->next) = &item;
        last_ = &item;
        ++size_;
    }
    T& pop_front() {
        WEFT_CHECK(!empty());
        T& item = *first_;
        first_ = item.next;
        item.next = nullptr;
        --size_;
        return item;
    }
    /// Takes it out from wherever it is; it must be there.
    void remove(T& item) {
        T* before = nullptr;
        for (T* at = first_; at != &item; at = at->next) {
            WEFT_CHECK(at != nullptr);
            before = at;
        }
        (before == nullptr ? first_ : before->next) = item.next;
        if (last_ == &item) last_ = before;
        item.next = nullptr;
        --size_;
    }
    /// Moves all of `other` to the end.
    void append(IntrusiveQueue& other) {
        if (other.empty()) return;
        (empty() ? first_ : last_->next) = other.first_;
        last_ = other.last_;
        size_ += other.size_;
        other = {};
    }

private:
    T* first_ = nullptr;
    T* last_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace weft
