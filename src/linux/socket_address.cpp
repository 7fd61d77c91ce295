// SPDX-License-Identifier: Apache-2.0
#include "linux/socket_address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>

#include "linux/limits.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {
namespace {

void set_option(const Descriptor& socket, int level, int name, int value) {
    ::setsockopt(socket.number(), level, name, &value, sizeof value);
}

int as_int(std::size_t size) {
    return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

Result<void> set_congestion_control(const Descriptor& socket, const std::string& name) {
    if (name.empty()) return {};
    // The kernel would cut a longer name, and perhaps know what is left of it.
    constexpr std::size_t longest = 15;
    if (name.size() > longest) return system_error(ENOENT);
    if (::setsockopt(socket.number(), IPPROTO_TCP, TCP_CONGESTION, name.data(),
                     static_cast<socklen_t>(name.size())) < 0)
        return system_error(errno);
    return {};
}

Result<SocketAddress> unix_address(const std::string& path) {
    SocketAddress result;
    auto& address = reinterpret_cast<sockaddr_un&>(result.storage);
    if (path.size() >= sizeof address.sun_path) return system_error(ENAMETOOLONG);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
    return result;
}

Result<std::vector<SocketAddress>> tcp_addresses(const Address& address, Purpose purpose) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (purpose == Purpose::listen ? AI_PASSIVE : 0);
    const char* host = address.host.empty() ? nullptr : address.host.c_str();
    addrinfo* found = nullptr;
    int status = ::getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found);
    if (status == EAI_SYSTEM) return system_error(errno);
    if (status == EAI_MEMORY) return system_error(ENOMEM);
    if (status != 0) return Error{.code = Code::not_found};
    std::vector<SocketAddress> results;
    for (auto* each = found; each; each = each->ai_next) {
        SocketAddress result;
        std::memcpy(&result.storage, each->ai_addr, each->ai_addrlen);
        result.size = each->ai_addrlen;
        results.push_back(result);
    }
    ::freeaddrinfo(found);
    return results;
}

}  // namespace

Result<std::vector<SocketAddress>> resolve(const Address& address, Purpose purpose) {
    if (!address.is_unix()) return tcp_addresses(address, purpose);
    WEFT_TRY(auto result, unix_address(address.path));
    return std::vector{result};
}

void make_room_to_send(const Descriptor& unix_socket) {
    set_option(unix_socket, SOL_SOCKET, SO_SNDBUF, limits::unix_send_bytes);
}

int pending_error(int socket) {
    int number = 0;
    socklen_t size = sizeof number;
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &number, &size) < 0) return errno;
    return number;
}

SocketAddress own_address(int socket) {
    SocketAddress own;
    own.size = sizeof own.storage;
    if (::getsockname(socket, own.data(), &own.size) < 0) return {};
    return own;
}

Result<void> check_tcp_options(const LinuxWorldOptions& options) {
    if (options.congestion_control.empty()) return {};
    SocketAddress any;
    for (int family : {AF_INET6, AF_INET}) {
        any.storage.ss_family = static_cast<sa_family_t>(family);
        auto made = make_socket(any, options);
        if (made || made.error().detail != EAFNOSUPPORT)
            return made ? Result<void>() : made.error();
    }
    return {};  // without any IP there will be no TCP socket
}

Result<Descriptor> make_socket(const SocketAddress& address, const LinuxWorldOptions& options) {
    Descriptor made(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made.is_open()) return system_error(errno);
    if (address.family() == AF_UNIX) {
        make_room_to_send(made);
    } else {
        // What a listener sets here, its accepted sockets have from birth. The engine hands over
        // whole messages; waiting for more to fill a packet only delays them.
        set_option(made, IPPROTO_TCP, TCP_NODELAY, 1);
        // A peer that lost its power or its network says nothing, and who only waits for it would
        // wait for ever.
        set_option(made, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_option(made, IPPROTO_TCP, TCP_KEEPIDLE, limits::keepalive_idle_s);
        set_option(made, IPPROTO_TCP, TCP_KEEPINTVL, limits::keepalive_interval_s);
        set_option(made, IPPROTO_TCP, TCP_KEEPCNT, limits::keepalive_probes);
        if (options.send_buffer_bytes != 0)
            set_option(made, SOL_SOCKET, SO_SNDBUF, as_int(options.send_buffer_bytes));
        if (options.receive_buffer_bytes != 0)
            set_option(made, SOL_SOCKET, SO_RCVBUF, as_int(options.receive_buffer_bytes));
        if (auto set = set_congestion_control(made, options.congestion_control); !set)
            return set.error();
    }
    return made;
}

std::uint16_t SocketAddress::port() const {
    if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
    if (family() == AF_INET6)
        return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
    return 0;
}

void SocketAddress::set_port(std::uint16_t port) {
    if (family() == AF_INET) reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
    if (family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
}

std::string SocketAddress::text() const {
    char words[INET6_ADDRSTRLEN] = "";
    if (family() == AF_INET) {
        auto& address = reinterpret_cast<const sockaddr_in&>(storage);
        ::inet_ntop(AF_INET, &address.sin_addr, words, sizeof words);
        return std::string(words) + ":" + std::to_string(port());
    }
    if (family() == AF_INET6) {
        auto& address = reinterpret_cast<const sockaddr_in6&>(storage);
        ::inet_ntop(AF_INET6, &address.sin6_addr, words, sizeof words);
        return "[" + std::string(words) + "]:" + std::to_string(port());
    }
    auto& address = reinterpret_cast<const sockaddr_un&>(storage);
    if (size <= offsetof(sockaddr_un, sun_path)) return "unix";
    return "unix:" + std::string(address.sun_path);
}

Address SocketAddress::address() const {
    if (family() == AF_UNIX) {
        auto& unix_name = reinterpret_cast<const sockaddr_un&>(storage);
        if (size <= offsetof(sockaddr_un, sun_path)) return {};
        return Address::unix_socket(unix_name.sun_path);
    }
    // An IPv6 address within a link means nothing without its interface, which this adds.
    char words[NI_MAXHOST] = "";
    ::getnameinfo(data(), size, words, sizeof words, nullptr, 0, NI_NUMERICHOST);
    return Address::tcp(words, port());
}

std::string describe_peer(int socket, const SocketAddress& peer) {
    if (peer.family() != AF_UNIX) return peer.text();
    // Connecting Unix sockets have no name of their own; the process is what tells them apart.
    ucred owner{};
    socklen_t size = sizeof owner;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &owner, &size) < 0) return peer.text();
    return peer.text() + " (process " + std::to_string(owner.pid) + ")";
}

}  // namespace weft::linux
