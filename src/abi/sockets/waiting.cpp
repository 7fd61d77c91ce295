// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/waiting.hpp"

#include <algorithm>
#include <limits>

#include "abi/engine.hpp"
#include "abi/sockets/opening.hpp"

namespace weft::abi::sockets {

Deadline deadline_in(int timeout_ms) {
    if (timeout_ms < 0) return std::nullopt;
    return Clock::now() + std::chrono::milliseconds(timeout_ms);
}

Deadline sooner(const Deadline& one, const Deadline& other) {
    return one && other ? std::min(*one, *other) : one ? one : other;
}

bool is_over(const Deadline& deadline) {
    return deadline && Clock::now() >= *deadline;
}

int ms_until(const Deadline& deadline) {
    if (!deadline) return -1;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
    return static_cast<int>(std::clamp<decltype(left)>(left, 0, std::numeric_limits<int>::max()));
}

int wait_readable(int descriptor, int timeout_ms) {
    Engine* engine = nullptr;
    {
        Hold hold;
        if (!Engine::start()) return -1;
        engine = &Engine::get();
    }
    return engine->wait_readable(descriptor, timeout_ms);
}

void refresh(Socket& socket, std::unique_lock<std::mutex>& lock) {
    if (socket.is_opening()) {
        // Where another thread has the watch, it will take the steps.
        WatchTurn turn(socket, lock);
        if (turn) turn.take_news();
    }
    if (!socket.is_open()) return;
    bool was_broken = socket.stream().is_broken();
    socket.endpoint->digest();
    if (!was_broken && socket.stream().is_broken()) socket.error = EIO;
    if (!socket.reminder.is_pending()) return;
    if (socket.stream().has_heard_anything()) socket.reminder.end();
    if (socket.reminder.is_due()) socket.stream().remind();
}

NewsSource prepare_to_wait(Socket& socket) {
    if (!socket.is_open()) return {socket.number(), false};
    return {socket.endpoint->descriptor(), socket.endpoint->arm(), socket.reminder.at()};
}

WatchTurn::WatchTurn(Socket& socket, std::unique_lock<std::mutex>& lock)
    : socket_(socket), lock_(lock), has_it_(socket.watch.try_lock()) {}

WatchTurn::~WatchTurn() {
    if (!has_it_) return;
    if (!lock_.owns_lock()) lock_.lock();
    // With the lock held no one can find the watch taken after it was rung for.
    if (rings_)
        for (auto* bell : socket_.pollers) bell->ring();
    socket_.watch.unlock();
}

int WatchTurn::sleep(int descriptor, const Deadline& deadline) {
    rings_ = true;  // also if this thread is cancelled
    return wait_readable(descriptor, ms_until(deadline));
}

void WatchTurn::take_news() {
    if (socket_.is_opening())
        rings_ |= advance(socket_);
    else if (socket_.is_open())
        rings_ |= socket_.endpoint->disarm();
}

Visit::~Visit() {
    if (!socket_) return;
    std::lock_guard locked(socket_->lock);
    auto& pollers = socket_->pollers;
    pollers.erase(std::ranges::find(pollers, bell_));
}

Bell& own_bell() {
    // What a thread had before a fork() is the parent's as well.
    thread_local unsigned generation = 0;
    thread_local std::optional<Bell> bell;
    bool is_good = bell && bell->descriptor() >= 0 && generation == current_generation();
    if (bell && generation < Engine::first_with_descriptors()) bell->forget();
    if (!is_good) bell.emplace(Bell::Kind::once);
    generation = current_generation();
    return *bell;
}

Deadline look_at(const Bell& bell) {
    return bell.descriptor() < 0 ? deadline_in(limits::deaf_ms) : std::nullopt;
}

namespace {

/// Another thread has the watch.
int wait_for_ring(Socket& socket, std::unique_lock<std::mutex>& lock, const Deadline& deadline) {
    /// The lock is taken again at the end, whatever ends the wait, and after the visit.
    struct Relock {
        std::unique_lock<std::mutex>& lock;
        ~Relock() {
            if (!lock.owns_lock()) lock.lock();
        }
    } relock{lock};
    auto& bell = own_bell();
    bell.answer();
    Visit visit(socket.shared_from_this(), bell);
    lock.unlock();
    return wait_readable(bell.descriptor(), ms_until(sooner(deadline, look_at(bell))));
}

}  // namespace

int wait_for_news(Socket& socket, std::unique_lock<std::mutex>& lock, const Deadline& deadline) {
    auto source = prepare_to_wait(socket);
    if (source.look_again) return 0;
    int outcome = 0;
    if (WatchTurn turn(socket, lock); turn) {
        lock.unlock();
        outcome = turn.sleep(source.descriptor, sooner(deadline, source.look_again_at));
        int failed = errno;
        lock.lock();
        if (outcome > 0) turn.take_news();
        errno = failed;
    } else {
        outcome = wait_for_ring(socket, lock, sooner(deadline, source.look_again_at));
    }
    if (outcome < 0) return errno;
    return outcome == 0 && is_over(deadline) ? ETIMEDOUT : 0;
}

int await_open(Socket& socket, std::unique_lock<std::mutex>& lock, const Patience& patience) {
    if (socket.is_opening()) {
        int failed = wait_until(socket, lock, patience, [&] { return !socket.is_opening(); });
        if (failed) return failed;
    }
    if (socket.is_open()) return 0;
    return socket.stage == Stage::failed ? socket.error ? socket.error : ENOTCONN : ENOTCONN;
}

}  // namespace weft::abi::sockets
