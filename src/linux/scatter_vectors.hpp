// SPDX-License-Identifier: Apache-2.0
// The next bytes of a scatter list, as the system calls take them.
#pragma once

#include <sys/uio.h>

#include <algorithm>
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

}  // namespace weft::linux
