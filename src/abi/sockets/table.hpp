// SPDX-License-Identifier: Apache-2.0
// The sockets of the process, by their numbers.
#pragma once

#include "abi/sockets/socket.hpp"

namespace weft::abi::sockets {

class Table {
public:
    static void add(SocketPointer socket);
    /// Null with errno: EBADF where there is none, EIO where it is the parent's, before a fork().
    static SocketPointer find(int number);
    /// The same, and nobody finds it any more. The parent's is forgotten, and null with errno 0.
    static SocketPointer remove(int number);
    /// Whether the number is a socket's, of whatever generation.
    static bool has(int number);
};

}  // namespace weft::abi::sockets
