// SPDX-License-Identifier: Apache-2.0
// Sockets that wait for connections: one for each address the name stands for, all on one port.
// A Unix socket's path is taken over from the dead, never from the living, and removed at the end.
#pragma once

#include <memory>

#include "linux/connection.hpp"
#include "weft/world.hpp"

namespace weft::linux {

Result<std::unique_ptr<weft::Listener>> listen(SocketCommons& commons, const Address& address,
                                               weft::World::Accepted accepted);

}  // namespace weft::linux
