// SPDX-License-Identifier: Apache-2.0
#include "linux/thread_file_io.hpp"

#include <pthread.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/check.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {

Result<std::unique_ptr<ThreadFileIo>> ThreadFileIo::make(EventLoop& loop, unsigned threads) {
    Descriptor bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!bell.is_open()) return system_error(errno);
    std::unique_ptr<ThreadFileIo> io(new ThreadFileIo(loop, std::move(bell), threads));
    if (auto watched = loop.watch(io->bell_.number(), EPOLLIN, *io); !watched)
        return watched.error();
    loop.at_turn_end(*io);
    return io;
}

ThreadFileIo::ThreadFileIo(EventLoop& loop, Descriptor bell, unsigned threads)
    : loop_(loop), bell_(std::move(bell)), wanted_threads_(threads) {}

ThreadFileIo::~ThreadFileIo() {
    WEFT_CHECK(in_flight_ == 0 && gathered_.empty());
    loop_.not_at_turn_end(*this);
    loop_.forget(bell_.number(), *this);
    {
        std::lock_guard hold(lock_);
        leaving_ = true;
    }
    work_came_.notify_all();
    for (auto& thread : threads_) thread.join();
}

void ThreadFileIo::start_threads() {
    // Signals are the loop's business; a thread of ours must never be the one to take them.
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        while (threads_.size() < wanted_threads_) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
        // The user may have no more threads. Fewer do the same work; none is seen to by the caller.
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool ThreadFileIo::turn_ends() {
    if (gathered_.empty()) return false;
    if (threads_.empty()) start_threads();
    if (threads_.empty()) return work_alone();
    auto count = gathered_.size();
    in_flight_ += count;
    {
        std::lock_guard hold(lock_);
        to_do_.append(gathered_);
    }
    count < threads_.size() ? work_came_.notify_one() : work_came_.notify_all();
    for (std::size_t i = 1; i < count && count < threads_.size(); ++i) work_came_.notify_one();
    return false;
}

/// Slow, since the loop waits for the disk, but better than not to serve at all.
bool ThreadFileIo::work_alone() {
    IntrusiveQueue<FileOperation> now;
    now.append(gathered_);
    while (!now.empty()) {
        auto& operation = now.pop_front();
        operation.finished(perform(operation));
    }
    return true;
}

void ThreadFileIo::ready(std::uint32_t) {
    std::uint64_t rings = 0;
    [[maybe_unused]] auto got = ::read(bell_.number(), &rings, sizeof rings);
    IntrusiveQueue<FileOperation> done;
    {
        std::lock_guard hold(lock_);
        done.append(done_);
    }
    while (!done.empty()) {
        auto& operation = done.pop_front();
        --in_flight_;
        operation.finished(operation.result);
    }
}

void ThreadFileIo::work() {
    std::unique_lock hold(lock_);
    for (;;) {
        work_came_.wait(hold, [this] { return leaving_ || !to_do_.empty(); });
        if (to_do_.empty()) return;
        auto& operation = to_do_.pop_front();
        hold.unlock();
        operation.result = perform(operation);
        hold.lock();
        bool ring = done_.empty();
        done_.push_back(operation);
        if (!ring) continue;
        std::uint64_t one = 1;
        [[maybe_unused]] auto put = ::write(bell_.number(), &one, sizeof one);
    }
}

}  // namespace weft::linux
