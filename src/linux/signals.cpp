// SPDX-License-Identifier: Apache-2.0
#include "linux/signals.hpp"

#include <pthread.h>
#include <sys/signalfd.h>

#include <cerrno>

#include "linux/system_error.hpp"

namespace weft::linux {

Signals::Signals(EventLoop& loop) : loop_(loop) {
    sigemptyset(&ours_);
    sigemptyset(&blocked_by_us_);
}

Signals::~Signals() {
    if (!descriptor_.is_open()) return;
    loop_.forget(descriptor_.number(), *this);
    ::pthread_sigmask(SIG_UNBLOCK, &blocked_by_us_, nullptr);
}

Result<void> Signals::on_signal(int number, std::function<void()> task) {
    sigset_t wanted = ours_, one, before;
    sigemptyset(&one);
    if (sigaddset(&one, number) < 0 || sigaddset(&wanted, number) < 0) return system_error(errno);
    int descriptor = ::signalfd(descriptor_.number(), &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
    if (descriptor < 0) return system_error(errno);
    if (!descriptor_.is_open()) {
        descriptor_ = Descriptor(descriptor);
        if (auto watched = loop_.watch(descriptor, EPOLLIN, *this); !watched) {
            descriptor_.close();
            return watched;
        }
    }
    ::pthread_sigmask(SIG_BLOCK, &one, &before);
    if (!sigismember(&before, number)) sigaddset(&blocked_by_us_, number);
    ours_ = wanted;
    tasks_[number] = std::move(task);
    return {};
}

void Signals::ready(std::uint32_t) {
    signalfd_siginfo signal{};
    while (::read(descriptor_.number(), &signal, sizeof signal) == sizeof signal) {
        auto task = tasks_.find(static_cast<int>(signal.ssi_signo));
        if (task == tasks_.end()) continue;
        auto keep = task->second;  // it may replace itself
        keep();
    }
}

}  // namespace weft::linux
