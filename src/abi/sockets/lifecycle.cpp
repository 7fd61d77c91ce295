// SPDX-License-Identifier: Apache-2.0
// rsocket() to rclose(): the calls that make, connect and end sockets.
#include <netinet/in.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <new>

#include "abi/sockets/addresses.hpp"
#include "abi/sockets/attendant.hpp"
#include "abi/sockets/calls.hpp"
#include "abi/sockets/opening.hpp"
#include "abi/sockets/table.hpp"
#include "abi/sockets/waiting.hpp"

namespace weft::abi::sockets {
namespace {

/// The last thing heard from a connection that was made shall not be our silence.
void await_end(Socket& socket) {
    std::lock_guard watch(socket.watch);
    auto deadline = deadline_in(limits::farewell_ms);
    while (!has_heard_end(socket)) {
        int ready = wait_readable(socket.number(), ms_until(deadline));
        if (ready == 0 || (ready < 0 && errno != EINTR)) return;
    }
}

/// Signals are no reason to leave a connection half ended.
template <std::predicate Ready>
int wait_through_signals(Socket& socket, std::unique_lock<std::mutex>& lock, Ready ready) {
    for (;;)
        if (int failed = wait_until(socket, lock, {}, ready); failed != EINTR) return failed;
}

/// With the lock. Tells the peer, and waits until what was sent before has gone.
int shut(Socket& socket, std::unique_lock<std::mutex>& lock, Shutdown how) {
    auto& stream = socket.stream();
    socket.endpoint->digest();
    int failed = 0;
    if (auto farewell = stream.shut(how)) {
        failed = wait_through_signals(
            socket, lock, [&] { return stream.can_say_control() || !stream.is_connected(); });
        if (failed) return failed;
        stream.say(*farewell);
    }
    if (how != Shutdown::reading)
        failed = wait_through_signals(socket, lock, [&] { return stream.is_idle(); });
    if (!stream.is_connected()) rdma_disconnect(socket.id);
    return failed;
}

void close_listener(Socket& listener) {
    Attendant::leave(listener);
    std::lock_guard watch(listener.watch);
    std::deque<SocketPointer> never_taken;
    {
        std::lock_guard locked(listener.lock);
        listener.stage = Stage::closed;
        never_taken.swap(listener.backlog->sockets);
        listener.backlog->bell.ring();  // for who waits in raccept()
    }
    // The attendant may hold the socket a moment longer; the port is free now.
    rdma_destroy_id(std::exchange(listener.id, nullptr));
}

void close_connection(Socket& socket) {
    std::unique_lock lock(socket.lock);
    if (socket.stage == Stage::accepting)
        await_open(socket, lock, {.may_wait = true, .deadline = deadline_in(limits::farewell_ms)});
    if (!socket.is_open()) return;
    shut(socket, lock, Shutdown::both);
    lock.unlock();
    await_end(socket);
}

/// 0, or an error number; what has failed can be tried again.
int make_backlog(Socket& socket, int size) {
    std::lock_guard locked(socket.lock);
    if (socket.stage == Stage::listening) return 0;
    if (socket.stage > Stage::bound) return EINVAL;
    if (socket.backlog) return 0;
    auto made =
        std::make_unique<Backlog>(static_cast<std::size_t>(std::clamp(size, 1, limits::backlog)));
    if (made->bell.descriptor() < 0 || rdma_listen(socket.id, size) != 0) return errno;
    socket.backlog = std::move(made);
    return 0;
}

/// It listens when there is somebody to answer.
int begin_listening(const SocketPointer& socket, int backlog) {
    if (int failed = make_backlog(*socket, backlog)) return failed;
    if (int failed = Attendant::serve(socket)) return failed;
    std::lock_guard locked(socket->lock);
    if (socket->stage <= Stage::bound) socket->stage = Stage::listening;
    return 0;
}

/// The oldest of the connections made; null with errno.
SocketPointer take_accepted(Socket& listener) {
    for (;;) {
        std::unique_lock lock(listener.lock);
        if (listener.stage == Stage::closed) listener.backlog->bell.ring();  // for the next one
        if (listener.stage != Stage::listening) return errno = EINVAL, nullptr;
        auto& backlog = *listener.backlog;
        if (backlog.bell.answer() && !backlog.sockets.empty()) {
            bool was_full = backlog.is_full();
            auto taken = std::move(backlog.sockets.front());
            backlog.sockets.pop_front();
            if (was_full) Attendant::look_again();
            return taken;
        }
        if (listener.settings.is_nonblocking()) return errno = EAGAIN, nullptr;
        int bell = backlog.bell.descriptor();
        lock.unlock();
        if (wait_readable(bell, -1) < 0) return nullptr;
    }
}

}  // namespace
}  // namespace weft::abi::sockets

