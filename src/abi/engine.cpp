// SPDX-License-Identifier: Apache-2.0
#include "abi/engine.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "abi/limits.hpp"
#include "abi/memory_guard.hpp"
#include "base/check.hpp"
#include "linux/event_loop.hpp"

namespace weft::abi {
namespace {

pthread_mutex_t the_lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
Engine* the_engine = nullptr;
Engine* the_lost_engine = nullptr;  ///< never freed: threads may be in it
std::atomic<unsigned> the_generation = 0;
std::atomic<unsigned> the_first_with_descriptors = 0;

/// Never destroyed: the helper may still have something to tell while the process ends.
std::function<void(const verbs::AsyncEvent&)>& event_listener() {
    static auto* listener = new std::function<void(const verbs::AsyncEvent&)>;
    return *listener;
}

/// False if it cannot be had in time. Looks now and then: of the functions that wait for it the
/// thread sanitizer does not know the one that heeds no change of the wall clock.
bool lock_within(Duration patience) {
    auto give_up = linux::read_clock() + patience;
    while (::pthread_mutex_trylock(&the_lock) != 0) {
        if (linux::read_clock() >= give_up) return false;
        ::poll(nullptr, 0, 1);
    }
    return true;
}

/// At the end of the process. A socket closed by the kernel answers what its peer sends then with a
/// reset, and with that the last of what we have sent may be thrown away.
///
/// Not by a Hold: a program may call exit() in the handler of a signal that came amid one, and who
/// has the lock then is this thread itself.
void let_last_words_arrive() {
    auto give_up = linux::read_clock() + limits::last_words;
    for (;;) {
        pollfd source{-1, POLLIN, 0};
        if (!lock_within(limits::lock_at_exit)) return;
        bool has_some = the_engine && the_engine->world().lingering() > 0;
        if (has_some) {
            the_engine->world().turn(Wait::not_at_all);
            source.fd = the_engine->world().descriptor();
        }
        ::pthread_mutex_unlock(&the_lock);
        if (!has_some || linux::read_clock() >= give_up) return;
        ::poll(&source, 1, 10);
    }
}

void forget_parents_engine() {
    if (the_engine) the_engine->abandon();
    the_engine = nullptr;  // never freed: its threads and locks exist in the parent alone
    ++the_generation;
}

}  // namespace

Hold::Hold() {
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
    ::pthread_mutex_lock(&the_lock);
}

Hold::~Hold() {
    Engine::give_up_if_lost();
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

void Engine::give_up_if_lost() {
    if (!the_engine || !the_engine->world_->is_lost()) return;
    the_engine->is_given_up_.store(true);
    the_lost_engine = std::exchange(the_engine, nullptr);
    the_first_with_descriptors = the_generation + 1;
    ++the_generation;
}

Engine& Engine::get() {
    WEFT_CHECK(the_engine || the_lost_engine);
    return the_engine ? *the_engine : *the_lost_engine;
}

bool Engine::start() {
    if (the_engine) the_engine->world_->look_whether_lost();
    give_up_if_lost();
    if (the_engine) return true;
    std::unique_ptr<Engine> made(new Engine);
    if (!made->begin()) return false;
    the_engine = made.release();
    return true;
}

unsigned Engine::generation() {
    return the_generation;
}

unsigned Engine::first_with_descriptors() {
    return the_first_with_descriptors;
}

void Engine::on_event(std::function<void(const verbs::AsyncEvent&)> heard) {
    event_listener() = std::move(heard);
}

void Engine::abandon() {
    world_->abandon();
    wake_.close();
    driver_wake_.close();
}

bool Engine::begin() {
    if (wake_.descriptor() < 0 || driver_wake_.descriptor() < 0) return false;
    auto world = open_linux_world({.files = FileEngine::none, .shares_ports = true});
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

}  // namespace weft::abi
