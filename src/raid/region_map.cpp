// SPDX-License-Identifier: Apache-2.0
#include "raid/region_map.hpp"

#include <algorithm>

#include "raid/limits.hpp"

namespace weft::raid {

RegionMap::RegionMap(std::uint64_t stripes) : RegionMap(stripes, limits::regions) {}

RegionMap::RegionMap(std::uint64_t stripes, std::uint64_t most_regions)
    : stripes_(stripes),
      most_(most_regions),
      size_(std::max<std::uint64_t>(1, (stripes + most_ - 1) / most_)),
      words_((regions() + bits - 1) / bits) {}

void RegionMap::add(std::uint64_t stripe) {
    if (stripe >= stripes_) return;
    const std::uint64_t region = stripe / size_;
    words_[region / bits] |= std::uint64_t{1} << region % bits;
}

void RegionMap::add_from(std::uint64_t stripe) {
    add_range(stripe, stripes_);
}

void RegionMap::add_range(std::uint64_t first, std::uint64_t end) {
    end = std::min(end, stripes_);
    for (std::uint64_t region = first / size_; region * size_ < end; ++region)
        words_[region / bits] |= std::uint64_t{1} << region % bits;
}

void RegionMap::add(const RegionMap& other) {
    if (other.size_ == size_) {
        const std::size_t shared = std::min(words_.size(), other.words_.size());
        for (std::size_t i = 0; i < shared; ++i) words_[i] |= other.words_[i];
        return;
    }
    for (std::uint64_t region = 0; region < other.regions(); ++region)
        if (other.has(region)) add_range(region * other.size_, (region + 1) * other.size_);
}

void RegionMap::keep_only(const RegionMap& other) {
    RegionMap same(stripes_, most_);
    same.add(other);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= same.words_[i];
}

void RegionMap::clear_before(std::uint64_t stripe) {
    for (std::uint64_t region = 0; region < std::min(stripe / size_, regions()); ++region)
        words_[region / bits] &= ~(std::uint64_t{1} << region % bits);
    if (stripe >= stripes_) clear();
}

bool RegionMap::set_words(std::vector<std::uint64_t> words) {
    if (words.size() != words_.size()) return false;
    if (regions() % bits != 0 && words.back() >> regions() % bits != 0) return false;
    words_ = std::move(words);
    return true;
}

void RegionMap::clear() {
    std::ranges::fill(words_, std::uint64_t{0});
}

std::vector<std::uint64_t> RegionMap::take_first() {
    std::vector<std::uint64_t> taken;
    const auto first = next(0);
    if (!first) return taken;
    const std::uint64_t region = *first / size_;
    for (auto stripe = *first; stripe < std::min((region + 1) * size_, stripes_); ++stripe)
        taken.push_back(stripe);
    words_[region / bits] &= ~(std::uint64_t{1} << region % bits);
    return taken;
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
    RegionMap larger(stripes, most_);
    larger.add(*this);
    return larger;
}

}  // namespace weft::raid
