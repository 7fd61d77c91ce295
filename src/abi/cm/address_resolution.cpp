// SPDX-License-Identifier: Apache-2.0
// From addresses to devices, and from a port to the right to use it.
//
// RDMA's port numbers are TCP's. A port an application binds is kept for it by a socket that is
// bound and does nothing else; the engine's sockets are bound beside it when their time comes.
#include <netinet/in.h>

#include "abi/cm/devices.hpp"
#include "abi/cm/shared_ports.hpp"
#include "abi/cm/socket_names.hpp"

namespace weft::abi {
namespace {

using linux::Descriptor;
using linux::SocketAddress;

void switch_on(const Descriptor& socket, int level, int name) {
    int on = 1;
    ::setsockopt(socket.number(), level, name, &on, sizeof on);
}

/// The port is taken. RDMA's ports were never TCP's before iWARP, and a program may listen on one
/// for both: librspreload's children do, while their parents go on with TCP.
Descriptor reserve_shared(Descriptor& socket, const SocketAddress& name) {
    int why = errno;
    auto shared = why == EADDRINUSE ? share_own_listener(name) : std::nullopt;
    if (!shared) {
        errno = why;
        return Descriptor();
    }
    switch_on(socket, SOL_SOCKET, SO_REUSEPORT);
    if (::bind(socket.number(), shared->data(), shared->size) < 0) return Descriptor();
    return std::move(socket);
}

/// Not open, and errno, where the port or the address cannot be had.
Descriptor reserve(const SocketAddress& name, bool one_family) {
    Descriptor socket(::socket(name.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) return socket;
    // Any address of IPv6 includes IPv4's, unless it is told otherwise.
    if (name.family() == AF_INET6 && (one_family || !is_any(name)))
        switch_on(socket, IPPROTO_IPV6, IPV6_V6ONLY);
    // Whoever lets the system choose must not be given a port that another has reserved so, but
    // our own sockets must be let in beside this one afterwards.
    if (name.port() != 0) switch_on(socket, SOL_SOCKET, SO_REUSEADDR);
    if (::bind(socket.number(), name.data(), name.size) < 0) return reserve_shared(socket, name);
    switch_on(socket, SOL_SOCKET, SO_REUSEADDR);
    return socket;
}

bool same_port(const Descriptor& socket, const SocketAddress& remote) {
    return linux::own_address(socket.number()).port() == remote.port();
}

/// The address that packets to `remote` leave from. None, and errno, where none can.
std::optional<SocketAddress> source_towards(const SocketAddress& remote, SocketAddress local) {
    Descriptor probe(::socket(remote.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!probe.is_open()) return std::nullopt;
    local.set_port(0);
    if (!is_any(local) && ::bind(probe.number(), local.data(), local.size) < 0) return std::nullopt;
    if (::connect(probe.number(), remote.data(), remote.size) < 0) return std::nullopt;
    return linux::own_address(probe.number());
}

int bind_to(Identifier& one, const SocketAddress& name) {
    if (one.stage != Stage::idle) return fail_with(EINVAL);
    one.reserved_port = reserve(name, one.one_family);
    if (!one.reserved_port.is_open()) return -1;
    set_local_end(one, linux::own_address(one.reserved_port.number()));
    // The loopback's address says as little about a device as any address: so the kernel sees it,
    // and libfabric, bound there, would find no device that it likes.
    bool tells_device = !is_any(name) && !is_loopback(name);
    if (tells_device && !attach_device(one)) {
        one.reserved_port.close();
        set_local_end(one, {});
        return -1;
    }
    one.stage = Stage::bound;
    return 0;
}

/// Chooses the local address, and reserves a port unless that has been done.
int choose_source(Identifier& one, const SocketAddress& remote) {
    bool is_bound = one.stage == Stage::bound;
    auto source = source_towards(remote, is_bound ? local_end(one) : any_of(remote.family()));
    if (!source) return -1;
    source->set_port(is_bound ? local_end(one).port() : 0);
    if (!is_bound) {
        auto reserved = reserve(*source, one.one_family);
        // TCP can connect an end to itself, and would, where nobody listens.
        if (reserved.is_open() && same_port(reserved, remote))
            one.reserved_port = reserve(*source, one.one_family);
        else
            one.reserved_port = std::move(reserved);
        if (!one.reserved_port.is_open()) return -1;
        source = linux::own_address(one.reserved_port.number());
    }
    set_local_end(one, *source);
    one.stage = Stage::bound;
    return 0;
}

int resolve(Identifier& one, const sockaddr* local, SocketAddress remote) {
    if (one.stage == Stage::idle && local) {
        auto name = read_name(local);
        if (!name) return fail_with(EAFNOSUPPORT);
        if (name->family() != remote.family()) return fail_with(EINVAL);
        if (bind_to(one, *name) < 0) return -1;
    }
    if (one.stage != Stage::idle && one.stage != Stage::bound) return fail_with(EINVAL);
    if (one.stage == Stage::bound && local_end(one).family() != remote.family())
        return fail_with(EINVAL);
    if (is_any(remote)) {
        auto port = remote.port();
        remote = loopback_of(remote.family());
        remote.set_port(port);
    }
    if (choose_source(one, remote) < 0) return -1;
    set_remote_end(one, remote);
    int why_not = one.verbs || attach_device(one) ? 0 : errno;
    Hold hold;
    if (why_not == 0) one.stage = Stage::address_resolved;
    report(one, why_not == 0 ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR, -why_not);
    return 0;
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
    return act_or_fail([&]() -> int {
        if (!id || !address) return fail_with(EINVAL);
        auto name = read_name(address);
        if (!name) return fail_with(EAFNOSUPPORT);
        if (is_inherited(*id)) return fail_with(EIO);
        return bind_to(of(*id), *name);
    });
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* local, sockaddr* remote, int) {
    return act_or_fail([&]() -> int {
        if (!id || !remote) return fail_with(EINVAL);
        auto name = read_name(remote);
        if (!name) return fail_with(EAFNOSUPPORT);
        if (is_inherited(*id)) return fail_with(EIO);
        if (resolve(of(*id), local, *name) < 0) return -1;
        return complete(of(*id));
    });
}

int rdma_resolve_route(rdma_cm_id* id, int) {
    return act_or_fail([&]() -> int {
        if (!id) return fail_with(EINVAL);
        auto& one = of(*id);
        {
            Hold hold;
            if (one.is_inherited()) return fail_with(EIO);
            if (one.stage != Stage::address_resolved) return fail_with(EINVAL);
            one.stage = Stage::route_resolved;
            report(one, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
        }
        return complete(one);
    });
}

}  // extern "C"
