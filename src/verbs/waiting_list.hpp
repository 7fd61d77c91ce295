// SPDX-License-Identifier: Apache-2.0
// Who waits for something, first come, first served. Joining and leaving take the same short time
// however many wait, and who is destroyed leaves by itself.
#pragma once

#include <utility>

#include "base/check.hpp"

namespace weft::verbs {

/// A place in one list at a time.
class Waiting {
public:
    Waiting() = default;
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    bool is_waiting() const { return after_ != this; }
    void stop_waiting() {
        before_->after_ = after_;
        after_->before_ = before_;
        before_ = after_ = this;
    }

protected:
    ~Waiting() { stop_waiting(); }

private:
    template <class T>
    friend class WaitingList;

    Waiting* before_ = this;
    Waiting* after_ = this;
};

/// T derives from Waiting, once.
template <class T>
class WaitingList {
public:
    bool empty() const { return !end_.is_waiting(); }
    /// Who waits already keeps its place.
    void add(T& one) {
        Waiting& place = one;
        if (place.is_waiting()) return;
        place.before_ = std::exchange(end_.before_, &place);
        place.after_ = &end_;
        place.before_->after_ = &place;
    }
    T& pop_front() {
        WEFT_CHECK(!empty());
        auto& first = static_cast<T&>(*end_.after_);
        static_cast<Waiting&>(first).stop_waiting();
        return first;
    }
    /// Takes over all who wait in `other`; nobody may wait here.
    void take_all(WaitingList& other) {
        WEFT_CHECK(empty());
        if (other.empty()) return;
        end_.before_ = std::exchange(other.end_.before_, &other.end_);
        end_.after_ = std::exchange(other.end_.after_, &other.end_);
        end_.before_->after_ = end_.after_->before_ = &end_;
    }

private:
    struct End final : Waiting {};
    End end_;  ///< the list is a circle, and this is where it begins and ends
};

}  // namespace weft::verbs
