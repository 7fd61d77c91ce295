// SPDX-License-Identifier: Apache-2.0
// What poll(2) would say of a socket.
#pragma once

#include <poll.h>

#include "abi/sockets/socket.hpp"

namespace weft::abi::sockets {

/// With the lock. Of the events asked for those that hold now, and those nobody need ask for.
short ready_events(Socket& socket, short asked);

}  // namespace weft::abi::sockets
