// SPDX-License-Identifier: Apache-2.0
// Walking through an application's buffers, of which there may be several.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "weft/buffer.hpp"

namespace weft::abi::sockets {

class VectorWalk {
public:
    explicit VectorWalk(std::span<const iovec> vectors) : vectors_(vectors) {
        for (const auto& vector : vectors) left_ += vector.iov_len;
        skip_empty();
    }

    std::size_t left() const { return left_; }
    /// The next bytes that lie in one piece, all of them or `most`.
    Buffer piece(std::size_t most) const {
        if (vectors_.empty()) return {};
        const auto& vector = vectors_.front();
        return {static_cast<std::byte*>(vector.iov_base) + offset_,
                std::min(most, vector.iov_len - offset_)};
    }
    void skip(std::size_t bytes) {
        left_ -= bytes;
        while (bytes > 0) {
            auto part = std::min(bytes, vectors_.front().iov_len - offset_);
            offset_ += part;
            bytes -= part;
            skip_empty();
        }
    }

    /// Copies out of the buffers, and goes on.
    void fill(Buffer to) {
        while (!to.empty()) {
            auto from = piece(to.size());
            std::memcpy(to.data(), from.data(), from.size());
            to = to.subspan(from.size());
            skip(from.size());
        }
    }
    /// Copies into them, and goes on.
    void take(ConstBuffer from) {
        while (!from.empty()) {
            auto to = piece(from.size());
            std::memcpy(to.data(), from.data(), to.size());
            from = from.subspan(to.size());
            skip(to.size());
        }
    }

private:
    void skip_empty() {
        while (!vectors_.empty() && offset_ == vectors_.front().iov_len) {
            vectors_ = vectors_.subspan(1);
            offset_ = 0;
        }
    }

    std::span<const iovec> vectors_;
    std::size_t offset_ = 0;  ///< into the first
    std::size_t left_ = 0;
};

}  // namespace weft::abi::sockets
