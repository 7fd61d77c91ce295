// SPDX-License-Identifier: Apache-2.0
#include "abi/engine.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "abi/limits.hpp"
#include "base/check.hpp"

namespace weft::abi {
namespace {

/// How long the helper lets others drive before it looks again. As long may a peer wait whose
/// application polled, and then went to do something else.
constexpr int stand_back_ms = 2;

pthread_mutex_t the_lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
Engine* the_engine = nullptr;
unsigned the_generation = 0;

std::function<void(const verbs::AsyncEvent&)>& event_listener() {
    static std::function<void(const verbs::AsyncEvent&)> listener;
    return listener;
}

std::int64_t now_ns() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// For poll(2), rounded up; -1 where there is no hurry.
int ms_until(std::optional<Instant> when) {
    if (!when) return -1;
    auto left = when->nanoseconds - now_ns();
    if (left <= 0) return 0;
    constexpr std::int64_t longest = std::numeric_limits<int>::max();
    return static_cast<int>(std::min((left + 999'999) / 1'000'000, longest));
}

/// At the end of the process. A socket closed by the kernel answers what its peer sends then with a
/// reset, and with that the last of what we have sent may be thrown away.
void let_last_words_arrive() {
    constexpr std::int64_t patience_ns = 1'500'000'000;
    auto give_up = now_ns() + patience_ns;
    for (;;) {
        pollfd source{-1, POLLIN, 0};
        {
            Hold hold;
            if (!the_engine || the_engine->world().lingering() == 0) return;
            the_engine->world().turn(Wait::not_at_all);
            source.fd = the_engine->world().descriptor();
        }
        if (now_ns() >= give_up) return;
        ::poll(&source, 1, 10);
    }
}

void forget_parents_engine() {
    if (the_engine) the_engine->abandon();
    the_engine = nullptr;  // never freed: its threads and locks exist in the parent alone
    ++the_generation;
}

std::string_view variable(const char* name) {
    const char* value = ::secure_getenv(name);
    return value ? value : "";
}

}  // namespace

verbs::ConnectOptions connect_options() {
    verbs::ConnectOptions options;
    options.checksums = variable("WEFT_CRC") != "off";
    options.place_before_check = variable("WEFT_PLACEMENT") == "eager";
    options.plain_startup = variable("WEFT_MODE") == "revision-1";
    options.peer_to_peer = variable("WEFT_MODE") != "client-server" && !options.plain_startup;
    return options;
}

Hold::Hold() {
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
    ::pthread_mutex_lock(&the_lock);
}

Hold::~Hold() {
    if (the_engine) the_engine->mind_the_time();
    ::pthread_mutex_unlock(&the_lock);
    ::pthread_setcancelstate(cancel_state_, nullptr);
}

Engine& Engine::get() {
    WEFT_CHECK(the_engine);
    return *the_engine;
}

bool Engine::start() {
    if (the_engine) return true;
    std::unique_ptr<Engine> made(new Engine);
    if (!made->begin()) return false;
    the_engine = made.release();
    return true;
}

unsigned Engine::generation() {
    return the_generation;
}

void Engine::on_event(std::function<void(const verbs::AsyncEvent&)> heard) {
    event_listener() = std::move(heard);
}

Engine::~Engine() {
    if (wake_ >= 0) ::close(wake_);
}

void Engine::abandon() {
    world_->abandon();
    ::close(wake_);
}

bool Engine::begin() {
    auto world = open_linux_world({.files = FileEngine::none});
    if (!world) {
        errno = world.error().detail ? static_cast<int>(world.error().detail) : ENOMEM;
        return false;
    }
    world_ = std::move(*world);
    auto tell = [](const verbs::AsyncEvent& event) {
        if (event_listener()) event_listener()(event);
    };
    device_ = verbs::make_device(
        *world_, {.on_event = tell, .regions_max = limits::regions + limits::windows});
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) return false;

    static pthread_once_t once = PTHREAD_ONCE_INIT;
    ::pthread_once(&once, [] {
        std::atexit(let_last_words_arrive);
        ::pthread_atfork([] { ::pthread_mutex_lock(&the_lock); },
                         [] { ::pthread_mutex_unlock(&the_lock); },
                         [] {
                             forget_parents_engine();
                             the_lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
                         });
    });

    // The application's signals are for its own threads.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t helper;
    auto made = ::pthread_create(
        &helper, nullptr,
        [](void* engine) -> void* {
            static_cast<Engine*>(engine)->help();
            return nullptr;
        },
        this);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (made != 0) {
        errno = made;
        return false;
    }
    ::pthread_setname_np(helper, "weft-helper");
    ::pthread_detach(helper);
    return true;
}

void Engine::poll() {
    drives_.fetch_add(1, std::memory_order_relaxed);
    world_->poll();
}

void Engine::push() {
    drives_.fetch_add(1, std::memory_order_relaxed);
    world_->push();
}

void Engine::will_wait_elsewhere() {
    if (helper_.load(std::memory_order_relaxed) == Helper::standing_back) wake_helper();
}

void Engine::wake_helper() {
    std::uint64_t one = 1;
    [[maybe_unused]] auto written = ::write(wake_, &one, sizeof one);
}

void Engine::mind_the_time() {
    if (helper_.load(std::memory_order_relaxed) != Helper::watching) return;
    auto due = world_->due();
    if (due && (!helper_wakes_ || *due < *helper_wakes_)) wake_helper();
}

void Engine::help() {
    std::uint64_t count = 0;
    auto seen = drives_.load();
    for (;;) {
        pollfd sources[] = {{wake_, POLLIN, 0}, {world_->descriptor(), POLLIN, 0}};
        if (someone_waits_.load() || drives_.load(std::memory_order_relaxed) != seen) {
            seen = drives_.load(std::memory_order_relaxed);
            helper_.store(Helper::standing_back);
            auto woken = ::poll(sources, 1, stand_back_ms);
            helper_.store(Helper::at_work);
            if (woken <= 0) continue;
            seen = drives_.load(std::memory_order_relaxed);
        }
        while (::read(wake_, &count, sizeof count) > 0) {
        }
        {
            Hold hold;
            world_->turn(Wait::not_at_all);
            helper_wakes_ = world_->due();
            helper_.store(Helper::watching);
        }
        ::poll(sources, 2, ms_until(helper_wakes_));
        helper_.store(Helper::at_work);
    }
}

int Engine::wait_readable(int descriptor, int timeout_ms) {
    /// Also when the thread is cancelled in its sleep.
    struct Watch {
        explicit Watch(std::atomic<bool>& taken) : flag(taken), is_ours(!taken.exchange(true)) {}
        ~Watch() {
            if (is_ours) flag.store(false);
        }
        std::atomic<bool>& flag;
        bool is_ours;
    } watch(someone_waits_);

    std::optional<Instant> end;
    if (timeout_ms >= 0) end = Instant{now_ns()} + std::chrono::milliseconds(timeout_ms);
    for (;;) {
        auto wake_by = end;
        if (watch.is_ours) {
            Hold hold;
            drives_.fetch_add(1, std::memory_order_relaxed);
            world_->turn(Wait::not_at_all);
            auto due = world_->due();
            if (due && (!wake_by || *due < *wake_by)) wake_by = due;
        }
        pollfd sources[] = {{descriptor, POLLIN, 0}, {world_->descriptor(), POLLIN, 0}};
        auto ready = ::poll(sources, watch.is_ours ? 2 : 1, ms_until(wake_by));
        if (ready < 0) return ready;
        if (sources[0].revents != 0) return 1;
        if (end && ms_until(end) == 0) return 0;
    }
}

}  // namespace weft::abi
