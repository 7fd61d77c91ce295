// SPDX-License-Identifier: Apache-2.0
#include "raid/region_map.hpp"

#include <algorithm>

#include "raid/limits.hpp"

namespace weft::raid {

RegionMap::RegionMap(std::uint64_t stripes)
    : stripes_(stripes),
      size_(std::max<std::uint64_t>(1, (stripes + limits::regions - 1) / limits::regions)),
      words_((regions() + bits - 1) / bits) {}

void RegionMap::add(std::uint64_t stripe) {
    if (stripe >= stripes_) return;
    const std::uint64_t region = stripe / size_;
    words_[region / bits] |= std::uint64_t{1} << region % bits;
}

void RegionMap::add_from(std::uint64_t stripe) {
    for (std::uint64_t region = stripe / size_; region < regions(); ++region)
        words_[region / bits] |= std::uint64_t{1} << region % bits;
}

void RegionMap::add(const RegionMap& other) {
    if (other.size_ == size_) {
        const std::size_t shared = std::min(words_.size(), other.words_.size());
        for (std::size_t i = 0; i < shared; ++i) words_[i] |= other.words_[i];
        return;
    }
    for (auto stripe = other.next(0); stripe; stripe = other.next(*stripe + 1)) add(*stripe);
}

void RegionMap::clear() {
    std::ranges::fill(words_, std::uint64_t{0});
}

bool RegionMap::contains(std::uint64_t stripe) const {
    return stripe < stripes_ && has(stripe / size_);
}

bool RegionMap::empty() const {
    return std::ranges::all_of(words_, [](std::uint64_t word) { return word == 0; });
}

std::optional<std::uint64_t> RegionMap::next(std::uint64_t stripe) const {
    if (stripe >= stripes_) return std::nullopt;
    if (contains(stripe)) return stripe;
    for (std::uint64_t region = stripe / size_ + 1; region < regions();) {
        if (has(region)) return region * size_;
        const bool word_is_empty = region % bits == 0 && words_[region / bits] == 0;
        region += word_is_empty ? bits : 1;
    }
    return std::nullopt;
}

std::uint64_t RegionMap::count_before(std::uint64_t stripe) const {
    const std::uint64_t end = std::min(stripe, stripes_);
    std::uint64_t count = 0;
    for (std::uint64_t region = 0; region * size_ < end; ++region)
        if (has(region)) count += std::min(size_, end - region * size_);
    return count;
}

RegionMap RegionMap::grown(std::uint64_t stripes) const {
    RegionMap larger(stripes);
    larger.add(*this);
    return larger;
}

}  // namespace weft::raid
