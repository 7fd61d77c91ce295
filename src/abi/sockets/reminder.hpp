// SPDX-License-Identifier: Apache-2.0
// When to speak again to a peer that has said nothing yet.
//
// Linux' siw does not notice what arrives between its reply to a connection's request and its first
// look for more; whatever comes next wakes it. A client whose first words all fell into that moment
// would wait for ever, and so would the server.
#pragma once

#include <chrono>
#include <optional>

namespace weft::abi::sockets {

class Reminder {
public:
    using Clock = std::chrono::steady_clock;

    void begin() {
        left_ = 5;
        pause_ = std::chrono::milliseconds(50);
        at_ = Clock::now() + pause_;
    }
    void end() { left_ = 0; }
    bool is_pending() const { return left_ > 0; }
    std::optional<Clock::time_point> at() const {
        return is_pending() ? std::optional(at_) : std::nullopt;
    }
    /// True when it is time, and then waits longer for the next.
    bool is_due() {
        if (!is_pending() || Clock::now() < at_) return false;
        --left_;
        pause_ *= 2;
        at_ += pause_;
        return true;
    }

private:
    int left_ = 0;
    std::chrono::milliseconds pause_{};
    Clock::time_point at_{};
};

}  // namespace weft::abi::sockets
