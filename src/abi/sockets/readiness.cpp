// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/readiness.hpp"

namespace weft::abi::sockets {
namespace {

constexpr short in = POLLIN | POLLRDNORM;
constexpr short out = POLLOUT | POLLWRNORM;

short events_of_stream(Stream& stream) {
    int events = 0;
    if (!stream.incoming().is_empty() || !stream.is_readable()) events |= in;
    // A write that will fail does not wait either.
    if (stream.can_send() || !stream.is_writable()) events |= out;
    if (stream.is_broken())
        events |= POLLERR;
    else if (!stream.is_connected() && stream.incoming().is_empty())
        events |= POLLHUP;  // and not before the last bytes: programs give up at the sight of it
    return static_cast<short>(events);
}

short events_of(Socket& socket) {
    switch (socket.stage) {
        case Stage::listening:
            return socket.backlog->sockets.empty() ? 0 : in;
        case Stage::open:
            return events_of_stream(socket.stream());
        case Stage::failed:
            return in | out | POLLERR;
        case Stage::fresh:
        case Stage::bound:
            return out | POLLHUP;  // as the kernel says of a socket that goes nowhere
        case Stage::closed:
            return POLLNVAL;
        default:
            return 0;
    }
}

}  // namespace

short ready_events(Socket& socket, short asked) {
    return static_cast<short>(events_of(socket) & (asked | POLLERR | POLLHUP | POLLNVAL));
}

}  // namespace weft::abi::sockets