using namespace weft::abi::sockets;

extern "C" {

int rsocket(int domain, int type, int protocol) {
    return act_or_fail([&]() -> int {
        if (domain != AF_INET && domain != AF_INET6) return fail_with(EAFNOSUPPORT);
        // Datagrams need queue pairs without a connection, which iWARP does not have.
        if (type != SOCK_STREAM) return fail_with(ENOTSUP);
        if (protocol != 0 && protocol != IPPROTO_TCP) return fail_with(EPROTONOSUPPORT);
        auto socket = Socket::make(domain);
        if (!socket) return -1;
        int number = socket->number();
        Table::add(std::move(socket));
        return number;
    });
}

int rbind(int number, const sockaddr* address, socklen_t length) {
    return act_or_fail([&]() -> int {
        auto socket = Table::find(number);
        if (!socket) return -1;
        if (!is_whole(address, length)) return fail_with(EINVAL);
        std::lock_guard locked(socket->lock);
        if (socket->stage != Stage::fresh) return fail_with(EINVAL);
        if (rdma_bind_addr(socket->id, const_cast<sockaddr*>(address)) != 0) return -1;
        socket->stage = Stage::bound;
        return 0;
    });
}

int rlisten(int number, int backlog) {
    return act_or_fail([&]() -> int {
        auto socket = Table::find(number);
        if (!socket) return -1;
        int failed = begin_listening(socket, backlog);
        return failed ? fail_with(failed) : 0;
    });
}

int raccept(int number, sockaddr* address, socklen_t* length) {
    return act_or_fail([&]() -> int {
        auto listener = Table::find(number);
        if (!listener) return -1;
        auto socket = take_accepted(*listener);
        if (!socket) return -1;
        if (address && length) copy_address(*rdma_get_peer_addr(socket->id), address, length);
        int accepted = socket->number();
        Table::add(std::move(socket));
        return accepted;
    });
}

int rconnect(int number, const sockaddr* address, socklen_t length) {
    return act_or_fail([&]() -> int {
        auto socket = Table::find(number);
        if (!socket) return -1;
        std::unique_lock lock(socket->lock);
        bool is_new = socket->stage == Stage::fresh || socket->stage == Stage::bound;
        if (socket->is_open()) return fail_with(EISCONN);
        if (is_new) {
            if (!is_whole(address, length)) return fail_with(EINVAL);
            if (int failed = begin_connection(*socket, *address)) return fail_with(failed);
        } else if (!socket->is_opening() && socket->stage != Stage::failed) {
            return fail_with(EINVAL);
        }
        bool may_wait = !socket->settings.is_nonblocking();
        int failed = await_open(*socket, lock, {.may_wait = may_wait});
        if (failed == EAGAIN && !may_wait) failed = is_new ? EINPROGRESS : EALREADY;
        if (failed && !socket->is_opening()) socket->error = 0;  // it is told now
        return failed ? fail_with(failed) : 0;
    });
}

int rshutdown(int number, int how) {
    return act_or_fail([&]() -> int {
        auto socket = Table::find(number);
        if (!socket) return -1;
        if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return fail_with(EINVAL);
        std::unique_lock lock(socket->lock);
        if (int failed = await_open(*socket, lock, {})) return fail_with(failed);
        int failed = shut(*socket, lock,
                          how == SHUT_RD   ? Shutdown::reading
                          : how == SHUT_WR ? Shutdown::writing
                                           : Shutdown::both);
        return failed ? fail_with(failed) : 0;
    });
}

int rclose(int number) {
    return act_or_fail([&]() -> int {
        auto socket = Table::remove(number);
        if (!socket) return errno == 0 ? 0 : -1;
        if (socket->backlog)
            close_listener(*socket);
        else
            close_connection(*socket);
        return 0;
    });
}

}  // extern "C"
