// SPDX-License-Identifier: Apache-2.0
// Walks a part of a scatter list, piece by piece.
#pragma once

#include <algorithm>

#include "base/check.hpp"
#include "weft/block_device.hpp"

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

}  // namespace weft::block
