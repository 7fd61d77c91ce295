// SPDX-License-Identifier: Apache-2.0
// A world that has time and nothing else, for tests below the layer of the simulator. Time stands
// still until the test moves it.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "weft/world.hpp"

namespace weft::test {

class ManualWorld final : public World {
public:
    /// Runs what was deferred, then moves time on and fires what falls due on the way, in order.
    void advance(Duration span) {
        Instant end = now_ + span;
        for (; !deferred_.empty(); deferred_.pop_front()) deferred_.front()();
        while (auto* timer = earliest(end)) {
            now_ = std::max(now_, *timer->due);
            timer->due.reset();
            timer->task();
        }
        now_ = end;
    }
    bool anything_set() const {
        return std::ranges::any_of(timers_, [](auto* timer) { return timer->due.has_value(); });
    }

    Instant now() const override { return now_; }
    Date date() const override { return Date(now_ - Instant{}); }
    std::uint64_t random() override { return ++drawn_; }
    void defer(std::function<void()> task) override { deferred_.push_back(std::move(task)); }
    std::unique_ptr<Timer> make_timer(std::function<void()> task) override {
        return std::make_unique<ManualTimer>(*this, std::move(task));
    }
    Result<std::unique_ptr<Listener>> listen(const Address&, Accepted) override {
        return Error{.code = Code::unsupported};
    }
    Result<std::unique_ptr<Stream>> connect(const Address&, StreamEngine&,
                                            const Address&) override {
        return Error{.code = Code::unsupported};
    }
    Result<std::vector<Address>> resolve(const Address&) override {
        return Error{.code = Code::unsupported};
    }
    Result<std::unique_ptr<BlockDevice>> open_disk(const DiskOptions&) override {
        return Error{.code = Code::unsupported};
    }

private:
    struct ManualTimer final : Timer {
        ManualTimer(ManualWorld& in, std::function<void()> what)
            : world(in), task(std::move(what)) {
            world.timers_.push_back(this);
        }
        ~ManualTimer() override { std::erase(world.timers_, this); }
        void set(Instant when) override { due = when; }
        void cancel() override { due.reset(); }

        ManualWorld& world;
        std::function<void()> task;
        std::optional<Instant> due;
    };

    ManualTimer* earliest(Instant end) {
        ManualTimer* best = nullptr;
        for (auto* timer : timers_)
            if (timer->due && *timer->due <= end && (!best || *timer->due < *best->due))
                best = timer;
        return best;
    }

    Instant now_;
    std::uint64_t drawn_ = 0;
    std::deque<std::function<void()>> deferred_;
    std::vector<ManualTimer*> timers_;
};

}  // namespace weft::test
