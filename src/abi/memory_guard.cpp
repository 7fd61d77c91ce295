// SPDX-License-Identifier: Apache-2.0
#include "abi/memory_guard.hpp"

#include <pthread.h>

#include <csetjmp>
#include <csignal>

#include "base/foreign_memory.hpp"

namespace weft::abi {
namespace {

/// Where to go on if the access that is under way on this thread fails. A signal handler may not
/// allocate, so it must be there before the first signal.
[[gnu::tls_model("initial-exec")]] thread_local sigjmp_buf* way_out = nullptr;

struct sigaction segv_before, bus_before;

/// The two signals, let through for as long as it lives where the thread keeps them out: a signal
/// of an access that is kept out ends the process, whatever handler there is. Most threads do not,
/// and to ask costs as much as to do it: so it is asked at a thread's first access, and now and
/// then, in case it has thought better of it.
class LetThrough {
public:
    LetThrough() : is_needed_(!way_out && are_kept_out()) {
        if (!is_needed_) return;
        sigset_t both;
        ::sigemptyset(&both);
        ::sigaddset(&both, SIGSEGV);
        ::sigaddset(&both, SIGBUS);
        ::pthread_sigmask(SIG_UNBLOCK, &both, &before_);
    }
    ~LetThrough() {
        if (is_needed_) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    LetThrough(const LetThrough&) = delete;
    LetThrough& operator=(const LetThrough&) = delete;

private:
    static constexpr unsigned accesses_between_questions = 64;

    static bool are_kept_out() {
        if (accesses_until_asked-- > 0) return keeps_out;
        accesses_until_asked = accesses_between_questions;
        sigset_t now;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
        return keeps_out = ::sigismember(&now, SIGSEGV) == 1 || ::sigismember(&now, SIGBUS) == 1;
    }

    [[gnu::tls_model("initial-exec")]] static thread_local unsigned accesses_until_asked;
    [[gnu::tls_model("initial-exec")]] static thread_local bool keeps_out;
    const bool is_needed_;  ///< not inside another, which has let them through already
    sigset_t before_;
};

thread_local unsigned LetThrough::accesses_until_asked = 0;
thread_local bool LetThrough::keeps_out = false;

void pass_on(int number, siginfo_t* info, void* context) {
    const auto& before = number == SIGSEGV ? segv_before : bus_before;
    if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(number, info, context);
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        return before.sa_handler(number);
    // Made by an access, it comes again as soon as we return, and now ends the program as it
    // should. Sent by somebody it does not, and may be ignored.
    bool was_sent = info->si_code <= 0;
    if (was_sent && before.sa_handler == SIG_IGN) return;
    std::signal(number, SIG_DFL);
    if (was_sent) std::raise(number);
}

void caught(int number, siginfo_t* info, void* context) {
    if (way_out && info->si_code > 0) siglongjmp(*way_out, 1);
    pass_on(number, info, context);
}

/// Not before itself, or it would pass a signal on to itself for ever.
void put_before(int number, const struct sigaction& ours, struct sigaction& theirs) {
    struct sigaction now {};
    ::sigaction(number, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == caught) return;
    theirs = now;
    ::sigaction(number, &ours, nullptr);
}

bool guard(void (*touch)(void*), void* with) {
    LetThrough signals;
    sigjmp_buf here;
    auto* outer = way_out;
    if (sigsetjmp(here, 0) != 0) {
        way_out = outer;
        return false;
    }
    way_out = &here;
    touch(with);
    way_out = outer;
    return true;
}

}  // namespace

void install_memory_guard() {
    struct sigaction action {};
    action.sa_sigaction = caught;
    // Not deferred: the handler is left by a jump, and the signal must not stay blocked.
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    put_before(SIGSEGV, action, segv_before);
    put_before(SIGBUS, action, bus_before);
    foreign_memory_guard = guard;
}

}  // namespace weft::abi
