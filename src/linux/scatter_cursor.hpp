// SPDX-License-Identifier: Apache-2.0
// A place in a scatter list: how far a transfer has come, and the system calls' view of the rest.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/check.hpp"
#include "weft/block_device.hpp"

namespace weft::linux {

class ScatterCursor {
public:
    ScatterCursor() = default;
    explicit ScatterCursor(std::span<const Buffer> pieces) : pieces_(pieces) {}

    /// Writes the next pieces into `vectors`, up to `most` bytes in all. Returns those written.
    std::span<const iovec> gather(std::span<iovec> vectors, std::size_t most) const {
        std::size_t count = 0;
        walk(most, [&](Buffer part) {
            if (count == vectors.size()) return false;
            vectors[count++] = {part.data(), part.size()};
            return true;
        });
        return vectors.first(count);
    }

    /// The next bytes of the list, copied to `to`; the cursor stays.
    void copy_to(Buffer to) const {
        std::size_t at = 0;
        walk(to.size(), [&](Buffer part) {
            std::memcpy(to.data() + at, part.data(), part.size());
            at += part.size();
            return true;
        });
    }
    /// `from` becomes the next bytes of the list; the cursor stays.
    void copy_from(ConstBuffer from) const {
        std::size_t at = 0;
        walk(from.size(), [&](Buffer part) {
            std::memcpy(part.data(), from.data() + at, part.size());
            at += part.size();
            return true;
        });
    }

    void advance(std::size_t count) {
        while (count > 0) {
            WEFT_CHECK(!pieces_.empty());
            auto step = std::min(count, pieces_.front().size() - taken_);
            taken_ += step;
            count -= step;
            if (taken_ < pieces_.front().size()) break;
            pieces_ = pieces_.subspan(1);
            taken_ = 0;
        }
    }

private:
    /// Calls `take` with each part of the next `most` bytes, empty ones left out.
    template <class Take>
    void walk(std::size_t most, Take take) const {
        std::size_t skip = taken_;
        for (auto piece : pieces_) {
            if (most == 0) return;
            auto part = piece.subspan(skip, std::min(piece.size() - skip, most));
            skip = 0;
            most -= part.size();
            if (!part.empty() && !take(part)) return;
        }
    }

    std::span<const Buffer> pieces_;
    std::size_t taken_ = 0;  ///< of the first piece
};

}  // namespace weft::linux
