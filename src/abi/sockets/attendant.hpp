// SPDX-License-Identifier: Apache-2.0
// Answers those who ask listeners for a connection, whatever the application does meanwhile: to a
// client, connect() is over before the server has called accept(). A thread, which is started when
// first there is a listener.
#pragma once

#include "abi/sockets/socket.hpp"

namespace weft::abi::sockets {

class Attendant {
public:
    /// 0, or an error number. To be asked for a listener twice is to be asked once.
    static int serve(SocketPointer listener);
    static void leave(const Socket& listener);
    /// A listener has room again in its backlog.
    static void look_again();
    /// In a child of fork(), which does not have the thread.
    static void forget();
};

}  // namespace weft::abi::sockets
