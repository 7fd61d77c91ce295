// SPDX-License-Identifier: Apache-2.0
// A set of stripes, kept coarsely: a bit for each region of stripes, so that it has a bound however
// large the volume is. It may say that a stripe is in it that is not, and never the other way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weft::raid {

class RegionMap {
public:
    explicit RegionMap(std::uint64_t stripes);
    /// Of no more regions than so many.
    RegionMap(std::uint64_t stripes, std::uint64_t most_regions);

    void add(std::uint64_t stripe);
    /// All stripes from this one on.
    void add_from(std::uint64_t stripe);
    void add(const RegionMap& other);
    void clear();
    /// Forgets what is not in the other.
    void keep_only(const RegionMap& other);
    /// Forgets the regions all of whose stripes lie before this one.
    void clear_before(std::uint64_t stripe);
    /// The stripes of the first region that has any, which are in it no more.
    std::vector<std::uint64_t> take_first();

    bool contains(std::uint64_t stripe) const;
    bool empty() const;
    /// The first stripe of the set that is not before this one.
    std::optional<std::uint64_t> next(std::uint64_t stripe) const;
    /// How many of the set lie before this one.
    std::uint64_t count_before(std::uint64_t stripe) const;
    std::uint64_t stripes() const { return stripes_; }

    /// The same set in a volume that has grown.
    RegionMap grown(std::uint64_t stripes) const;

    /// A region to each bit, from the lowest of the first word on.
    const std::vector<std::uint64_t>& words() const { return words_; }
    /// False: these are not the words of a map of this shape.
    bool set_words(std::vector<std::uint64_t> words);

    bool operator==(const RegionMap&) const = default;

private:
    static constexpr std::uint64_t bits = 64;
    std::uint64_t regions() const { return (stripes_ + size_ - 1) / size_; }
    bool has(std::uint64_t region) const {
        return (words_[region / bits] >> region % bits & 1) != 0;
    }

    void add_range(std::uint64_t first, std::uint64_t end);

    std::uint64_t stripes_, most_, size_;  ///< of a region, in stripes
    std::vector<std::uint64_t> words_;
};

}  // namespace weft::raid
