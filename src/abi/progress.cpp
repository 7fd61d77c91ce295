// SPDX-License-Identifier: Apache-2.0
// Who moves the network: the threads of the application, in place, or the helper.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "abi/engine.hpp"
#include "linux/event_loop.hpp"

namespace weft::abi {
namespace {

/// How long the helper stands back before it sees whether others still drive: at first, and at
/// most. So long may a peer wait whose application polled, and then went to do something else.
constexpr std::int64_t first_rest_ns = 50'000, longest_rest_ns = 2'000'000;
/// Who spins looks again within this time, unless it has lost its processor.
constexpr std::int64_t spinner_pause_ns = 3'000;
/// Looks of others since the last one of a thread that waits for news: after so many they spin, and
/// will see everything first.
constexpr std::uint32_t looks_of_a_spinner = 256;
/// And of the helper's sleep: so many are no single poll before something else, they are a habit.
constexpr std::uint32_t looks_of_a_habit = 8;

std::int64_t now_ns() {
    return linux::read_clock().nanoseconds;
}

/// For poll(2), rounded up; -1 where there is no hurry.
int ms_until(std::optional<Instant> when) {
    if (!when) return -1;
    auto left = when->nanoseconds - now_ns();
    if (left <= 0) return 0;
    constexpr std::int64_t longest = std::numeric_limits<int>::max();
    return static_cast<int>(std::min((left + 999'999) / 1'000'000, longest));
}

}  // namespace

void Engine::poll() {
    looks_.fetch_add(1, std::memory_order_relaxed);
    world_->poll();
}

void Engine::push() {
    world_->push();
}

void Engine::will_wait_elsewhere() {
    if (driver_.load()) return;
    if (helper_.load(std::memory_order_relaxed) == Helper::standing_back) wake_.ring();
}

void Engine::begin_wait_elsewhere() {
    waits_elsewhere_.fetch_add(1, std::memory_order_relaxed);
    will_wait_elsewhere();
}

void Engine::mind_the_time() {
    bool helper_watches = helper_.load(std::memory_order_relaxed) == Helper::watching;
    bool driver_sleeps = driver_.load(std::memory_order_relaxed) != nullptr;
    if (!helper_watches && !driver_sleeps) return;
    auto due = world_->due();
    if (due && due->nanoseconds <= now_ns()) {
        // Most often to tell somebody of a completion: cheaper here than to wake a thread for it.
        int kept = errno;
        world_->push();
        errno = kept;
        due = world_->due();
    }
    auto is_sooner = [&](const std::optional<Instant>& wakes) {
        return due && (!wakes || *due < *wakes);
    };
    if (driver_sleeps && is_sooner(driver_wakes_))
        ring_driver();
    else if (helper_watches && is_sooner(helper_wakes_))
        wake_.ring();
}

void Engine::ring_driver() {
    if (!std::exchange(driver_is_rung_, true)) driver_wake_.ring();
}

void Engine::answer_for_driver() {
    if (std::exchange(driver_is_rung_, false)) driver_wake_.answer();
}

bool Engine::is_driven(std::uint32_t looks_seen) const {
    if (driver_.load()) return true;
    auto looks = looks_.load(std::memory_order_relaxed);
    // Who waits for news is not kept waiting for this.
    if (waits_elsewhere_.load(std::memory_order_relaxed) > 0)
        return looks - looks_seen > looks_of_a_spinner;
    // Where the helper has taken the spinner's own processor, waiting for its next look is in vain.
    if (looks - looks_seen > looks_of_a_habit) return true;
    for (auto end = now_ns() + spinner_pause_ns; now_ns() < end;)
        if (looks_.load(std::memory_order_relaxed) != looks) return true;
    return false;
}

void Engine::stand_back() {
    auto rest_ns = first_rest_ns;
    for (bool is_quiet = false;; rest_ns = std::min(2 * rest_ns, longest_rest_ns)) {
        auto looks = looks_.load(std::memory_order_relaxed);
        helper_.store(is_quiet ? Helper::off_duty : Helper::standing_back);
        // A driver that has nothing to do is left alone: it rings when it leaves.
        bool is_free = is_quiet && driver_.load();
        pollfd source{wake_.descriptor(), POLLIN, 0};
        timespec rest{.tv_sec = 0, .tv_nsec = rest_ns};
        ::ppoll(&source, 1, is_free ? nullptr : &rest, nullptr);
        helper_.store(Helper::at_work);
        if (wake_.answer()) return;
        is_quiet = looks_.load(std::memory_order_relaxed) == looks;
        if (is_quiet && !driver_.load()) return;
    }
}

void Engine::help() {
    while (!is_given_up_.load()) {
        auto looks = looks_.load(std::memory_order_relaxed);
        {
            Hold hold;
            world_->turn(Wait::not_at_all);
            helper_wakes_ = world_->due();
            helper_.store(Helper::watching);
        }
        pollfd sources[] = {{wake_.descriptor(), POLLIN, 0}, {world_->descriptor(), POLLIN, 0}};
        ::poll(sources, 2, ms_until(helper_wakes_));
        helper_.store(Helper::at_work);
        if (!wake_.answer() && is_driven(looks)) stand_back();
    }
}

Engine::Waiting::~Waiting() {
    Hold hold;
    if (drives()) resign();
}

void Engine::Waiting::begin_to_drive() {
    if (hurry_ == Hurry::yes || !engine_.driver_.load()) engine_.driver_.store(this);
}

void Engine::Waiting::resign() {
    if (engine_.is_given_up_.load()) return engine_.driver_.store(nullptr);
    engine_.answer_for_driver();  // the next one shall not wake for what was meant for this one
    engine_.driver_.store(nullptr);
    if (engine_.helper_.load() == Helper::off_duty) engine_.wake_.ring();
    if (engine_.waits_elsewhere_.load() > 0) engine_.will_wait_elsewhere();
}

void Engine::Waiting::turn() {
    if (!has_turned_) begin_to_drive();
    bool is_first = !std::exchange(has_turned_, true);
    if (!drives()) return;
    // Where others look at the network all the time, one more is in their way.
    bool is_needed = hurry_ == Hurry::yes || engine_.waits_elsewhere_.load() > 0;
    auto looks = engine_.looks_.load(std::memory_order_relaxed) - looks_seen_;
    if (!is_first && looks > (is_needed ? looks_of_a_spinner : 0)) return resign();
    engine_.answer_for_driver();  // what it was rung for is looked for now
    engine_.world_->turn(Wait::not_at_all);
    due_ = engine_.driver_wakes_ = engine_.world_->due();
    looks_seen_ = engine_.looks_.fetch_add(1, std::memory_order_relaxed) + 1;
}

int Engine::Waiting::sleep(int descriptor, std::optional<Instant> end) {
    bool is_driver = drives() && !engine_.is_given_up_.load();
    auto wake_by = end;
    if (is_driver && due_ && (!wake_by || *due_ < *wake_by)) wake_by = due_;
    pollfd sources[] = {{descriptor, POLLIN, 0},
                        {engine_.world_->descriptor(), POLLIN, 0},
                        {engine_.driver_wake_.descriptor(), POLLIN, 0}};
    auto ready = ::poll(sources, is_driver ? 3 : 1, ms_until(wake_by));
    if (ready < 0) return ready;
    if (sources[0].revents & POLLNVAL) {
        errno = EBADF;
        return -1;
    }
    // The bell is answered in the next turn, and only by who still drives then.
    return sources[0].revents != 0;
}

int Engine::wait_readable(int descriptor, int timeout_ms) {
    std::optional<Instant> end;
    if (timeout_ms >= 0) end = Instant{now_ns()} + std::chrono::milliseconds(timeout_ms);
    Waiting waiting(*this, Waiting::Hurry::no);
    for (;;) {
        {
            Hold hold;
            waiting.turn();
        }
        if (auto ready = waiting.sleep(descriptor, end)) return ready;
        if (end && ms_until(end) == 0) return 0;
    }
}

}  // namespace weft::abi
