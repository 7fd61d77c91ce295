// SPDX-License-Identifier: Apache-2.0
// Two engines joined back to back: bytes go both ways in pieces of random size, through buffers
// that are sometimes full.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "support/golden.hpp"
#include "weft/world.hpp"

namespace weft::test {

class EnginePipe {
public:
    EnginePipe(StreamEngine& one, StreamEngine& other, std::uint32_t seed)
        : ends_{{{&one, {}}, {&other, {}}}}, chance_(seed), capacity_(1 + chance_() % 20'000) {}

    /// Moves bytes until none can move, at most `steps` pieces.
    void run(std::size_t steps) {
        while (steps-- > 0 && move_one()) {
        }
    }
    bool closed() const { return ends_[0].closed && ends_[1].closed; }
    /// The network fails: both ends hear of it.
    void cut() {
        for (auto& end : ends_) close(end, Error{.code = Code::io_failed});
    }

private:
    struct End {
        StreamEngine* engine;
        Bytes inbound;
        bool closed = false;
    };

    bool move_one() {
        std::array<unsigned, 6> actions{0, 1, 2, 3, 4, 5};
        std::ranges::shuffle(actions, chance_);
        return std::ranges::any_of(actions, [&](unsigned action) {
            End& end = ends_[action % 2];
            End& peer = ends_[1 - action % 2];
            if (end.closed) return false;
            if (action < 2) return receive(end);
            if (action < 4) return send(end, peer);
            return hang_up(end, peer);
        });
    }
    std::size_t some(std::size_t count) {
        return 1 + chance_() % std::min<std::size_t>(count, chance_() % 3 == 0 ? count : 50);
    }
    bool receive(End& end) {
        if (end.inbound.empty()) return false;
        Buffer place = end.engine->want();
        if (place.empty()) return false;
        auto count = some(std::min(place.size(), end.inbound.size()));
        std::memcpy(place.data(), end.inbound.data(), count);
        end.inbound.erase(end.inbound.begin(),
                          end.inbound.begin() + static_cast<std::ptrdiff_t>(count));
        end.engine->filled(count);
        return true;
    }
    bool send(End& end, End& peer) {
        std::array<ConstBuffer, 3> pieces;
        if (end.engine->pending(pieces) == 0) return false;
        auto room = capacity_ - std::min(capacity_, peer.inbound.size());
        if (room == 0 && !peer.closed) return false;
        auto count = some(peer.closed ? pieces[0].size() : std::min(room, pieces[0].size()));
        auto part = pieces[0].first(count);
        if (!peer.closed) peer.inbound.insert(peer.inbound.end(), part.begin(), part.end());
        end.engine->sent(count);
        return true;
    }
    bool hang_up(End& end, End& peer) {
        std::array<ConstBuffer, 3> pieces;
        bool done = end.engine->finished() && end.engine->pending(pieces) == 0;
        bool left_alone = peer.closed && end.inbound.empty();
        if (!done && !left_alone) return false;
        close(end, std::nullopt);
        return true;
    }
    static void close(End& end, std::optional<Error> why) {
        if (end.closed) return;
        end.closed = true;
        end.engine->closed(why);
    }

    std::array<End, 2> ends_;
    std::mt19937 chance_;
    std::size_t capacity_;
};

}  // namespace weft::test
