// SPDX-License-Identifier: Apache-2.0
#include "raid/rebuild.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace weft::raid {

Rebuild::Rebuild(BoxIndex place, const RegionMap& lacks)
    : place_(place), lacks_(std::make_shared<const RegionMap>(lacks)), lap_(lacks_) {
    advance();
}

std::optional<std::uint64_t> Rebuild::take() {
    for (unsigned i = 0; i < limits::stripes_ahead; ++i) {
        const std::uint64_t stripe = mark_ + i;
        if (stripe >= lacks_->stripes()) return std::nullopt;
        if (contains(ahead_ | taken_, i) || !lap_->contains(stripe)) continue;
        if (passed_ && passed_->contains(stripe)) continue;
        taken_ |= only(i);
        return stripe;
    }
    return std::nullopt;
}

void Rebuild::done(std::uint64_t stripe) {
    WEFT_CHECK(stripe >= mark_ && stripe - mark_ < limits::stripes_ahead);
    const Mask bit = only(static_cast<unsigned>(stripe - mark_));
    WEFT_CHECK((taken_ & bit) != 0);
    taken_ &= ~bit;
    ahead_ |= bit;
    advance();
}

void Rebuild::failed(std::uint64_t stripe) {
    WEFT_CHECK(stripe >= mark_ && stripe - mark_ < limits::stripes_ahead);
    taken_ &= ~only(static_cast<unsigned>(stripe - mark_));
}

void Rebuild::pass_over(std::uint64_t stripe) {
    failed(stripe);
    auto passed = passed_ ? *passed_ : RegionMap(lacks_->stripes());
    passed.add(stripe);
    passed_ = std::make_shared<const RegionMap>(std::move(passed));
    advance();
}

void Rebuild::advance() {
    while (mark_ < lacks_->stripes()) {
        if (ahead_ == 0 && taken_ == 0 && !passed_) {
            mark_ = lap_->next(mark_).value_or(lacks_->stripes());
            return;
        }
        const bool is_passed = passed_ && passed_->contains(mark_);
        if ((ahead_ & 1) == 0 && lap_->contains(mark_) && !is_passed) return;
        ahead_ >>= 1;
        taken_ >>= 1;
        ++mark_;
    }
    if (!passed_) return;
    lap_ = std::exchange(passed_, nullptr);
    mark_ = lap_->next(0).value_or(lacks_->stripes());
}

std::uint64_t Rebuild::mark() const {
    const auto first = passed_ ? passed_->next(0) : std::nullopt;
    return first ? std::min(*first, mark_) : mark_;
}

std::uint64_t Rebuild::stripes_done() const {
    const auto all = lacks_->stripes();
    auto left = lap_->count_before(all) - lap_->count_before(mark_);
    if (passed_) left += passed_->count_before(mark_);
    return stripes_to_do() - left;
}

Absence Rebuild::absence() const {
    return {.box = place_,
            .rebuilt_stripes = mark_,
            .ahead = ahead_,
            .takes_orders = true,
            .lacks = lap_,
            .unreadable = {},
            .passed = passed_};
}

RegionMap Rebuild::left_from(std::uint64_t lasting) const {
    RegionMap left(lacks_->stripes());
    for (auto stripe = lacks_->next(lasting); stripe; stripe = lacks_->next(*stripe + 1))
        left.add(*stripe);
    return left;
}

}  // namespace weft::raid
