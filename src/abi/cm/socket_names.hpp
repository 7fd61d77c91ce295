// SPDX-License-Identifier: Apache-2.0
// The ends of a connection as an identifier has them: in sockaddrs that the application reads.
#pragma once

#include "abi/cm/objects.hpp"
#include "linux/socket_address.hpp"

namespace weft::abi {

/// None where it is not an address of IP.
std::optional<linux::SocketAddress> read_name(const sockaddr* name);
bool is_any(const linux::SocketAddress& name);
bool is_loopback(const linux::SocketAddress& name);
/// Of the same family.
linux::SocketAddress any_of(int family);
linux::SocketAddress loopback_of(int family);

linux::SocketAddress local_end(const Identifier& one);
linux::SocketAddress remote_end(const Identifier& one);
void set_local_end(Identifier& one, const linux::SocketAddress& name);
void set_remote_end(Identifier& one, const linux::SocketAddress& name);

}  // namespace weft::abi
