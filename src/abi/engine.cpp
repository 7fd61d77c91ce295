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
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>

#include "abi/limits.hpp"
#include "abi/memory_guard.hpp"
#include "base/check.hpp"

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

void ring(int bell) {
    std::uint64_t one = 1;
    [[maybe_unused]] auto written = ::write(bell, &one, sizeof one);
}

/// Whether it had been rung.
bool silence(int bell) {
    std::uint64_t count = 0;
    return ::read(bell, &count, sizeof count) > 0;
}

std::string_view variable(const char* name) {
    const char* value = ::secure_getenv(name);
    return value ? value : "";
}

/// A wish from the environment. What is none of `choices` is said on stderr, once, and taken for
/// the first of them: a misspelt wish should not pass unnoticed, nor end somebody's program.
std::string_view chosen(const char* name, std::initializer_list<std::string_view> choices) {
    auto value = variable(name);
    if (value.empty() || std::ranges::find(choices, value) != choices.end()) return value;
    static std::set<std::string_view> complained;
    if (complained.insert(name).second)
        std::fprintf(stderr, "weft: %s: there is no \"%s\", so it is \"%s\"\n", name,
                     std::string(value).c_str(), std::string(*choices.begin()).c_str());
    return *choices.begin();
}

}  // namespace

verbs::ConnectOptions connect_options() {
    auto mode = chosen("WEFT_MODE", {"peer-to-peer", "client-server", "revision-1"});
    verbs::ConnectOptions options;
    options.checksums = chosen("WEFT_CRC", {"on", "off"}) != "off";
    options.place_before_check = chosen("WEFT_PLACEMENT", {"verified", "eager"}) == "eager";
    options.plain_startup = mode == "revision-1";
    options.peer_to_peer = mode != "client-server" && !options.plain_startup;
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

SignalsLeftToOthers::SignalsLeftToOthers() {
    sigset_t theirs;
    ::sigfillset(&theirs);
    for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&theirs, own);
    ::pthread_sigmask(SIG_SETMASK, &theirs, &before_);
}

SignalsLeftToOthers::~SignalsLeftToOthers() {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
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
    if (driver_wake_ >= 0) ::close(driver_wake_);
}

void Engine::abandon() {
    world_->abandon();
    ::close(wake_);
    ::close(driver_wake_);
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
    install_memory_guard();
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    driver_wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0 || driver_wake_ < 0) return false;

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

    SignalsLeftToOthers left;
    pthread_t helper;
    auto made = ::pthread_create(
        &helper, nullptr,
        [](void* engine) -> void* {
            static_cast<Engine*>(engine)->help();
            return nullptr;
        },
        this);
    if (made != 0) {
        errno = made;
        return false;
    }
    ::pthread_setname_np(helper, "weft-helper");
    ::pthread_detach(helper);
    return true;
}

void Engine::poll() {
    looks_.fetch_add(1, std::memory_order_relaxed);
    world_->poll();
}

void Engine::push() {
    world_->push();
}

void Engine::will_wait_elsewhere() {
    if (driver_.load()) return;
    if (helper_.load(std::memory_order_relaxed) == Helper::standing_back) ring(wake_);
}

void Engine::begin_wait_elsewhere() {
    waits_elsewhere_.fetch_add(1, std::memory_order_relaxed);
    will_wait_elsewhere();
}

void Engine::mind_the_time() {
    bool helper_watches = helper_.load(std::memory_order_relaxed) == Helper::watching;
    bool driver_sleeps = driver_sleeps_.load(std::memory_order_relaxed);
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
        ring(driver_wake_);
    else if (helper_watches && is_sooner(helper_wakes_))
        ring(wake_);
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
        pollfd source{wake_, POLLIN, 0};
        timespec rest{.tv_sec = 0, .tv_nsec = rest_ns};
        ::ppoll(&source, 1, is_free ? nullptr : &rest, nullptr);
        helper_.store(Helper::at_work);
        if (silence(wake_)) return;
        is_quiet = looks_.load(std::memory_order_relaxed) == looks;
        if (is_quiet && !driver_.load()) return;
    }
}

void Engine::help() {
    for (;;) {
        auto looks = looks_.load(std::memory_order_relaxed);
        {
            Hold hold;
            world_->turn(Wait::not_at_all);
            helper_wakes_ = world_->due();
            helper_.store(Helper::watching);
        }
        pollfd sources[] = {{wake_, POLLIN, 0}, {world_->descriptor(), POLLIN, 0}};
        ::poll(sources, 2, ms_until(helper_wakes_));
        helper_.store(Helper::at_work);
        if (!silence(wake_) && is_driven(looks)) stand_back();
    }
}

Engine::Waiting::Waiting(Engine& engine, Hurry hurry) : engine_(engine), hurry_(hurry) {
    const Waiting* nobody = nullptr;
    if (hurry == Hurry::yes)
        engine_.driver_.store(this);
    else
        engine_.driver_.compare_exchange_strong(nobody, this);
}

Engine::Waiting::~Waiting() {
    resign();
}

void Engine::Waiting::resign() {
    const Waiting* ours = this;
    if (!engine_.driver_.compare_exchange_strong(ours, nullptr)) return;
    engine_.driver_sleeps_.store(false, std::memory_order_relaxed);
    if (engine_.helper_.load() == Helper::off_duty) ring(engine_.wake_);
    if (engine_.waits_elsewhere_.load() > 0) engine_.will_wait_elsewhere();
}

void Engine::Waiting::turn() {
    if (!drives()) return;
    // Where others look at the network all the time, one more is in their way.
    bool is_needed = hurry_ == Hurry::yes || engine_.waits_elsewhere_.load() > 0;
    auto looks = engine_.looks_.load(std::memory_order_relaxed) - looks_seen_;
    if (has_turned_ && looks > (is_needed ? looks_of_a_spinner : 0)) return resign();
    engine_.world_->turn(Wait::not_at_all);
    due_ = engine_.driver_wakes_ = engine_.world_->due();
    has_turned_ = true;
    engine_.driver_sleeps_.store(true, std::memory_order_relaxed);
    looks_seen_ = engine_.looks_.fetch_add(1, std::memory_order_relaxed) + 1;
}

int Engine::Waiting::sleep(int descriptor, std::optional<Instant> end) {
    bool is_driver = drives();
    auto wake_by = end;
    if (is_driver && due_ && (!wake_by || *due_ < *wake_by)) wake_by = due_;
    pollfd sources[] = {{descriptor, POLLIN, 0},
                        {engine_.world_->descriptor(), POLLIN, 0},
                        {engine_.driver_wake_, POLLIN, 0}};
    auto ready = ::poll(sources, is_driver ? 3 : 1, ms_until(wake_by));
    if (ready < 0) return ready;
    if (is_driver && sources[2].revents != 0) silence(engine_.driver_wake_);
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
