// SPDX-License-Identifier: Apache-2.0
// From an Address, as people write it, to what the socket calls take, and back to words.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "linux/descriptor.hpp"
#include "weft/linux_world.hpp"

namespace weft::linux {

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;

    sockaddr* data() { return reinterpret_cast<sockaddr*>(&storage); }
    const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage); }
    int family() const { return storage.ss_family; }
    std::uint16_t port() const;
    void set_port(std::uint16_t port);
    /// "192.0.2.7:10809", "[2001:db8::7]:10809", "unix:/run/weft.sock".
    std::string text() const;
    /// In numbers; a Unix socket without a name gives an empty one.
    Address address() const;
};

/// Who will use the addresses: an empty host is every address to one, this machine to the other.
enum class Purpose { listen, connect };

/// All addresses the name stands for, best first, never none. Asks the resolver and waits for it:
/// names are for set-up, numbers for the rest.
Result<std::vector<SocketAddress>> resolve(const Address& address, Purpose purpose);

/// Unix sockets do not grow their buffers as TCP does, and accepted ones do not inherit them.
void make_room_to_send(const Descriptor& unix_socket);

/// A stream socket of the address's kind: it never blocks, and no child process inherits it.
Result<Descriptor> make_socket(const SocketAddress& address, const LinuxWorldOptions& options);

/// Whether the kernel lets TCP sockets be as the options say.
Result<void> check_tcp_options(const LinuxWorldOptions& options);

/// The name of a socket's own end.
SocketAddress own_address(int socket);

/// The errno the kernel has noted for the socket since it was last asked; 0: none.
int pending_error(int socket);

/// Who is at the other end of a connected socket, in words for a log line.
std::string describe_peer(int socket, const SocketAddress& peer);

}  // namespace weft::linux
