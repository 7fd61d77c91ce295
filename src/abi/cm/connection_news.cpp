// SPDX-License-Identifier: Apache-2.0
#include "abi/cm/connection_news.hpp"

#include "abi/cm/initiation.hpp"
#include "abi/cm/limits.hpp"

namespace weft::abi {
namespace {

struct Failure {
    rdma_cm_event_type kind;
    int status;
};

/// As the kernel's connection manager for iWARP reports it.
Failure failure_for(const Error& why) {
    // However it was noticed that the peer has gone.
    if (why.code == Code::disconnected) return {RDMA_CM_EVENT_REJECTED, -ECONNRESET};
    auto number = errno_of(why);
    switch (number) {
        case ECONNREFUSED:
            return {RDMA_CM_EVENT_REJECTED, -number};
        case ETIMEDOUT:
        case EHOSTUNREACH:
        case ENETUNREACH:
            return {RDMA_CM_EVENT_UNREACHABLE, -number};
        default:
            return {RDMA_CM_EVENT_CONNECT_ERROR, -number};
    }
}

void end(Identifier& one) {
    one.stage = Stage::over;
    auto* queue_pair = queue_pair_of(one);
    if (!queue_pair) return;
    set_state(*queue_pair, IBV_QPS_ERR);
    queue_pair->engine_side->fail();  // also if it never ran: its receives are flushed
}

std::unique_ptr<Event> event_with_facts(Identifier& one, rdma_cm_event_type kind, int status) {
    auto event = std::make_unique<Event>(one, kind, status);
    event->tell(one.connection->peer_private_data());
    event->param.conn.responder_resources = static_cast<std::uint8_t>(one.inbound_reads);
    event->param.conn.initiator_depth = static_cast<std::uint8_t>(one.outbound_reads);
    return event;
}

/// The peer left before it showed that it is ready. An accepted connection can only be lost, as far
/// as the kernel's connection manager for iWARP goes: stock servers end themselves when they are
/// told of anything else, and any peer could bring that about.
void report_lost_after_accept(Identifier& one) {
    one.stage = Stage::connected;
    auto event = event_with_facts(one, RDMA_CM_EVENT_ESTABLISHED, 0);
    event->tell({});  // the application had it with the request
    report(std::move(event));
    one.news.disconnected();
}

}  // namespace

void ConnectionNews::established() {
    bool initiated = about_.stage == Stage::connecting;
    about_.stage = Stage::connected;
    about_.reserved_port.close();  // the connection has it now
    about_.inbound_reads = about_.connection->facts().inbound_reads;
    about_.outbound_reads = about_.connection->facts().outbound_reads;
    if (auto* queue_pair = queue_pair_of(about_)) {
        set_state(*queue_pair, IBV_QPS_RTS);
        queue_pair->reads_in = static_cast<std::uint8_t>(about_.inbound_reads);
        queue_pair->reads_out = static_cast<std::uint8_t>(about_.outbound_reads);
    }
    auto event = event_with_facts(about_, RDMA_CM_EVENT_ESTABLISHED, 0);
    if (!initiated) event->tell({});  // the application had it with the request
    report(std::move(event));
}

void ConnectionNews::rejected() {
    end(about_);
    report(event_with_facts(about_, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED));
}

void ConnectionNews::failed(Error why) {
    auto failure = failure_for(why);
    bool is_refused = failure.status == -ECONNREFUSED && about_.stage == Stage::connecting;
    if (is_refused && tries_again(about_)) return;
    if (about_.stage == Stage::accepted) return report_lost_after_accept(about_);
    end(about_);
    report(about_, failure.kind, failure.status);
}

void ConnectionNews::disconnected() {
    end(about_);
    if (about_.end_is_asked) return tell_end(about_);
    about_.end_is_untold = true;
    about_.call_later(limits::end_notice, [&one = about_] { tell_end(one); });
}

void tell_end(Identifier& one) {
    one.end_is_untold = false;
    report(one, RDMA_CM_EVENT_DISCONNECTED, 0);
    one.call_later(limits::farewell, [&one] { report(one, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0); });
}

}  // namespace weft::abi
