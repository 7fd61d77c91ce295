// SPDX-License-Identifier: Apache-2.0
// Some bytes of registered memory, in order, wherever their pieces lie.
#pragma once

#include <algorithm>
#include <span>

#include "base/check.hpp"
#include "weft/buffer.hpp"

namespace weft::iwarp {

/// A view: the pieces belong to the region, or to whoever made it.
class MemoryRange {
public:
    MemoryRange() = default;
    /// `size` bytes that begin `skip` bytes into the first of `pieces`. No piece is empty.
    MemoryRange(std::span<const Buffer> pieces, std::size_t skip, std::size_t size)
        : pieces_(pieces), skip_(skip), size_(size) {
        WEFT_CHECK(size == 0 || (!pieces.empty() && skip < pieces.front().size()));
    }

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

    /// What lies in one place at the front; empty only if the whole is.
    Buffer front() const {
        if (size_ == 0) return {};
        Buffer here = pieces_.front().subspan(skip_);
        return here.first(std::min(here.size(), size_));
    }
    void drop_front(std::size_t count) {
        WEFT_CHECK(count <= size_);
        size_ -= count;
        skip_ += count;
        while (!pieces_.empty() && skip_ >= pieces_.front().size()) {
            skip_ -= pieces_.front().size();
            pieces_ = pieces_.subspan(1);
        }
    }

private:
    std::span<const Buffer> pieces_;
    std::size_t skip_ = 0;
    std::size_t size_ = 0;
};

}  // namespace weft::iwarp
