// SPDX-License-Identifier: Apache-2.0
// rsetsockopt(), rgetsockopt(), rfcntl(), and the addresses of both ends.
//
// Sizes matter until the socket has its buffers. Options that mean nothing over RDMA are accepted
// and remembered where programs set them without thinking, and refused with ENOTSUP otherwise.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <cstdarg>
#include <cstring>

#include "abi/sockets/addresses.hpp"
#include "abi/sockets/calls.hpp"
#include "abi/sockets/messages.hpp"
#include "abi/sockets/table.hpp"

namespace weft::abi::sockets {
namespace {

/// As the kernel, which gives twice what it is asked for and says so.
std::uint32_t buffer_bytes(int asked) {
    auto doubled = std::clamp<std::int64_t>(std::int64_t{asked} * 2, limits::buffer_bytes_min,
                                            limits::buffer_bytes_max);
    return static_cast<std::uint32_t>(doubled);
}

std::uint32_t entries(int asked) {
    auto most = static_cast<int>(limits::queue_entries_max);
    return static_cast<std::uint32_t>(std::clamp(asked, 1, most));
}

int set_identifier_option(Socket& socket, int option, int value) {
    return rdma_set_option(socket.id, RDMA_OPTION_ID, option, &value, sizeof value) ? errno : 0;
}

int set_socket_option(Socket& socket, int name, int value) {
    auto& settings = socket.settings;
    switch (name) {
        case SO_REUSEADDR:
            settings.reuse_address = value != 0;
            return set_identifier_option(socket, RDMA_OPTION_ID_REUSEADDR, value);
        case SO_RCVBUF:
            if (!socket.endpoint) settings.receive_bytes = buffer_bytes(value);
            return 0;
        case SO_SNDBUF:
            if (!socket.endpoint) settings.send_bytes = buffer_bytes(value);
            return 0;
        case SO_LINGER:  // its first field
            settings.no_linger = value == 0;
            return 0;
        case SO_KEEPALIVE:
            settings.keep_alive = value != 0;
            return 0;
        case SO_OOBINLINE:
            settings.out_of_band_inline = value != 0;
            return 0;
        default:
            return ENOTSUP;
    }
}

int set_tcp_option(Socket& socket, int name, int value) {
    switch (name) {
        case TCP_NODELAY:
            socket.settings.no_delay = value != 0;
            return 0;
        case TCP_KEEPIDLE:
            if (value <= 0) return EINVAL;
            socket.settings.keep_idle_s = value;
            return 0;
        case TCP_MAXSEG:
        case TCP_KEEPCNT:
        case TCP_KEEPINTVL:
            return 0;
        default:
            return ENOTSUP;
    }
}

int set_rdma_option(Socket& socket, int name, int value) {
    if (socket.stage > Stage::listening) return EINVAL;
    auto& settings = socket.settings;
    auto positive = static_cast<std::uint32_t>(std::max(value, 0));
    switch (name) {
        case RDMA_SQSIZE:
            settings.send_entries = entries(value);
            return 0;
        case RDMA_RQSIZE:
            settings.receive_entries = entries(value);
            return 0;
        case RDMA_INLINE:
            settings.inline_bytes = std::min(positive, limits::queue_entries_max);
            return 0;
        case RDMA_IOMAPSIZE:
            settings.mappings = count_of(scale_of(std::min(positive, limits::mappings_max)));
            return 0;
        default:  // RDMA_ROUTE among them: paths are InfiniBand's
            return ENOTSUP;
    }
}

int set_option(Socket& socket, int level, int name, int value) {
    switch (level) {
        case SOL_SOCKET:
            return set_socket_option(socket, name, value);
        case IPPROTO_TCP:
            return set_tcp_option(socket, name, value);
        case IPPROTO_IPV6:
            if (name != IPV6_V6ONLY) return ENOTSUP;
            socket.settings.only_ipv6 = value != 0;
            return set_identifier_option(socket, RDMA_OPTION_ID_AFONLY, value);
        case SOL_RDMA:
            return set_rdma_option(socket, name, value);
        default:
            return ENOTSUP;
    }
}

std::optional<int> socket_option(Socket& socket, int name) {
    const auto& settings = socket.settings;
    switch (name) {
        case SO_ERROR:
            return std::exchange(socket.error, 0);
        case SO_TYPE:
            return SOCK_STREAM;
        case SO_REUSEADDR:
            return settings.reuse_address;
        case SO_KEEPALIVE:
            return settings.keep_alive;
        case SO_OOBINLINE:
            return settings.out_of_band_inline;
        case SO_RCVBUF:
            return static_cast<int>(settings.receive_bytes);
        case SO_SNDBUF:
            return static_cast<int>(settings.send_bytes);
        default:
            return std::nullopt;
    }
}

std::optional<int> tcp_option(const Settings& settings, int name) {
    switch (name) {
        case TCP_NODELAY:
            return settings.no_delay;
        case TCP_KEEPIDLE:
            return settings.keep_idle_s;
        case TCP_KEEPCNT:
        case TCP_KEEPINTVL:
            return 1;
        case TCP_MAXSEG:
            return 2048;  // as rsockets say where no path is known
        default:
            return std::nullopt;
    }
}

std::optional<int> rdma_option(const Settings& settings, int name) {
    switch (name) {
        case RDMA_SQSIZE:
            return static_cast<int>(settings.send_entries);
        case RDMA_RQSIZE:
            return static_cast<int>(settings.receive_entries);
        case RDMA_INLINE:
            return static_cast<int>(settings.inline_bytes);
        case RDMA_IOMAPSIZE:
            return static_cast<int>(settings.mappings);
        default:
            return std::nullopt;
    }
}

std::optional<int> option(Socket& socket, int level, int name) {
    switch (level) {
        case SOL_SOCKET:
            return socket_option(socket, name);
        case IPPROTO_TCP:
            return tcp_option(socket.settings, name);
        case IPPROTO_IPV6:
            if (name == IPV6_V6ONLY) return socket.settings.only_ipv6;
            return std::nullopt;
        case SOL_RDMA:
            return rdma_option(socket.settings, name);
        default:
            return std::nullopt;
    }
}

template <class Value>
void give(const Value& value, void* to, socklen_t* length) {
    *length = std::min<socklen_t>(*length, sizeof value);
    std::memcpy(to, &value, *length);
}

/// A socket that is not bound has an address all the same: of its family, and zero.
void give_address(const Socket& socket, const sockaddr& known, sockaddr* to, socklen_t* length) {
    sockaddr_storage none{};
    none.ss_family = static_cast<sa_family_t>(socket.family);
    bool is_known = known.sa_family != AF_UNSPEC;
    copy_address(is_known ? known : reinterpret_cast<const sockaddr&>(none), to, length);
}

}  // namespace
}  // namespace weft::abi::sockets

