// SPDX-License-Identifier: Apache-2.0
#include "abi/verbs/event_descriptor.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "abi/engine.hpp"

namespace weft::abi {
namespace {

/// What a thread does to itself, and so not in its sleep. We have handlers of our own for some.
bool is_own_fault(int signal) {
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
           signal == SIGTRAP;
}

/// read(2) goes on after a signal whose handler was set so, and poll(2) never does. Which signal it
/// was is not known; but if all handlers are of one kind, so was that.
bool signals_restart() {
    for (int number = 1; number < NSIG; ++number) {
        if (is_own_fault(number)) continue;
        struct sigaction action {};
        if (::sigaction(number, nullptr, &action) < 0) continue;
        bool handled = action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
        if (handled && !(action.sa_flags & SA_RESTART)) return false;
    }
    return true;
}

}  // namespace

int make_event_descriptor() {
    return ::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
}

void count_event(int descriptor) {
    std::uint64_t one = 1;
    [[maybe_unused]] auto written = ::write(descriptor, &one, sizeof one);
}

void uncount_event(int descriptor) {
    std::uint64_t one = 0;
    [[maybe_unused]] auto taken = ::read(descriptor, &one, sizeof one);
}

bool is_nonblocking(int descriptor) {
    return ::fcntl(descriptor, F_GETFL) & O_NONBLOCK;
}

bool goes_on_after_signal() {
    int why = errno;
    bool goes_on = why == EINTR && signals_restart();
    errno = why;
    return goes_on;
}

bool wait_for_event(int descriptor) {
    Engine* engine = nullptr;
    {
        Hold hold;
        engine = &Engine::get();
    }
    for (;;) {
        if (engine->wait_readable(descriptor) >= 0) return true;
        if (!goes_on_after_signal()) return false;
    }
}

}  // namespace weft::abi
