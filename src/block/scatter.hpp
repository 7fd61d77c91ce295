// SPDX-License-Identifier: Apache-2.0
// Scatter lists: walking a part of one piece by piece, and copying out of one and into one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.hpp"
#include "weft/buffer.hpp"

namespace weft::block {

class ScatterCursor {
public:
    ScatterCursor() = default;
    /// The `length` bytes that lie `skip` bytes into the list; they must be there.
    ScatterCursor(std::span<const Buffer> list, std::uint64_t skip, std::uint64_t length)
        : list_(list), left_(length) {
        advance_within(skip);
    }

    std::uint64_t left() const { return left_; }
    /// The next piece; empty only at the end.
    Buffer piece() const {
        if (left_ == 0) return {};
        Buffer rest = list_.front().subspan(at_);
        return rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), left_)));
    }
    void advance(std::size_t count) {
        WEFT_CHECK(count <= left_);
        left_ -= count;
        advance_within(count);
    }

private:
    void advance_within(std::uint64_t count) {
        at_ += count;
        if (left_ == 0) return;
        WEFT_CHECK(!list_.empty());
        while (at_ >= list_.front().size()) {
            at_ -= list_.front().size();
            list_ = list_.subspan(1);
            WEFT_CHECK(!list_.empty());
        }
    }

    std::span<const Buffer> list_;
    std::size_t at_ = 0;  ///< inside the front of the list
    std::uint64_t left_ = 0;
};

inline std::uint64_t total_size(std::span<const Buffer> list) {
    std::uint64_t total = 0;
    for (Buffer piece : list) total += piece.size();
    return total;
}

/// Copies `from` to the front of `to`. A list may be memory that a device lent: the two may
/// overlap, and what lies in its place already costs nothing.
inline void move_bytes(ConstBuffer from, Buffer to) {
    if (!from.empty() && from.data() != to.data())
        std::memmove(to.data(), from.data(), from.size());
}

/// Fills `to` from the list, which holds at least as much.
inline void copy_out(ScatterCursor from, Buffer to) {
    while (!to.empty()) {
        Buffer piece = from.piece();
        piece = piece.first(std::min(piece.size(), to.size()));
        move_bytes(piece, to);
        to = to.subspan(piece.size());
        from.advance(piece.size());
    }
}

/// Puts `from` into the list, which has room for it.
inline void copy_in(ConstBuffer from, ScatterCursor to) {
    while (!from.empty()) {
        Buffer piece = to.piece();
        piece = piece.first(std::min(piece.size(), from.size()));
        move_bytes(from.first(piece.size()), piece);
        from = from.subspan(piece.size());
        to.advance(piece.size());
    }
}

}  // namespace weft::block
