// SPDX-License-Identifier: Apache-2.0
// Feeds a stream to a receiver, cut into pieces: the one property every receiver is tested for.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/stream_receiver.hpp"
#include "support/golden.hpp"

namespace weft::test {

/// Delivers `stream` in pieces of at most `step` bytes and hands each outcome of filled() to
/// `on_outcome`. Stops when the receiver wants nothing, fails, or the stream ends; returns how many
/// bytes it took.
template <StreamReceiver Receiver, class OnOutcome>
std::size_t deliver(Receiver& receiver, ConstBuffer stream, std::size_t step,
                    OnOutcome on_outcome) {
    std::size_t at = 0;
    while (at < stream.size()) {
        auto piece = stream.subspan(at, std::min(step, stream.size() - at));
        while (!piece.empty()) {
            Buffer place = receiver.want();
            if (place.empty()) return at;
            auto count = std::min(place.size(), piece.size());
            std::memcpy(place.data(), piece.data(), count);
            piece = piece.subspan(count);
            at += count;
            auto outcome = receiver.filled(count);
            bool good = outcome.has_value();
            on_outcome(std::move(outcome));
            if (!good) return at;
        }
    }
    return at;
}

}  // namespace weft::test
