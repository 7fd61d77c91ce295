// SPDX-License-Identifier: Apache-2.0
// How calls wait for a socket's news, and take them in.
#pragma once

#include <cerrno>
#include <chrono>
#include <concepts>
#include <mutex>
#include <optional>

#include "abi/sockets/socket.hpp"

namespace weft::abi::sockets {

using Clock = std::chrono::steady_clock;
/// None: as long as it takes.
using Deadline = std::optional<Clock::time_point>;

Deadline deadline_in(int timeout_ms);
Deadline sooner(const Deadline& one, const Deadline& other);
bool is_over(const Deadline& deadline);
/// For poll(2), rounded up; -1 where there is no hurry.
int ms_until(const Deadline& deadline);

/// As poll(2) of one descriptor that is to be readable, and moves the network meanwhile.
int wait_readable(int descriptor, int timeout_ms);

/// With the lock. Takes in what news there are.
void refresh(Socket& socket, std::unique_lock<std::mutex>& lock);

/// With the lock, of an opening or open socket. Where its news can be waited for, after another
/// refresh() if `look_again` says so, and again at a time if there is one.
struct NewsSource {
    int descriptor = -1;
    bool look_again = false;
    Deadline look_again_at{};
};
NewsSource prepare_to_wait(Socket& socket);

/// Has a socket's watch, if nobody else has, for as long as it lives. To be made with the lock, and
/// when it goes the lock is held again. Those who wait because they did not get the watch are rung
/// for: they look whether there are news for them, and who of them watches next.
class WatchTurn {
public:
    WatchTurn(Socket& socket, std::unique_lock<std::mutex>& lock);
    ~WatchTurn();
    WatchTurn(const WatchTurn&) = delete;
    WatchTurn& operator=(const WatchTurn&) = delete;

    explicit operator bool() const { return has_it_; }
    /// With the lock given up. As poll(2) of the descriptor, and moves the network meanwhile.
    int sleep(int descriptor, const Deadline& deadline);
    /// With the lock. To be called when the descriptor of the socket's news may be readable.
    void take_news();

private:
    Socket& socket_;
    std::unique_lock<std::mutex>& lock_;
    bool has_it_;
    bool rings_ = false;
};

/// In the list of those a socket rings for; made with the lock.
class Visit {
public:
    Visit(SocketPointer socket, Bell& bell) : socket_(std::move(socket)), bell_(&bell) {
        socket_->pollers.push_back(bell_);
    }
    Visit(Visit&& other) noexcept = default;
    Visit& operator=(Visit&&) = delete;
    /// Without the lock.
    ~Visit();

private:
    SocketPointer socket_;
    Bell* bell_;
};

/// Each thread has one. Where there are no descriptors left it makes no sound, and its owner looks
/// at this time whether there are news.
Bell& own_bell();
Deadline look_at(const Bell& bell);

/// With the lock, which is given up while it waits. 0 when there may be news; else an error number,
/// ETIMEDOUT among them.
int wait_for_news(Socket& socket, std::unique_lock<std::mutex>& lock, const Deadline& deadline);

/// How long a call may wait for what it needs.
struct Patience {
    bool may_wait = true;
    Deadline deadline{};
};

/// With the lock, which is given up while it waits. Until `ready` holds: 0, or an error number, of
/// which EAGAIN says that the call may not wait.
template <std::predicate Ready>
int wait_until(Socket& socket, std::unique_lock<std::mutex>& lock, const Patience& patience,
               Ready ready) {
    refresh(socket, lock);
    if (ready()) return 0;
    if (!patience.may_wait) return EAGAIN;
    // Most answers come soon, and sleeping takes longer than looking.
    auto sleep_at = Clock::now() + std::chrono::microseconds(polling_us());
    while (Clock::now() < sleep_at) {
        lock.unlock();
        lock.lock();
        refresh(socket, lock);
        if (ready()) return 0;
    }
    for (;;) {
        int failed = wait_for_news(socket, lock, patience.deadline);
        refresh(socket, lock);
        if (ready()) return 0;
        if (failed) return failed;
    }
}

/// With the lock. 0 once the socket is open, or an error number: what a call that needs a
/// connection does first.
int await_open(Socket& socket, std::unique_lock<std::mutex>& lock, const Patience& patience);

}  // namespace weft::abi::sockets
