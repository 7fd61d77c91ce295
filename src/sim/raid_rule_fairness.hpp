// SPDX-License-Identifier: Apache-2.0
// L8: nobody is passed by for ever. A request may be overtaken by younger ones, of other rows or of
// hosts that have had less; but by so many at most, whatever they ask for and how many wait.
//
// When a request starts is the engine's own affair. What is counted here is what one can see from
// outside: how many that were asked for later were answered before it. Those it may start behind
// are bounded (raid/admission.hpp), and so are those that are under way with it.
#pragma once

#include <cstdint>
#include <map>

#include "sim/rdma_memory_model.hpp"

namespace weft::sim {

class RaidFairnessRule {
public:
    using Number = std::uint64_t;  ///< counts requests as they are asked for

    explicit RaidFairnessRule(Complaints& complaints) : complaints_(complaints) {}

    /// Of those that may overtake one in which nothing is wrong.
    static constexpr std::uint64_t overtakes_max = 2048;

    void asked(Number number) { waiting_.emplace(number, 0); }
    /// How many younger ones have been answered before it; that is too many at some point.
    void answered(Number number);
    /// It waits for something that is no matter of turns: none that overtake it are counted.
    void excuse(Number number) { waiting_.erase(number); }
    /// What was counted while the volume could not serve says nothing.
    void excuse_all() { waiting_.clear(); }
    std::uint64_t most() const { return most_; }

private:
    Complaints& complaints_;
    std::map<Number, std::uint64_t> waiting_;  ///< and by how many each was overtaken
    std::uint64_t most_ = 0;
};

}  // namespace weft::sim
