// SPDX-License-Identifier: Apache-2.0
#include "abi/cm/shared_ports.hpp"

#include <sys/socket.h>

#include "abi/cm/limits.hpp"
#include "abi/cm/socket_names.hpp"

namespace weft::abi {
namespace {

bool listens(int descriptor) {
    int answer = 0;
    socklen_t size = sizeof answer;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &answer, &size) == 0 && answer != 0;
}

bool is_meant_by(const linux::SocketAddress& one, const linux::SocketAddress& wish) {
    if (one.family() != wish.family() || one.port() != wish.port()) return false;
    return is_any(wish) || is_any(one) || one.text() == wish.text();
}

}  // namespace

std::optional<linux::SocketAddress> share_own_listener(const linux::SocketAddress& name) {
    Hold hold;
    auto& ours = Engine::get().world();
    for (int descriptor = 0; descriptor < limits::descriptors_searched; ++descriptor) {
        if (!listens(descriptor) || ours.owns(descriptor)) continue;
        auto found = linux::own_address(descriptor);
        if (!is_meant_by(found, name)) continue;
        int on = 1;
        if (::setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0) return found;
    }
    return std::nullopt;
}

}  // namespace weft::abi
