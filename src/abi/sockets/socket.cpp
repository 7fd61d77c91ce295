// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/socket.hpp"

#include <unistd.h>

namespace weft::abi::sockets {

Socket::Socket(int its_family, const Settings& its_settings)
    : generation(current_generation()), family(its_family), settings(its_settings) {}

bool Socket::open_channel() {
    channel = rdma_create_event_channel();
    return channel && set_nonblocking(channel->fd);
}

SocketPointer Socket::make(int family) {
    {
        Hold hold;  // it knows by this whose engine it has
        if (!Engine::start()) return nullptr;
    }
    auto made = std::make_shared<Socket>(family, default_settings());
    if (!made->open_channel()) return nullptr;
    if (rdma_create_id(made->channel, &made->id, nullptr, RDMA_PS_TCP) != 0) return nullptr;
    return made;
}

SocketPointer Socket::adopt(rdma_cm_id& id, Socket& listener) {
    auto made = std::make_shared<Socket>(listener.family, listener.settings);
    made->settings.status_flags = 0;
    if (!made->open_channel()) return nullptr;
    if (rdma_migrate_id(&id, made->channel) != 0) return nullptr;
    made->id = &id;
    return made;
}

void Socket::close_descriptors() {
    if (backlog) backlog->bell.close();
    if (endpoint) ::close(endpoint->descriptor());
    if (id) rdma_destroy_id(id);  // and its port
    ::close(number());
}

Socket::~Socket() {
    for (auto& mapping : mappings) ibv_dereg_mr(mapping.region);
    endpoint.reset();
    if (id) rdma_destroy_id(id);
    if (channel) rdma_destroy_event_channel(channel);
}

}  // namespace weft::abi::sockets
