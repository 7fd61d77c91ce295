// SPDX-License-Identifier: Apache-2.0
// Listening identifiers, and the new ones that requests make.
#include <netinet/in.h>

#include <algorithm>

#include "abi/cm/devices.hpp"
#include "abi/cm/limits.hpp"
#include "abi/cm/socket_names.hpp"

namespace weft::abi {
namespace {

/// In numbers, so this asks nobody.
linux::SocketAddress name_of(const Address& address) {
    auto found = linux::resolve(address, linux::Purpose::connect);
    return found ? found->front() : linux::SocketAddress{};
}

std::uint8_t as_depth(std::optional<std::uint16_t> reads) {
    auto said = reads.value_or(verbs::ConnectOptions{}.inbound_reads);
    return static_cast<std::uint8_t>(std::min(said, limits::reads));
}

/// Inside a Hold.
void take_request(Identifier& listener, std::unique_ptr<verbs::ConnectionRequest> request) {
    if (listener.requests_waiting >= listener.requests_max) return;  // which refuses it
    auto made = std::make_unique<Identifier>(listener.context, listener.ps, listener.qp_type);
    report_to(*made, listener.reports_to());
    made->stage = Stage::requested;
    made->traffic_class = listener.traffic_class;
    set_local_end(*made, name_of(request->local()));
    set_remote_end(*made, name_of(request->remote()));

    auto event = std::make_unique<Event>(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    event->id = made.get();
    event->listen_id = &listener;
    event->tell(request->private_data());
    auto& wishes = event->param.conn;
    wishes.responder_resources = as_depth(request->outbound_reads());
    wishes.initiator_depth = as_depth(request->inbound_reads());
    made->inbound_reads = wishes.responder_resources;
    made->outbound_reads = wishes.initiator_depth;
    made->request = std::move(request);
    event->newcomer = std::move(made);
    ++listener.requests_waiting;
    report(std::move(event));
}

Address place_of(const Identifier& one) {
    auto name = local_end(one);
    // Any address of IPv6 includes IPv4's, unless it is told otherwise.
    if (name.family() == AF_INET6 && is_any(name) && !one.one_family)
        return Address::tcp("", name.port());
    return name.address();
}

unsigned requests_for(int backlog) {
    if (backlog <= 0) return limits::most_requests;  // the system's choice
    return std::clamp(static_cast<unsigned>(backlog), limits::fewest_requests,
                      limits::most_requests);
}

/// Inside a Hold.
int listen(Identifier& one, int backlog) {
    if (one.is_inherited()) return fail_with(EIO);
    if (one.stage != Stage::bound) return fail_with(EINVAL);
    one.requests_max = requests_for(backlog);
    auto listener = Engine::get().device().listen(
        place_of(one), [&one](std::unique_ptr<verbs::ConnectionRequest> request) {
            take_request(one, std::move(request));
        });
    if (!listener) {
        auto why = listener.error();
        return fail_with(why.detail ? why.detail : errno_of(why));
    }
    one.listener = std::move(*listener);
    one.reserved_port.close();
    one.stage = Stage::listening;
    return 0;
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int rdma_listen(rdma_cm_id* id, int backlog) {
    return act_or_fail([&]() -> int {
        if (!id) return fail_with(EINVAL);
        auto& one = of(*id);
        if (one.stage == Stage::idle) {
            auto any = any_of(AF_INET);
            if (rdma_bind_addr(id, any.data()) < 0) return -1;
        }
        Hold hold;
        return listen(one, backlog);
    });
}

int rdma_get_request(rdma_cm_id* listener, rdma_cm_id** id) {
    return act_or_fail([&]() -> int {
        if (!listener || !id) return fail_with(EINVAL);
        auto& one = of(*listener);
        if (!one.is_synchronous) return fail_with(EINVAL);
        show(one, nullptr);
        // Several threads may ask at once, so each has its event to itself until it is known to be
        // bad.
        rdma_cm_event* event = nullptr;
        if (rdma_get_cm_event(listener->channel, &event) < 0) return -1;
        int failed = failure_told_by(*event);
        if (!failed && event->event != RDMA_CM_EVENT_CONNECT_REQUEST) failed = EINVAL;
        auto* newcomer = event->id;
        if (!failed && one.queue_pair_wishes) {
            auto wishes = *one.queue_pair_wishes;
            if (rdma_create_qp(newcomer, one.pd, &wishes) < 0) {
                failed = errno;
                rdma_destroy_id(newcomer);
            }
        }
        if (failed) {
            show(one, event);
            return fail_with(failed);
        }
        newcomer->event = event;
        *id = newcomer;
        return 0;
    });
}

}  // extern "C"
