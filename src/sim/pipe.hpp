// SPDX-License-Identifier: Apache-2.0
// One direction of a connection: pieces on their way, in order.
//
// A pipe can be held, because the network is partitioned or the receiving machine is dark. Then
// nothing arrives; what was sent waits, and after a time the pipe gives up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "sim/clockwork.hpp"
#include "sim/link_options.hpp"

namespace weft::sim {

enum class Signal : std::uint8_t {
    bytes,
    hello,    ///< a connection is asked for, or granted
    goodbye,  ///< no more bytes will come
    reset,    ///< the connection is gone, and with it what was not yet read
};

struct Piece {
    Signal signal;
    std::vector<std::byte> bytes;
    Instant arrival;
};

class Pipe {
public:
    /// `on_arrival` and `on_giving_up` are called from the schedule, never from inside a call.
    Pipe(Clockwork& clockwork, const LinkOptions& options, std::uint64_t subject,
         std::function<void(Piece)> on_arrival, std::function<void()> on_giving_up);

    /// How many bytes may still be sent.
    std::size_t room() const;
    void send(std::vector<std::byte> bytes);
    void signal(Signal signal);

    /// The receiver has taken `count` of the bytes that arrived.
    void taken(std::size_t count) { outstanding_ -= count; }
    /// Whatever is on its way is lost.
    void drop();

    void set_partitioned(bool partitioned);
    void set_receiver_dark(bool dark);
    void set_clogged_by(Duration extra_delay) { extra_delay_ = extra_delay; }
    /// When bytes that are ready at an instant have left what this pipe shares with others.
    using Shared = std::function<Instant(Instant ready, std::size_t bytes)>;
    void set_shared(Shared shared) { shared_ = std::move(shared); }

    Duration draw_delay();

private:
    bool held() const { return partitioned_ || receiver_dark_; }
    void put(Piece piece);
    void plan();
    void arrive();

    Clockwork& clockwork_;
    const LinkOptions& options_;
    std::function<void(Piece)> on_arrival_;
    std::function<void()> on_giving_up_;
    Shared shared_;
    std::deque<Piece> in_flight_;
    std::size_t outstanding_ = 0;  ///< bytes in flight, or arrived and not taken
    bool partitioned_ = false;
    bool receiver_dark_ = false;
    Duration extra_delay_{};
    Instant line_free_at_;  ///< when the line has carried what was sent, if it is a slow one
    Instant last_arrival_;  ///< pieces never overtake each other
    Appointment next_arrival_;
    Appointment patience_end_;
};

}  // namespace weft::sim
