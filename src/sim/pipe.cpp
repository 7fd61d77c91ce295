// SPDX-License-Identifier: Apache-2.0
#include "sim/pipe.hpp"

#include <algorithm>

namespace weft::sim {

Pipe::Pipe(Clockwork& clockwork, const LinkOptions& options, std::uint64_t subject,
           std::function<void(Piece)> on_arrival, std::function<void()> on_giving_up)
    : clockwork_(clockwork),
      options_(options),
      on_arrival_(std::move(on_arrival)),
      on_giving_up_(std::move(on_giving_up)),
      next_arrival_(clockwork.schedule, "arrival", subject),
      patience_end_(clockwork.schedule, "giving up", subject) {}

std::size_t Pipe::room() const {
    return options_.window_bytes - std::min(options_.window_bytes, outstanding_);
}

Duration Pipe::draw_delay() {
    return clockwork_.random.between(options_.shortest_delay, options_.longest_delay) +
           extra_delay_;
}

void Pipe::send(std::vector<std::byte> bytes) {
    outstanding_ += bytes.size();
    put({Signal::bytes, std::move(bytes), {}});
}

void Pipe::signal(Signal signal) {
    put({signal, {}, {}});
}

void Pipe::put(Piece piece) {
    line_free_at_ = std::max(line_free_at_, clockwork_.now());
    if (options_.bytes_per_second != 0)
        line_free_at_ = line_free_at_ +
                        Duration(piece.bytes.size() * 1'000'000'000 / options_.bytes_per_second);
    const auto left = shared_ ? shared_(line_free_at_, piece.bytes.size()) : line_free_at_;
    last_arrival_ = std::max(last_arrival_, left + draw_delay());
    piece.arrival = last_arrival_;
    in_flight_.push_back(std::move(piece));
    plan();
}

void Pipe::drop() {
    for (const Piece& piece : in_flight_) outstanding_ -= piece.bytes.size();
    in_flight_.clear();
    plan();
}

void Pipe::set_partitioned(bool partitioned) {
    partitioned_ = partitioned;
    plan();
}

void Pipe::set_receiver_dark(bool dark) {
    receiver_dark_ = dark;
    plan();
}

/// Either the next arrival is planned, or the end of patience, or nothing.
void Pipe::plan() {
    if (in_flight_.empty() || held()) next_arrival_.cancel();
    if (in_flight_.empty() || !held()) patience_end_.cancel();
    if (in_flight_.empty()) return;
    if (held()) {
        if (!patience_end_.is_set())
            patience_end_.set(clockwork_.now() + options_.give_up_after,
                              [this] { on_giving_up_(); });
    } else if (!next_arrival_.is_set()) {
        next_arrival_.set(in_flight_.front().arrival, [this] { arrive(); });
    }
}

void Pipe::arrive() {
    Piece piece = std::move(in_flight_.front());
    in_flight_.pop_front();
    plan();
    on_arrival_(std::move(piece));
}

}  // namespace weft::sim
