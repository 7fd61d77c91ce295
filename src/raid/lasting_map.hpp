// SPDX-License-Identifier: Apache-2.0
// A set of stripes that whoever comes after us must know of: a stripe is in it, lastingly, before
// anything is done there. It is coarse, so that its record is small and few writes have to wait for
// it. What is taken out of it is out at once for us, and some time later for the store.
#pragma once

#include <utility>

#include "raid/limits.hpp"
#include "raid/region_map.hpp"

namespace weft::raid {

class LastingMap {
public:
    explicit LastingMap(std::uint64_t stripes)
        : wanted_(stripes, limits::lasting_regions), kept_(wanted_), storing_(wanted_) {}

    /// As the store has it.
    void recall(const RegionMap& stripes) {
        wanted_.add(stripes);
        kept_ = wanted_;
    }
    bool has(std::uint64_t stripe) const { return kept_.contains(stripe); }
    void want(std::uint64_t stripe) { wanted_.add(stripe); }
    void want(const RegionMap& stripes) { wanted_.add(stripes); }
    void want_only(const RegionMap& stripes) { wanted_.keep_only(stripes); }
    const RegionMap& wanted() const { return wanted_; }

    bool is_due() const { return wanted_ != kept_; }
    /// What to store now; stored() follows.
    const RegionMap& begin() {
        storing_ = wanted_;
        kept_.keep_only(wanted_);  // whether or not it succeeds
        is_under_way_ = true;
        return storing_;
    }
    void stored(bool good) {
        if (std::exchange(is_under_way_, false) && good) kept_ = storing_;
    }
    void grow(std::uint64_t stripes) {
        for (RegionMap* map : {&wanted_, &kept_, &storing_}) *map = map->grown(stripes);
    }

private:
    RegionMap wanted_, kept_, storing_;
    bool is_under_way_ = false;
};

}  // namespace weft::raid
