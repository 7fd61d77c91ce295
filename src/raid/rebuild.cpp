// SPDX-License-Identifier: Apache-2.0
#include "raid/rebuild.hpp"

#include "base/check.hpp"

namespace weft::raid {

Rebuild::Rebuild(BoxIndex place, const RegionMap& lacks)
    : place_(place), lacks_(std::make_shared<const RegionMap>(lacks)) {
    advance();
}

std::optional<std::uint64_t> Rebuild::take() {
    for (unsigned i = 0; i < limits::stripes_ahead; ++i) {
        const std::uint64_t stripe = mark_ + i;
        if (stripe >= lacks_->stripes()) return std::nullopt;
        if (contains(ahead_ | taken_, i) || !lacks_->contains(stripe)) continue;
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

void Rebuild::advance() {
    while (!finished()) {
        if (ahead_ == 0 && taken_ == 0) {
            mark_ = lacks_->next(mark_).value_or(lacks_->stripes());
            return;
        }
        if ((ahead_ & 1) == 0 && lacks_->contains(mark_)) return;
        ahead_ >>= 1;
        taken_ >>= 1;
        ++mark_;
    }
}

Absence Rebuild::absence() const {
    return {.box = place_,
            .rebuilt_stripes = mark_,
            .ahead = ahead_,
            .takes_orders = true,
            .lacks = lacks_};
}

RegionMap Rebuild::left_from(std::uint64_t lasting) const {
    RegionMap left(lacks_->stripes());
    for (auto stripe = lacks_->next(lasting); stripe; stripe = lacks_->next(*stripe + 1))
        left.add(*stripe);
    return left;
}

}  // namespace weft::raid
