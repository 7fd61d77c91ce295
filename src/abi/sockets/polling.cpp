// SPDX-License-Identifier: Apache-2.0
// rpoll() and rselect(), of sockets and other descriptors together.
//
// Who polls leaves its bell with every socket, so that it wakes also when another thread takes a
// socket's news. Who polls one socket alone takes its watch instead, and moves the network itself.
#include <rdma/rsocket.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "abi/sockets/calls.hpp"
#include "abi/sockets/readiness.hpp"
#include "abi/sockets/table.hpp"
#include "abi/sockets/waiting.hpp"

namespace weft::abi::sockets {
namespace {

/// The application's list, and which of it are sockets.
class PollList {
public:
    explicit PollList(std::span<pollfd> list) : list_(list) {
        for (const auto& one : list) sockets_.push_back(Table::find(one.fd));
    }

    /// How many have something to report.
    int look();
    bool is_one_socket() const { return list_.size() == 1 && sockets_[0]; }
    /// Until one has something to report, or the time is over; the number, or -1 with errno.
    int wait(const Deadline& deadline);
    int wait_for_one(const Deadline& deadline);

private:
    /// What to sleep on. Empty if something can be reported at once.
    std::vector<pollfd> prepare(Bell& bell, std::vector<Visit>& visits, Deadline& look_again_at);
    void take_news_of(std::span<const pollfd> sources);

    std::span<pollfd> list_;
    std::vector<SocketPointer> sockets_;
};

int PollList::look() {
    int count = 0;
    for (std::size_t i = 0; i < list_.size(); ++i) {
        auto& one = list_[i];
        one.revents = 0;
        if (auto& socket = sockets_[i]) {
            std::unique_lock lock(socket->lock);
            refresh(*socket, lock);
            one.revents = ready_events(*socket, one.events);
        } else if (Table::has(one.fd)) {
            one.revents = POLLERR;  // the parent's
        } else if (one.fd >= 0 && ::poll(&one, 1, 0) < 0) {
            return -1;
        }
        if (one.revents != 0) ++count;
    }
    return count;
}

std::vector<pollfd> PollList::prepare(Bell& bell, std::vector<Visit>& visits,
                                      Deadline& look_again_at) {
    std::vector<pollfd> sources{{bell.descriptor(), POLLIN, 0}};
    for (std::size_t i = 0; i < list_.size(); ++i) {
        auto& socket = sockets_[i];
        if (!socket) {
            sources.push_back({list_[i].fd, list_[i].events, 0});
            continue;
        }
        std::unique_lock lock(socket->lock);
        visits.emplace_back(socket, bell);
        NewsSource source;
        do {
            refresh(*socket, lock);
            if (ready_events(*socket, list_[i].events) != 0) return {};
            source = socket->backlog ? NewsSource{socket->backlog->bell.descriptor()}
                                     : prepare_to_wait(*socket);
        } while (source.look_again);
        sources.push_back({source.descriptor, POLLIN, 0});
        look_again_at = sooner(look_again_at, source.look_again_at);
    }
    return sources;
}

void PollList::take_news_of(std::span<const pollfd> sources) {
    for (std::size_t i = 0; i < list_.size(); ++i) {
        auto& socket = sockets_[i];
        if (!socket || socket->backlog || sources[i].revents == 0) continue;
        // Where another thread has the watch, it takes the news and rings.
        std::unique_lock lock(socket->lock);
        if (WatchTurn turn(*socket, lock); turn) turn.take_news();
    }
}

int PollList::wait(const Deadline& deadline) {
    auto& bell = own_bell();
    for (;;) {
        bell.answer();
        std::vector<Visit> visits;
        visits.reserve(list_.size());
        auto wake_by = sooner(deadline, look_at(bell));
        auto sources = prepare(bell, visits, wake_by);
        int woken = 1;
        if (!sources.empty()) {
            woken = ::poll(sources.data(), sources.size(), ms_until(wake_by));
            if (woken < 0) return woken;
            if (woken > 0) take_news_of(std::span(sources).subspan(1));
        }
        int count = look();
        if (count != 0 || (woken == 0 && is_over(deadline))) return count;
    }
}

int PollList::wait_for_one(const Deadline& deadline) {
    auto& socket = *sockets_[0];
    for (;;) {
        int woken = 1;
        {
            std::unique_lock lock(socket.lock);
            if (socket.backlog) break;
            WatchTurn turn(socket, lock);
            if (!turn) break;
            // What another thread has taken in by now, it has not rung for.
            bool is_ready = ready_events(socket, list_[0].events) != 0;
            auto source = is_ready ? NewsSource{-1, true} : prepare_to_wait(socket);
            if (!source.look_again) {
                lock.unlock();
                woken = turn.sleep(source.descriptor, sooner(deadline, source.look_again_at));
                if (woken < 0) return woken;
                lock.lock();
                turn.take_news();
            }
        }
        int count = look();
        if (count != 0 || (woken == 0 && is_over(deadline))) return count;
    }
    return wait(deadline);
}

int poll(std::span<pollfd> list, int timeout_ms) {
    auto deadline = deadline_in(timeout_ms);
    PollList polled(list);
    int count = polled.look();
    if (count != 0 || timeout_ms == 0) return count;
    auto sleep_at = Clock::now() + std::chrono::microseconds(polling_us());
    while (Clock::now() < sleep_at) {
        count = polled.look();
        if (count != 0) return count;
    }
    return polled.is_one_socket() ? polled.wait_for_one(deadline) : polled.wait(deadline);
}

/// One of the three sets of select(2), which may be missing.
class DescriptorSet {
public:
    explicit DescriptorSet(fd_set* set) : set_(set) {}
    bool has(int number) const { return set_ && FD_ISSET(number, set_); }
    void clear() {
        if (set_) FD_ZERO(set_);
    }
    /// 1 if it is asked for and holds.
    int put(const pollfd& one, short asked, int holds) {
        if (!set_ || !(one.events & asked) || !(one.revents & holds)) return 0;
        FD_SET(one.fd, set_);
        return 1;
    }

private:
    fd_set* set_;
};

int timeout_ms_of(const timeval* timeout) {
    if (!timeout) return -1;
    auto ms = timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000;
    return static_cast<int>(std::min<decltype(ms)>(ms, std::numeric_limits<int>::max()));
}

}  // namespace
}  // namespace weft::abi::sockets