using namespace weft::abi::sockets;

extern "C" {

int rsetsockopt(int number, int level, int name, const void* value, socklen_t length) {
    auto socket = Table::find(number);
    if (!socket) return -1;
    int first = 0;
    if (!value || length < sizeof first) return fail_with(EINVAL);
    std::memcpy(&first, value, sizeof first);
    std::lock_guard locked(socket->lock);
    int failed = set_option(*socket, level, name, first);
    return failed ? fail_with(failed) : 0;
}

int rgetsockopt(int number, int level, int name, void* value, socklen_t* length) {
    auto socket = Table::find(number);
    if (!socket) return -1;
    std::lock_guard locked(socket->lock);
    if (level == SOL_SOCKET && name == SO_LINGER) {
        give(linger{.l_onoff = !socket->settings.no_linger, .l_linger = 0}, value, length);
        return 0;
    }
    auto found = option(*socket, level, name);
    if (!found) return fail_with(ENOTSUP);
    give(*found, value, length);
    return 0;
}

int rfcntl(int number, int command, ...) {
    auto socket = Table::find(number);
    if (!socket) return -1;
    std::lock_guard locked(socket->lock);
    if (command == F_GETFL) return socket->settings.status_flags;
    if (command != F_SETFL) return fail_with(ENOTSUP);
    va_list arguments;
    va_start(arguments, command);
    socket->settings.status_flags = va_arg(arguments, int);
    va_end(arguments);
    return 0;
}

int rgetpeername(int number, sockaddr* address, socklen_t* length) {
    auto socket = Table::find(number);
    if (!socket) return -1;
    std::lock_guard locked(socket->lock);
    if (!socket->is_open() && socket->stage != Stage::accepting) return fail_with(ENOTCONN);
    give_address(*socket, *rdma_get_peer_addr(socket->id), address, length);
    return 0;
}

int rgetsockname(int number, sockaddr* address, socklen_t* length) {
    auto socket = Table::find(number);
    if (!socket) return -1;
    std::lock_guard locked(socket->lock);
    give_address(*socket, *rdma_get_local_addr(socket->id), address, length);
    return 0;
}

}  // extern "C"
