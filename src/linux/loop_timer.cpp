// SPDX-License-Identifier: Apache-2.0
#include "linux/loop_timer.hpp"

#include "linux/event_loop.hpp"

namespace weft::linux {
namespace {

class Entry final : public TimerEntry, public LateFreed {
public:
    Entry(EventLoop& loop, std::function<void()> task)
        : TimerEntry(loop.timers()), task_(std::move(task)) {}
    void expired() override { task_(); }

private:
    std::function<void()> task_;
};

class Handle final : public weft::Timer {
public:
    Handle(EventLoop& loop, std::function<void()> task)
        : loop_(loop), entry_(std::make_unique<Entry>(loop, std::move(task))) {}
    ~Handle() override {
        entry_->cancel_timer();
        loop_.free_later(std::move(entry_));
    }
    void set(Instant when) override { entry_->set_timer(when); }
    void cancel() override { entry_->cancel_timer(); }

private:
    EventLoop& loop_;
    std::unique_ptr<Entry> entry_;
};

}  // namespace

std::unique_ptr<weft::Timer> make_timer(EventLoop& loop, std::function<void()> task) {
    return std::make_unique<Handle>(loop, std::move(task));
}

}  // namespace weft::linux
