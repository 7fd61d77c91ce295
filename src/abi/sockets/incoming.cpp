// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/incoming.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::abi::sockets {

Incoming::Incoming(Buffer ring, std::uint16_t credits)
    : ring_(ring.first(ring.size() / 2 * 2)),
      lent_(half()),
      free_(half()),
      next_lent_(half()),
      waiting_(credits) {
    WEFT_CHECK(half() > 0 && credits > 1);
}

bool Incoming::arrived(std::uint32_t bytes) {
    if (bytes == 0) {
        counted();
        return true;
    }
    if (bytes > lent_ || waiting_count_ == waiting_.size()) return false;
    lent_ -= bytes;
    unread_ += bytes;
    waiting_[(oldest_ + waiting_count_++) % waiting_.size()] = bytes;
    return true;
}

std::array<ConstBuffer, 2> Incoming::front(std::size_t most) const {
    auto bytes = std::min(most, unread_);
    auto to_the_end = std::min(bytes, ring_.size() - front_);
    return {ring_.subspan(front_, to_the_end), ring_.first(bytes - to_the_end)};
}

void Incoming::consume(std::size_t bytes) {
    WEFT_CHECK(bytes <= unread_);
    front_ = (front_ + bytes) % ring_.size();
    unread_ -= bytes;
    free_ += bytes;
    while (bytes > 0) {
        auto& message = waiting_[oldest_];
        auto part = static_cast<std::uint32_t>(std::min<std::size_t>(bytes, message));
        message -= part;
        bytes -= part;
        if (message > 0) continue;
        oldest_ = (oldest_ + 1) % waiting_.size();
        --waiting_count_;
        ++read_;
    }
}

bool Incoming::owes_grant() const {
    auto since = static_cast<std::uint16_t>(read_ - read_at_grant_);
    return free_ >= half() || since >= waiting_.size() / 2;
}

std::uint16_t Incoming::grant() {
    read_at_grant_ = read_;
    return static_cast<std::uint16_t>(read_ + waiting_.size());
}

std::optional<Buffer> Incoming::lend() {
    if (free_ < half()) return std::nullopt;
    auto window = ring_.subspan(next_lent_, half());
    next_lent_ = (next_lent_ + half()) % ring_.size();
    free_ -= half();
    lent_ += half();
    return window;
}

}  // namespace weft::abi::sockets
