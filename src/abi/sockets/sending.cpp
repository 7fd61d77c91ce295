// SPDX-License-Identifier: Apache-2.0
// rsend() and its relatives.
#include <rdma/rsocket.h>

#include "abi/sockets/calls.hpp"
#include "abi/sockets/mapping.hpp"
#include "abi/sockets/table.hpp"
#include "abi/sockets/vectors.hpp"
#include "abi/sockets/waiting.hpp"

namespace weft::abi::sockets {
namespace {

/// One message's worth, with room for it. The bytes are copied without the lock: this part of the
/// ring is the sender's whose turn it is.
void send_some(Socket& socket, std::unique_lock<std::mutex>& lock, VectorWalk& bytes) {
    auto& stream = socket.stream();
    auto& outgoing = stream.outgoing();
    auto count = outgoing.next_transfer(bytes.left());
    auto piece = bytes.piece(count);
    if (piece.size() == count && count <= socket.endpoint->inline_bytes()) {
        stream.note(outgoing.send_inline(piece));
        bytes.skip(count);
        return;
    }
    auto room = outgoing.room(count);
    lock.unlock();
    for (auto part : room) bytes.fill(part);
    lock.lock();
    if (stream.is_connected()) stream.note(outgoing.send(count));
}

/// 0 or an error number; what is left says how far it came.
int send_all(Socket& socket, VectorWalk& bytes, int flags) {
    std::lock_guard turn(socket.sending);
    std::unique_lock lock(socket.lock);
    Patience patience{.may_wait = !socket.settings.is_nonblocking() && !(flags & MSG_DONTWAIT)};
    if (int failed = await_open(socket, lock, patience)) return failed;
    if (int failed = tell_mappings(socket, lock, patience)) return failed;
    auto& stream = socket.stream();
    while (bytes.left() > 0) {
        if (!stream.can_send()) {
            int failed = wait_until(socket, lock, patience,
                                    [&] { return stream.can_send() || !stream.is_writable(); });
            if (failed) return failed;
        }
        if (!stream.is_writable()) return ECONNRESET;
        send_some(socket, lock, bytes);
    }
    return 0;
}

ssize_t send(int number, std::span<const iovec> vectors, int flags) {
    return act_or_fail([&]() -> ssize_t {
        auto socket = Table::find(number);
        if (!socket) return -1;
        VectorWalk bytes(vectors);
        auto all = bytes.left();
        int failed = send_all(*socket, bytes, flags);
        if (failed && bytes.left() == all) return fail_with(failed);
        return static_cast<ssize_t>(all - bytes.left());
    });
}

}  // namespace
}  // namespace weft::abi::sockets

using namespace weft::abi::sockets;

extern "C" {

ssize_t rsend(int number, const void* bytes, size_t count, int flags) {
    iovec vector{const_cast<void*>(bytes), count};
    return weft::abi::sockets::send(number, {&vector, 1}, flags);
}

ssize_t rsendto(int number, const void* bytes, size_t count, int flags, const sockaddr* to,
                socklen_t length) {
    if (to || length) return fail_with(EISCONN);
    return rsend(number, bytes, count, flags);
}

ssize_t rsendmsg(int number, const msghdr* message, int flags) {
    if (message->msg_control && message->msg_controllen) return fail_with(ENOTSUP);
    return weft::abi::sockets::send(number, {message->msg_iov, message->msg_iovlen}, flags);
}

ssize_t rwrite(int number, const void* bytes, size_t count) {
    return rsend(number, bytes, count, 0);
}

ssize_t rwritev(int number, const iovec* vectors, int count) {
    if (count < 0) return fail_with(EINVAL);
    return weft::abi::sockets::send(number, {vectors, static_cast<std::size_t>(count)}, 0);
}

}  // extern "C"
