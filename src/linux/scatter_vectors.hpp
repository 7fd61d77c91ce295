// SPDX-License-Identifier: Apache-2.0
// The next bytes of a scatter list, as the system calls take them or as one copy.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "block/scatter.hpp"

namespace weft::linux {

/// Writes the next pieces into `vectors`, up to `most` bytes in all. Returns those written.
inline std::span<const iovec> gather(block::ScatterCursor from, std::span<iovec> vectors,
                                     std::size_t most) {
    std::size_t count = 0;
    while (count < vectors.size() && most > 0 && from.left() > 0) {
        Buffer piece = from.piece();
        piece = piece.first(std::min(piece.size(), most));
        vectors[count++] = {piece.data(), piece.size()};
        most -= piece.size();
        from.advance(piece.size());
    }
    return vectors.first(count);
}

/// Fills `to` from the list.
inline void copy_out(block::ScatterCursor from, Buffer to) {
    while (!to.empty()) {
        Buffer piece = from.piece();
        auto count = std::min(piece.size(), to.size());
        std::memcpy(to.data(), piece.data(), count);
        to = to.subspan(count);
        from.advance(count);
    }
}

/// Puts `from` into the list.
inline void copy_in(ConstBuffer from, block::ScatterCursor to) {
    while (!from.empty()) {
        Buffer piece = to.piece();
        auto count = std::min(piece.size(), from.size());
        std::memcpy(piece.data(), from.data(), count);
        from = from.subspan(count);
        to.advance(count);
    }
}

}  // namespace weft::linux
