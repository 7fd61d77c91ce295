// SPDX-License-Identifier: Apache-2.0
#include "linux/event_loop.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <limits>

#include "base/check.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {

Result<std::unique_ptr<EventLoop>> EventLoop::make() {
    Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll.is_open()) return system_error(errno);
    return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll)));
}

Instant read_clock() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return {static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec};
}

void EventLoop::run() {
    run_until([] { return false; });
}

void EventLoop::run_until(const std::function<bool()>& done) {
    enter();
    stopped_ = false;
    end_turn();  // what was begun before the loop ran must not wait for a first event
    while (!stopped_ && !done()) {
        look(Wait::until_something_happens);
        WEFT_CHECK(!lost_);  // in a program whose descriptors are all our own
        run_tasks();
        end_turn();
    }
    leave();
}

void EventLoop::turn(Wait wait) {
    if (lost_) return;
    enter();
    unfinished_ |= call_turn_ends();  // as above
    look(wait);
    run_tasks();
    end_turn();
    leave();
}

void EventLoop::poll() {
    if (lost_) return;
    enter();
    run_tasks();
    ready_.serve_all();  // questions leave before answers are sought
    std::size_t tried = 0;
    if (tries_since_look_ < limits::tries_between_looks) tried = hot_.try_all();
    if (tried == 0)
        look(Wait::not_at_all);
    else
        tries_since_look_ += tried;
    end_turn();
    leave();
}

void EventLoop::push() {
    if (lost_) return;
    enter();
    run_tasks();
    ready_.serve_all();
    run_tasks();  // what was sent may have ended something, and somebody is to be told
    free_dropped();
    leave();
}

std::optional<Instant> EventLoop::due() const {
    if (unfinished_ || !ready_.empty() || !tasks_.empty()) return Instant{};
    return timers_.next();
}

void EventLoop::look_whether_lost() {
    if (::fcntl(epoll_.number(), F_GETFD) < 0) lost_ = true;
}

void EventLoop::abandon() {
    for (int descriptor : watched_) ::close(descriptor);
    watched_.clear();
    epoll_.close();
}

void EventLoop::enter() {
    WEFT_CHECK(!running_);  // a loop inside a loop would free what the outer one is using
    running_ = true;
    now_.reset();
}

void EventLoop::look(Wait wait) {
    int most_ms = wait == Wait::not_at_all ? 0 : wait_ms();
    int count = ::epoll_wait(epoll_.number(), reported_.data(), limits::events_per_turn, most_ms);
    if (count < 0 && errno != EINTR) lost_ = true;
    tries_since_look_ = 0;
    now_ = read_clock();
    dispatch(count);
    timers_.fire(*now_);
}

int EventLoop::wait_ms() const {
    auto next = due();
    if (!next) return -1;
    // Rounded up: waking before the time would only mean waiting again.
    auto left_ns = (*next - read_clock()).count();
    if (left_ns <= 0) return 0;
    auto left_ms = (left_ns + 999'999) / 1'000'000;
    constexpr int longest = std::numeric_limits<int>::max();
    return left_ms > longest ? longest : static_cast<int>(left_ms);
}

void EventLoop::dispatch(int count) {
    reported_count_ = count;
    for (int i = 0; i < reported_count_; ++i) {
        auto* handler = static_cast<DescriptorHandler*>(reported_[i].data.ptr);
        if (handler) handler->ready(reported_[i].events);
    }
    reported_count_ = 0;
}

void EventLoop::run_tasks() {
    tasks_of_this_turn_.swap(tasks_);
    for (auto& task : tasks_of_this_turn_) task();
    tasks_of_this_turn_.clear();
}

void EventLoop::end_turn() {
    unfinished_ = true;
    for (int round = 0; round < limits::rounds_per_turn && unfinished_; ++round) {
        ready_.serve_all();
        unfinished_ = call_turn_ends();
    }
    free_dropped();
}

bool EventLoop::call_turn_ends() {
    bool any = false;
    for (auto* hook : turn_ends_) any |= hook->turn_ends();
    return any;
}

void EventLoop::free_dropped() {
    // Freeing may run destructors of ours that drop something else.
    while (!dropped_.empty()) {
        auto now_freed = std::move(dropped_);
        dropped_.clear();
    }
}

void EventLoop::drop_tasks() {
    WEFT_CHECK(!running_);
    // A task's end may drop a stream, and a stream's end may defer a task.
    while (!tasks_.empty() || !dropped_.empty()) {
        auto now_forgotten = std::move(tasks_);
        tasks_.clear();
        now_forgotten.clear();
        free_dropped();
    }
}

Result<void> EventLoop::watch(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &handler;
    if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, descriptor, &event) < 0)
        return system_error(errno);
    watched_.insert(descriptor);
    return {};
}

void EventLoop::change(int descriptor, std::uint32_t events, DescriptorHandler& handler) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &handler;
    if (::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, descriptor, &event) < 0) lost_ = true;
}

void EventLoop::forget(int descriptor, DescriptorHandler& handler) {
    ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, descriptor, nullptr);
    watched_.erase(descriptor);
    for (int i = 0; i < reported_count_; ++i)
        if (reported_[i].data.ptr == &handler) reported_[i].data.ptr = nullptr;
}

void EventLoop::defer(std::function<void()> task) {
    WEFT_CHECK(tasks_.size() < limits::deferred_tasks);
    tasks_.push_back(std::move(task));
}

}  // namespace weft::linux
