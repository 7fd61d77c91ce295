// SPDX-License-Identifier: Apache-2.0
// rrecv() and its relatives.
#include <rdma/rsocket.h>

#include "abi/sockets/calls.hpp"
#include "abi/sockets/table.hpp"
#include "abi/sockets/vectors.hpp"
#include "abi/sockets/waiting.hpp"

namespace weft::abi::sockets {
namespace {

/// What is there and fits. The bytes are copied without the lock: they are the receiver's whose
/// turn it is, until they are said to be read.
void take_some(Socket& socket, std::unique_lock<std::mutex>& lock, VectorWalk& into, bool keep) {
    auto& stream = socket.stream();
    auto pieces = stream.incoming().front(into.left());
    lock.unlock();
    for (auto piece : pieces) into.take(piece);
    lock.lock();
    if (keep) return;
    stream.incoming().consume(pieces[0].size() + pieces[1].size());
    stream.grant();
}

/// 0 or an error number; what is left says how far it came. Nothing at all is the stream's end.
int receive_some(Socket& socket, VectorWalk& into, int flags) {
    std::lock_guard turn(socket.receiving);
    std::unique_lock lock(socket.lock);
    Patience patience{.may_wait = !socket.settings.is_nonblocking() && !(flags & MSG_DONTWAIT)};
    if (int failed = await_open(socket, lock, patience)) return failed;
    auto& stream = socket.stream();
    bool keep = (flags & MSG_PEEK) != 0;
    do {
        if (stream.incoming().is_empty()) {
            int failed = wait_until(socket, lock, patience, [&] {
                return !stream.incoming().is_empty() || !stream.is_readable();
            });
            if (failed) return failed;
        }
        if (stream.incoming().is_empty()) return 0;
        take_some(socket, lock, into, keep);
    } while (into.left() > 0 && (flags & MSG_WAITALL) && !keep);
    return 0;
}

ssize_t receive(int number, std::span<const iovec> vectors, int flags) {
    return act_or_fail([&]() -> ssize_t {
        auto socket = Table::find(number);
        if (!socket) return -1;
        VectorWalk into(vectors);
        auto all = into.left();
        if (all == 0) return 0;
        int failed = receive_some(*socket, into, flags);
        if (failed && into.left() == all) return fail_with(failed);
        return static_cast<ssize_t>(all - into.left());
    });
}

}  // namespace
}  // namespace weft::abi::sockets

using namespace weft::abi::sockets;

extern "C" {

ssize_t rrecv(int number, void* bytes, size_t count, int flags) {
    iovec vector{bytes, count};
    return receive(number, {&vector, 1}, flags);
}

ssize_t rrecvfrom(int number, void* bytes, size_t count, int flags, sockaddr* from,
                  socklen_t* length) {
    auto received = rrecv(number, bytes, count, flags);
    if (received > 0 && from && length) rgetpeername(number, from, length);
    return received;
}

ssize_t rrecvmsg(int number, msghdr* message, int flags) {
    if (message->msg_control && message->msg_controllen) return fail_with(ENOTSUP);
    auto received = receive(number, {message->msg_iov, message->msg_iovlen}, flags);
    if (received >= 0) message->msg_flags = 0;
    return received;
}

ssize_t rread(int number, void* bytes, size_t count) {
    return rrecv(number, bytes, count, 0);
}

ssize_t rreadv(int number, const iovec* vectors, int count) {
    if (count < 0) return fail_with(EINVAL);
    return receive(number, {vectors, static_cast<std::size_t>(count)}, 0);
}

}  // extern "C"
