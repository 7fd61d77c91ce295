// SPDX-License-Identifier: Apache-2.0
// The receiving half of a stream: a buffer the peer writes into, and what it may still write.
//
// The buffer has two halves. The peer is lent one, then the other; as soon as a half's worth has
// been read, it is lent again. So the bytes come in order and the buffer is a ring.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/buffer.hpp"

namespace weft::abi::sockets {

class Incoming {
public:
    /// `credits`: messages that may be under way or unread at a time.
    Incoming(Buffer ring, std::uint16_t credits);

    Buffer first_window() const { return ring_.first(half()); }
    std::uint16_t credits() const { return static_cast<std::uint16_t>(waiting_.size()); }

    /// The peer says that so many bytes more are there. False if it had no right to.
    bool arrived(std::uint32_t bytes);
    /// A message that counts, and has nothing to be read.
    void counted() { ++read_; }

    bool is_empty() const { return unread_ == 0; }
    std::size_t unread() const { return unread_; }
    /// The oldest bytes, at most so many, in one piece or two.
    std::array<ConstBuffer, 2> front(std::size_t most) const;
    void consume(std::size_t bytes);

    /// Enough was read to tell the peer of it.
    bool owes_grant() const;
    /// The sequence number up to which messages are now welcome. The peer will be told.
    std::uint16_t grant();
    /// A half that can be lent again. The peer will be told with the next grant.
    std::optional<Buffer> lend();

private:
    std::size_t half() const { return ring_.size() / 2; }

    Buffer ring_;
    std::size_t front_ = 0;      ///< where the oldest unread byte lies
    std::size_t unread_ = 0;     ///< these three make up the whole
    std::size_t lent_ = 0;       ///< and not written yet, as far as we were told
    std::size_t free_ = 0;       ///< read
    std::size_t next_lent_ = 0;  ///< where the next window begins

    std::vector<std::uint32_t> waiting_;  ///< bytes left of each unread message: a ring
    std::size_t oldest_ = 0;
    std::size_t waiting_count_ = 0;
    std::uint16_t read_ = 0;  ///< messages
    std::uint16_t read_at_grant_ = 0;
};

}  // namespace weft::abi::sockets
