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

void refresh(Socket& socket) {
    if (socket.is_opening()) {
        // Where another thread has the watch, it will take the steps.
        std::unique_lock watch(socket.watch, std::try_to_lock);
        if (watch) advance(socket);
    }
    if (socket.is_open()) socket.endpoint->digest();
}

NewsSource prepare_to_wait(Socket& socket) {
    if (!socket.is_open()) return {socket.number(), false};
    return {socket.endpoint->descriptor(), socket.endpoint->arm()};
}

void take_news(Socket& socket) {
    if (socket.is_opening())
        advance(socket);
    else if (socket.is_open())
        socket.endpoint->disarm();
    ++socket.changes;
    for (auto* bell : socket.pollers) bell->ring();
}

int wait_for_news(Socket& socket, std::unique_lock<std::mutex>& lock, const Deadline& deadline) {
    auto source = prepare_to_wait(socket);
    if (source.look_again) return 0;
    auto seen = socket.changes;
    lock.unlock();
    int outcome = 1;
    {
        std::lock_guard watch(socket.watch);
        lock.lock();
        bool is_stale = socket.changes != seen;
        lock.unlock();
        if (!is_stale) outcome = wait_readable(source.descriptor, ms_until(deadline));
        int failed = outcome < 0 ? errno : 0;
        lock.lock();
        if (outcome > 0 && !is_stale) take_news(socket);
        if (failed) return failed;
    }
    return outcome == 0 ? ETIMEDOUT : 0;
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
