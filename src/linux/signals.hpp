// SPDX-License-Identifier: Apache-2.0
// Signals as ordinary events: blocked for the thread that asks (and those it starts later), read
// from a descriptor, and handled between other events instead of in the middle of one.
#pragma once

#include <csignal>
#include <functional>
#include <map>

#include "linux/event_loop.hpp"

namespace weft::linux {

class Signals final : public DescriptorHandler {
public:
    explicit Signals(EventLoop& loop);
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    /// Replaces an earlier task for the same signal.
    Result<void> on_signal(int number, std::function<void()> task);

    void ready(std::uint32_t events) override;

private:
    EventLoop& loop_;
    Descriptor descriptor_;
    sigset_t ours_{};
    sigset_t blocked_by_us_{};  ///< and to be let through again at the end
    std::map<int, std::function<void()>> tasks_;
};

}  // namespace weft::linux
