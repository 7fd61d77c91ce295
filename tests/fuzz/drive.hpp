// SPDX-License-Identifier: Apache-2.0
// Drives any StreamEngine with any octets: the first says how small the pieces are, the rest is
// what the peer sends. All the engine sends is looked at and thrown away.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.hpp"
#include "weft/world.hpp"

namespace weft::fuzz {

/// True if something was sent.
inline bool send_some(StreamEngine& engine, std::size_t step) {
    std::array<ConstBuffer, 3> pieces;
    auto used = engine.pending(pieces);
    WEFT_CHECK(used <= pieces.size());
    if (used == 0) return false;
    WEFT_CHECK(!pieces[0].empty());
    std::size_t sum = 0;  // reading each octet lets the sanitizer judge the piece
    for (auto octet : pieces[0]) sum += std::to_integer<std::size_t>(octet);
    auto count = std::min(pieces[0].size(), step + sum % 2);
    engine.sent(count);
    return true;
}

/// `between` is called between pieces: time for devices to answer and users to ask.
template <class Between>
void drive(StreamEngine& engine, ConstBuffer input, Between between) {
    if (input.empty()) return engine.closed(std::nullopt);
    std::size_t step = 1 + std::to_integer<std::size_t>(input[0]);
    input = input.subspan(1);
    bool moved = true;
    while (moved && !engine.finished()) {
        moved = send_some(engine, step);
        Buffer place = engine.want();
        auto count = std::min({place.size(), input.size(), step});
        if (count > 0) {
            std::memcpy(place.data(), input.data(), count);
            input = input.subspan(count);
            engine.filled(count);
            moved = true;
        }
        moved |= between();
    }
    engine.closed(std::nullopt);
}

}  // namespace weft::fuzz
