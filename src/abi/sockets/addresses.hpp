// SPDX-License-Identifier: Apache-2.0
// Socket addresses as applications pass them in and want them back.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace weft::abi::sockets {

inline socklen_t size_of(int family) {
    return family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

/// Whether it is of a family we know, and all there.
inline bool is_whole(const sockaddr* address, socklen_t length) {
    if (!address || length < sizeof(sa_family_t)) return false;
    int family = address->sa_family;
    return (family == AF_INET || family == AF_INET6) && length >= size_of(family);
}

/// As getsockname(2): as much as fits, and how long it is.
inline void copy_address(const sockaddr& from, sockaddr* to, socklen_t* length) {
    auto size = size_of(from.sa_family);
    if (to) std::memcpy(to, &from, std::min(*length, size));
    *length = size;
}

}  // namespace weft::abi::sockets
