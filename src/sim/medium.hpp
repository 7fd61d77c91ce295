// SPDX-License-Identifier: Apache-2.0
// The bytes of a disk: what is stable, and what is only in its volatile cache.
//
// Writes are numbered in the order they complete. For each sector the cache keeps the versions
// that are not yet stable, so that a power cut can keep any write and lose any other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sim/disk_spec.hpp"
#include "sim/random.hpp"
#include "weft/block_device.hpp"

namespace weft::sim {

class Medium {
public:
    enum class Reach : std::uint8_t { cache, stable };
    enum class Zeroes : std::uint8_t { hole, allocated };

    explicit Medium(std::size_t cache_sectors) : cache_sectors_(cache_sectors) {}

    // Offsets and lengths are multiples of sector_bytes.
    void read(std::uint64_t offset, Buffer into) const;
    void write(std::uint64_t offset, ConstBuffer bytes, Reach reach);
    void write_zeroes(std::uint64_t offset, std::uint64_t length, Zeroes kind, Reach reach);

    /// How many bytes a write there would newly take, and how many are taken now.
    std::uint64_t unallocated(std::uint64_t offset, std::uint64_t length) const;
    std::uint64_t allocated() const { return current_.size() * sector_bytes; }
    /// The run that begins at `offset`, at most `length` long.
    Extent extent(std::uint64_t offset, std::uint64_t length) const;

    /// Names the writes done so far; with flush(), all of them become stable.
    std::uint64_t mark() const { return last_write_; }
    void flush(std::uint64_t mark);

    /// Each write that is not stable is kept, lost, or torn: some of its sectors are kept.
    void power_cut(Random& random);
    /// Flips one bit of stable storage; a newer version in the cache hides it.
    void rot(std::uint64_t byte, unsigned bit);

private:
    using Sector = std::array<std::byte, sector_bytes>;
    using Contents = std::optional<Sector>;  ///< none: a hole
    using Image = std::map<std::uint64_t, Sector>;
    struct Version {
        std::uint64_t write;
        Contents contents;
    };

    void put(std::uint64_t sector, const Contents& contents, Reach reach);
    void make_room();
    static void assign(Image& image, std::uint64_t sector, const Contents& contents);

    std::size_t cache_sectors_;
    Image stable_;
    Image current_;  ///< stable, with the cache over it: what a read sees
    std::map<std::uint64_t, std::vector<Version>> cache_;
    std::size_t cached_versions_ = 0;
    std::uint64_t last_write_ = 0;
};

}  // namespace weft::sim