using namespace weft::abi::sockets;

extern "C" {

int rpoll(pollfd* list, nfds_t count, int timeout_ms) {
    return act_or_fail([&]() -> int {
        return weft::abi::sockets::poll({list, count}, timeout_ms);
    });
}

int rselect(int count, fd_set* reads, fd_set* writes, fd_set* exceptions, timeval* timeout) {
    return act_or_fail([&]() -> int {
        DescriptorSet readable(reads), writable(writes), exceptional(exceptions);
        std::vector<pollfd> list;
        for (int number = 0; number < count; ++number) {
            int asked = (readable.has(number) ? POLLIN : 0) | (writable.has(number) ? POLLOUT : 0) |
                        (exceptional.has(number) ? POLLPRI : 0);
            if (asked != 0) list.push_back({number, static_cast<short>(asked), 0});
        }
        int found = rpoll(list.data(), list.size(), timeout_ms_of(timeout));
        if (found < 0) return found;
        for (const auto& one : list)
            if (one.revents & POLLNVAL) return fail_with(EBADF);
        readable.clear();
        writable.clear();
        exceptional.clear();
        int bits = 0;
        for (const auto& one : list)
            bits += readable.put(one, POLLIN, POLLIN | POLLHUP | POLLERR) +
                    writable.put(one, POLLOUT, POLLOUT | POLLERR) +
                    exceptional.put(one, POLLPRI, POLLPRI);
        return bits;
    });
}

}  // extern "C"
