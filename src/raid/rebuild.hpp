// SPDX-License-Identifier: Apache-2.0
// How far the rebuilding of one place has come. Stripes go in order, several at a time; what is
// done is known exactly, so that hosts' writes reach the box where it has a stripe and leave it out
// where it has not. A stripe that cannot be made, because another of its blocks is lost as well, is
// passed over: the others must not stay without redundancy for its sake. It is tried again in the
// next lap; somebody may have written it anew.
#pragma once

#include <memory>

#include "raid/health.hpp"

namespace weft::raid {

class Rebuild {
public:
    /// `lacks`: the stripes to be made whole.
    Rebuild(BoxIndex place, const RegionMap& lacks);

    /// A stripe to rebuild now, or none: all are done or under way, or those under way are so far
    /// behind that others must not begin.
    std::optional<std::uint64_t> take();
    void done(std::uint64_t stripe);
    /// It is to be taken again.
    void failed(std::uint64_t stripe);
    /// It is to be taken again when all others are done.
    void pass_over(std::uint64_t stripe);

    bool finished() const { return mark_ >= lacks_->stripes() && !passed_; }
    /// Nothing is left but what was passed over once.
    bool is_stuck() const { return lap_ != lacks_; }
    /// All stripes before this one are whole.
    std::uint64_t mark() const;
    std::uint64_t stripes_done() const;
    std::uint64_t stripes_to_do() const { return lacks_->count_before(lacks_->stripes()); }
    /// For readers and writers.
    Absence absence() const;
    /// What is not whole for certain if only stripes before `lasting` have outlived the power.
    RegionMap left_from(std::uint64_t lasting) const;

private:
    void advance();

    BoxIndex place_;
    std::shared_ptr<const RegionMap> lacks_;
    std::shared_ptr<const RegionMap> lap_;     ///< of these, those that are gone through now
    std::shared_ptr<const RegionMap> passed_;  ///< for the next lap; none: nothing
    std::uint64_t mark_ = 0;
    std::uint32_t ahead_ = 0, taken_ = 0;  ///< bit by bit from the mark on
};

}  // namespace weft::raid
