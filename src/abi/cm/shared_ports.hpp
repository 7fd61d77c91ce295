// SPDX-License-Identifier: Apache-2.0
// Ports on which an application listens by TCP itself, and wants to listen by RDMA as well.
#pragma once

#include <optional>

#include "linux/socket_address.hpp"

namespace weft::abi {

/// Finds a TCP socket of the application's own that listens on the port, for this address among
/// others or for one among this, and lets others listen beside it. Gives the address it is bound
/// to, on which that can be done. None where there is no such socket.
std::optional<linux::SocketAddress> share_own_listener(const linux::SocketAddress& name);

}  // namespace weft::abi
