// SPDX-License-Identifier: Apache-2.0
// The memory of one region: pieces that lie anywhere and are counted as one run of bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "iwarp/memory_range.hpp"

namespace weft::iwarp {

class PieceList {
public:
    /// What the pieces hold together; none if that does not fit 64 bits.
    static std::optional<std::uint64_t> size_of(std::span<const Buffer> pieces) {
        std::uint64_t size = 0;
        for (Buffer piece : pieces)
            if (__builtin_add_overflow(size, piece.size(), &size)) return std::nullopt;
        return size;
    }

    /// Makes room, so that assign() of up to `count` pieces allocates nothing.
    void reserve(std::size_t count) {
        pieces_.reserve(count);
        if (count > 1) starts_.reserve(count);
    }
    /// Empty pieces are left out: nobody can be sent to them.
    void assign(std::span<const Buffer> pieces) {
        pieces_.clear();
        for (Buffer piece : pieces)
            if (!piece.empty()) pieces_.push_back(piece);
        starts_.clear();
        if (pieces_.size() < 2) return;
        std::uint64_t start = 0;
        for (Buffer piece : pieces_) {
            starts_.push_back(start);
            start += piece.size();
        }
    }

    /// `size` bytes from `start` on, not none, and all of them there. Good until the next assign().
    MemoryRange range(std::uint64_t start, std::size_t size) const {
        if (starts_.empty()) return MemoryRange(pieces_, start, size);
        auto after = std::upper_bound(starts_.begin(), starts_.end(), start);
        auto index = static_cast<std::size_t>(after - starts_.begin()) - 1;
        return MemoryRange(std::span(pieces_).subspan(index), start - starts_[index], size);
    }

private:
    std::vector<Buffer> pieces_;
    std::vector<std::uint64_t> starts_;  ///< of each piece; empty if there is one, or none
};

}  // namespace weft::iwarp
