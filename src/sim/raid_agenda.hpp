// SPDX-License-Identifier: Apache-2.0
// Things that will happen, in an order that is drawn: the network, the disks and the time of a
// volume whose messages are function calls. What is asked waits here, and comes out at any moment
// after.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "sim/random.hpp"

namespace weft::sim {

class RaidAgenda {
public:
    explicit RaidAgenda(std::uint64_t seed) : random(seed) {}

    void later(std::function<void()> what) { waiting_.push_back(std::move(what)); }
    /// False: nothing is left to happen.
    bool step() {
        if (waiting_.empty()) return false;
        std::swap(waiting_[random.below(waiting_.size())], waiting_.back());
        auto next = std::move(waiting_.back());
        waiting_.pop_back();
        ++steps_;
        next();
        return true;
    }
    bool is_empty() const { return waiting_.empty(); }
    std::uint64_t steps() const { return steps_; }

    Random random;

private:
    std::vector<std::function<void()>> waiting_;
    std::uint64_t steps_ = 0;
};

}  // namespace weft::sim
