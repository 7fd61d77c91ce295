// SPDX-License-Identifier: Apache-2.0
#include "abi/sockets/opening.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace weft::abi::sockets {
namespace {

using PrivateData = std::array<std::byte, wire_size<Introduction>()>;

/// An event of a channel, until it is acknowledged. There may be none.
class TakenEvent {
public:
    explicit TakenEvent(rdma_event_channel* channel) {
        if (rdma_get_cm_event(channel, &event_) != 0) event_ = nullptr;
    }
    ~TakenEvent() { acknowledge(); }
    TakenEvent(const TakenEvent&) = delete;
    TakenEvent& operator=(const TakenEvent&) = delete;

    explicit operator bool() const { return event_ != nullptr; }
    const rdma_cm_event* operator->() const { return event_; }
    void acknowledge() {
        if (event_) rdma_ack_cm_event(event_);
        event_ = nullptr;
    }

private:
    rdma_cm_event* event_ = nullptr;
};

Result<Introduction> introduction_in(const rdma_conn_param& parameters) {
    auto* octets = static_cast<const std::byte*>(parameters.private_data);
    return decode<Introduction>({octets, octets ? parameters.private_data_len : 0u});
}

void fail(Socket& socket, int why) {
    socket.stage = Stage::failed;
    socket.error = why;
}

/// What the event that ended an attempt means to who waits in connect().
int errno_of(const rdma_cm_event& event) {
    switch (event.event) {
        case RDMA_CM_EVENT_REJECTED:
            return ECONNREFUSED;
        case RDMA_CM_EVENT_DISCONNECTED:
            return ECONNRESET;
        default:
            break;
    }
    if (event.status < 0) return -event.status;
    switch (event.event) {
        case RDMA_CM_EVENT_ADDR_ERROR:
        case RDMA_CM_EVENT_ROUTE_ERROR:
            return EHOSTUNREACH;
        case RDMA_CM_EVENT_UNREACHABLE:
            return ETIMEDOUT;
        default:
            return ECONNABORTED;
    }
}

void resolve_route(Socket& socket) {
    if (rdma_resolve_route(socket.id, limits::resolution_ms) != 0) return fail(socket, errno);
    socket.stage = Stage::resolving_route;
}

void connect(Socket& socket) {
    socket.endpoint = Endpoint::make(*socket.id, socket.settings);
    if (!socket.endpoint) return fail(socket, errno);
    auto introduction = encoded(socket.stream().introduction());
    rdma_conn_param parameters{};
    parameters.private_data = introduction.data();
    parameters.private_data_len = static_cast<std::uint8_t>(introduction.size());
    parameters.flow_control = 1;
    parameters.retry_count = parameters.rnr_retry_count = 7;
    // Nothing is read here; but some devices show that they are ready by a read of no bytes.
    parameters.initiator_depth = 1;
    if (rdma_connect(socket.id, &parameters) != 0) return fail(socket, errno);
    socket.stage = Stage::connecting;
}

void establish(Socket& socket, const rdma_cm_event& event) {
    if (socket.stage == Stage::connecting) {
        auto peer = introduction_in(event.param.conn);
        if (!peer || !socket.stream().begin(*peer)) {
            rdma_disconnect(socket.id);
            return fail(socket, ENOTSUP);
        }
        socket.reminder.begin();
    }
    socket.stage = Stage::open;
    socket.endpoint->digest();
}

void take(Socket& socket, const rdma_cm_event& event) {
    switch (event.event) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
            return resolve_route(socket);
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
            return connect(socket);
        case RDMA_CM_EVENT_CONNECT_RESPONSE:
        case RDMA_CM_EVENT_ESTABLISHED:
            return establish(socket, event);
        default:
            return fail(socket, errno_of(event));
    }
}

/// Makes the peer's wish come true, or says why not.
bool accept(Socket& socket, const Introduction& peer, rdma_conn_param parameters) {
    socket.endpoint = Endpoint::make(*socket.id, socket.settings);
    if (!socket.endpoint || !socket.stream().begin(peer)) return false;
    auto introduction = encoded(socket.stream().introduction());
    parameters.private_data = introduction.data();
    parameters.private_data_len = static_cast<std::uint8_t>(introduction.size());
    if (rdma_accept(socket.id, &parameters) != 0) return false;
    socket.stage = Stage::accepting;
    return true;
}

}  // namespace

int begin_connection(Socket& socket, const sockaddr& address) {
    if (rdma_resolve_addr(socket.id, nullptr, const_cast<sockaddr*>(&address),
                          limits::resolution_ms) != 0)
        return errno;
    socket.stage = Stage::resolving_address;
    return 0;
}

bool advance(Socket& socket) {
    bool took_any = false;
    while (socket.is_opening()) {
        TakenEvent event(socket.channel);
        if (!event) break;
        take(socket, *event.operator->());
        took_any = true;
    }
    return took_any;
}

SocketPointer answer_request(Socket& listener) {
    TakenEvent event(listener.channel);
    if (!event || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) return nullptr;
    auto peer = introduction_in(event->param.conn);
    auto parameters = event->param.conn;
    auto* id = event->id;
    event.acknowledge();  // with it goes the private data, which accept() replaces
    auto socket = peer ? Socket::adopt(*id, listener) : nullptr;
    if (socket && accept(*socket, *peer, parameters)) return socket;
    rdma_reject(id, nullptr, 0);
    if (!socket) rdma_destroy_id(id);
    return nullptr;
}

bool has_heard_end(Socket& socket) {
    for (;;) {
        TakenEvent event(socket.channel);
        if (!event) return false;
        if (event->event == RDMA_CM_EVENT_DISCONNECTED) return true;
    }
}

}  // namespace weft::abi::sockets
