// SPDX-License-Identifier: Apache-2.0
// Bytes waiting to be sent, for handshakes, where messages are small and few. What was lent to the
// world must not move when more is added, so bytes lie in chunks that never grow beyond the room
// they were made with.
#pragma once

#include <algorithm>
#include <list>
#include <vector>

#include "base/wire_format.hpp"

namespace weft::nbd {

class Outbox {
public:
    template <class Header>
    void add(const Header& header) {
        add_octets(encoded(header));
    }
    void add_octets(ConstBuffer octets) {
        size_ += octets.size();
        while (!octets.empty()) {
            auto& chunk = chunk_with_room();
            auto fits = octets.first(std::min(octets.size(), chunk.capacity() - chunk.size()));
            chunk.insert(chunk.end(), fits.begin(), fits.end());
            octets = octets.subspan(fits.size());
        }
    }
    void add_zeroes(std::size_t count) { add_octets(std::vector<std::byte>(count)); }

    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    /// As StreamEngine::pending().
    std::size_t pending(std::span<ConstBuffer> pieces) const {
        std::size_t count = 0;
        for (auto chunk = chunks_.begin(); chunk != chunks_.end() && count < pieces.size(); ++chunk)
            pieces[count] = ConstBuffer(*chunk).subspan(count == 0 ? gone_ : 0), ++count;
        return count;
    }
    void sent(std::size_t count) {
        WEFT_CHECK(count <= size_);
        size_ -= count;
        gone_ += count;
        // A chunk is dropped when all of it is gone: an idle connection holds no memory.
        while (!chunks_.empty() && gone_ >= chunks_.front().size()) {
            gone_ -= chunks_.front().size();
            chunks_.pop_front();
        }
    }

private:
    static constexpr std::size_t chunk_bytes = 1024;

    std::vector<std::byte>& chunk_with_room() {
        if (chunks_.empty() || chunks_.back().size() == chunks_.back().capacity())
            chunks_.emplace_back().reserve(chunk_bytes);
        return chunks_.back();
    }

    std::list<std::vector<std::byte>> chunks_;  ///< none of them empty
    std::size_t gone_ = 0;                      ///< of the first chunk
    std::size_t size_ = 0;
};

}  // namespace weft::nbd
