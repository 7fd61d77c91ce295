// SPDX-License-Identifier: Apache-2.0
// The sending half of a stream: a ring of bytes on their way, and what the peer allows.
//
// To send takes four things: room in the ring, entries of the send queue, a credit, and a window of
// the peer's buffer. The first two come back when a request has ended, the others by messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "abi/sockets/carrier.hpp"
#include "abi/sockets/limits.hpp"
#include "base/fixed_vector.hpp"

namespace weft::abi::sockets {

class Outgoing {
public:
    Outgoing(Carrier& carrier, Buffer ring, std::uint32_t entries);

    void begin(std::uint16_t credits, const Window& first_window);
    /// Messages up to this number are welcome.
    void allow(std::uint16_t sequence) { allowed_ = sequence; }
    /// False if the peer had no right to: it lends what it has lent already.
    bool offer(const Window& window);
    void done(const Receipt& receipt);

    /// Whether anything can be sent that the peer must agree to.
    bool has_room() const;
    /// Whether anything can be written where the peer need not know.
    bool has_room_unasked() const;
    bool is_idle() const { return entries_free_ == entries_; }

    /// How much of so many bytes can go as one message, now. Needs has_room().
    std::uint32_t next_transfer(std::size_t bytes) const;
    /// The same for a write nobody is told of.
    std::uint32_t next_transfer_unasked(std::size_t bytes) const;
    /// Where in the ring they are to be put, in one piece or two.
    std::array<Buffer, 2> room(std::uint32_t bytes) const;

    // All of these send, and are false if the queue pair refuses.
    /// What was put into room(bytes).
    bool send(std::uint32_t bytes);
    /// Bytes from anywhere, few enough to go inline.
    bool send_inline(ConstBuffer bytes);
    bool write(std::uint32_t bytes, const Window& to);
    bool write_inline(ConstBuffer bytes, const Window& to);
    /// Into a slot, inline, and counts as a message.
    bool tell(ConstBuffer bytes, const Window& slot, Message message);

private:
    /// The part of the current window that so many bytes fill.
    Window take_window(std::uint32_t bytes);
    std::uint16_t credits_left() const { return static_cast<std::uint16_t>(allowed_ - sent_); }
    void advance(std::uint32_t bytes);

    Carrier& carrier_;
    Buffer ring_;
    std::size_t ring_next_ = 0;
    std::size_t ring_free_;
    std::uint32_t entries_, entries_free_;

    std::uint16_t sent_ = 0, allowed_ = 0, reserve_ = 0;  ///< messages
    FixedVector<Window, limits::windows> windows_;        ///< the first is in use
};

}  // namespace weft::abi::sockets
