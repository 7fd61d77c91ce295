// SPDX-License-Identifier: Apache-2.0
// How a socket becomes open: the steps of a connection, each begun when an event tells that the
// one before it has been made.
#pragma once

#include "abi/sockets/socket.hpp"

namespace weft::abi::sockets {

/// With the lock. The first step. Returns 0, or an error number.
int begin_connection(Socket& socket, const sockaddr& address);

/// With the lock and the watch. Takes what events there are and goes as many steps as they allow.
/// False if there were none.
bool advance(Socket& socket);

/// With the watch, of a listener: answers the oldest request, if there is one. Null if nobody
/// came of it.
SocketPointer answer_request(Socket& listener);

/// With the watch. Takes events until one tells of the end. False if there was none yet.
bool has_heard_end(Socket& socket);

}  // namespace weft::abi::sockets
