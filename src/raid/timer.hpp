// SPDX-License-Identifier: Apache-2.0
// Something to be done a while after it was asked for, by an engine that learns the time only when
// it is told: the while begins with the first tick after the asking.
#pragma once

#include <optional>

#include "weft/instant.hpp"

namespace weft::raid {

class Timer {
public:
    /// If it is not running already.
    void ask(Duration span) {
        if (asked_) return;
        asked_ = true;
        span_ = span;
        at_.reset();
    }
    void stop() { asked_ = false; }
    bool asked() const { return asked_; }

    std::optional<Instant> deadline() const {
        if (!asked_) return std::nullopt;
        return at_.value_or(Instant{});
    }
    /// True once, when its time has come.
    bool passed(Instant now) {
        if (!asked_) return false;
        if (!at_) at_ = now + span_;
        if (now < *at_) return false;
        asked_ = false;
        return true;
    }

private:
    bool asked_ = false;
    Duration span_{};
    std::optional<Instant> at_;
};

}  // namespace weft::raid
