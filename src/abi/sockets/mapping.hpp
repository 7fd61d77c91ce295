// SPDX-License-Identifier: Apache-2.0
// Memory of one application that the other writes to directly.
#pragma once

#include "abi/sockets/socket.hpp"
#include "abi/sockets/waiting.hpp"

namespace weft::abi::sockets {

/// With the lock and the sender's turn. The peer hears of new mappings before any later byte. 0, or
/// an error number.
int tell_mappings(Socket& socket, std::unique_lock<std::mutex>& lock, const Patience& patience);

}  // namespace weft::abi::sockets
