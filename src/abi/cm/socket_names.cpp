// SPDX-License-Identifier: Apache-2.0
#include "abi/cm/socket_names.hpp"

#include <netinet/in.h>

#include <cstring>

namespace weft::abi {
namespace {

socklen_t size_of(int family) {
    if (family == AF_INET) return sizeof(sockaddr_in);
    return family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

const sockaddr_in& as_ipv4(const linux::SocketAddress& name) {
    return reinterpret_cast<const sockaddr_in&>(name.storage);
}
const sockaddr_in6& as_ipv6(const linux::SocketAddress& name) {
    return reinterpret_cast<const sockaddr_in6&>(name.storage);
}

}  // namespace

std::optional<linux::SocketAddress> read_name(const sockaddr* name) {
    if (!name || size_of(name->sa_family) == 0) return std::nullopt;
    linux::SocketAddress read;
    read.size = size_of(name->sa_family);
    std::memcpy(&read.storage, name, read.size);
    return read;
}

bool is_any(const linux::SocketAddress& name) {
    if (name.family() == AF_INET) return as_ipv4(name).sin_addr.s_addr == INADDR_ANY;
    return IN6_IS_ADDR_UNSPECIFIED(&as_ipv6(name).sin6_addr);
}

bool is_loopback(const linux::SocketAddress& name) {
    constexpr std::uint32_t network = 127u << 24;
    if (name.family() == AF_INET)
        return (ntohl(as_ipv4(name).sin_addr.s_addr) & 0xff00'0000) == network;
    return IN6_IS_ADDR_LOOPBACK(&as_ipv6(name).sin6_addr);
}

linux::SocketAddress any_of(int family) {
    linux::SocketAddress any;
    any.storage.ss_family = static_cast<sa_family_t>(family);
    any.size = size_of(family);
    return any;
}

linux::SocketAddress loopback_of(int family) {
    auto loopback = any_of(family);
    if (family == AF_INET)
        reinterpret_cast<sockaddr_in&>(loopback.storage).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        reinterpret_cast<sockaddr_in6&>(loopback.storage).sin6_addr = in6addr_loopback;
    return loopback;
}

linux::SocketAddress local_end(const Identifier& one) {
    return read_name(&one.route.addr.src_addr).value_or(linux::SocketAddress{});
}

linux::SocketAddress remote_end(const Identifier& one) {
    return read_name(&one.route.addr.dst_addr).value_or(linux::SocketAddress{});
}

void set_local_end(Identifier& one, const linux::SocketAddress& name) {
    one.route.addr.src_storage = name.storage;
}

void set_remote_end(Identifier& one, const linux::SocketAddress& name) {
    one.route.addr.dst_storage = name.storage;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

__be16 rdma_get_src_port(rdma_cm_id* id) {
    return htons(local_end(of(*id)).port());
}

__be16 rdma_get_dst_port(rdma_cm_id* id) {
    return htons(remote_end(of(*id)).port());
}

}  // extern "C"
