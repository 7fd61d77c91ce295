// SPDX-License-Identifier: Apache-2.0
// Notices that nothing has moved for too long, at no cost while things move: it looks only every
// so often, and what has not moved between two looks is stuck. So it takes one to two times
// the given span to notice, and the deadline does not change with every message.
#pragma once

#include <optional>

#include "weft/instant.hpp"

namespace weft::iwarp {

class Patience {
public:
    explicit Patience(Duration span) : span_(span) {}

    /// Something is waited for. Free to call again.
    void begin() { watching_ = true; }

    /// In the past at first, or after long: that look tells us the time.
    std::optional<Instant> deadline() const {
        return watching_ ? std::optional(next_look_) : std::nullopt;
    }

    /// Whether what is waited for is stuck. `progress` is any number that changes as things move.
    bool is_over(Instant now, bool waiting, std::uint64_t progress) {
        if (!watching_ || now < next_look_) return false;
        bool stuck = waiting && looked_ && progress == seen_;
        looked_ = watching_ = waiting;
        seen_ = progress;
        next_look_ = now + span_;  // no earlier, even if nothing is waited for until then
        return stuck;
    }

private:
    Duration span_;
    Instant next_look_;
    std::uint64_t seen_ = 0;
    bool watching_ = false;
    bool looked_ = false;
};

}  // namespace weft::iwarp
