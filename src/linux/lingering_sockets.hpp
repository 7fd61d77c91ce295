// SPDX-License-Identifier: Apache-2.0
// Sockets whose engine has finished while the peer may still be sending. Closed at once, such a
// socket answers the peer's next bytes with a reset, which throws away what of our last words the
// peer has not read yet: an error reply would be lost just when it matters.
//
// So our half is shut, what comes is discarded, and the socket is closed when the peer shuts its
// half too. That is a courtesy with bounds: in time and bytes each, and in number, where the one
// that has had most of its time makes room.
#pragma once

#include <deque>
#include <memory>

#include "linux/event_loop.hpp"

namespace weft::linux {

class LingeringSockets {
public:
    /// `trash` is where discarded bytes go, where the kernel insists on putting them somewhere.
    LingeringSockets(EventLoop& loop, std::vector<std::byte>& trash);
    ~LingeringSockets();

    /// Takes over a connected socket that has been given its last bytes.
    void add(Descriptor socket);
    std::size_t size() const { return sockets_.size(); }

private:
    class Socket;
    /// The peer has ended, or the bounds have.
    void remove(Socket& socket);

    EventLoop& loop_;
    std::vector<std::byte>& trash_;
    std::deque<std::unique_ptr<Socket>> sockets_;  ///< oldest first
};

}  // namespace weft::linux
