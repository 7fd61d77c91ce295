// SPDX-License-Identifier: Apache-2.0
// Making connections and ending them.

#include "abi/cm/initiation.hpp"
#include "abi/cm/limits.hpp"
#include "abi/cm/socket_names.hpp"
#include "abi/verbs/inventory.hpp"
#include "abi/wishes.hpp"

namespace weft::abi {
namespace {

/// Inside a Hold. The identifier's own, or one that the application has made and numbers.
QueuePair* chosen_queue_pair(Identifier& one, const rdma_conn_param* wishes) {
    if (!one.qp && !wishes) return nullptr;
    one.queue_pair = one.qp ? one.qp->qp_num : wishes->qp_num;
    auto& all = Inventory::get().queue_pairs;
    auto found = all.find(one.queue_pair);
    if (found == all.end()) return nullptr;
    one.queue_pair_resets = found->second->resets;
    return found->second;
}

bool are_in_range(const rdma_conn_param* wishes) {
    if (!wishes) return true;
    auto good = [](std::uint8_t wish, std::uint8_t most) {
        return wish == most || wish <= limits::reads;
    };
    return good(wishes->responder_resources, RDMA_MAX_RESP_RES) &&
           good(wishes->initiator_depth, RDMA_MAX_INIT_DEPTH);
}

/// What is not said stays as it is.
void note_depths(Identifier& one, const rdma_conn_param* wishes) {
    if (wishes && wishes->responder_resources != RDMA_MAX_RESP_RES)
        one.inbound_reads = wishes->responder_resources;
    if (wishes && wishes->initiator_depth != RDMA_MAX_INIT_DEPTH)
        one.outbound_reads = wishes->initiator_depth;
}

ConstBuffer private_data_of(const rdma_conn_param* wishes) {
    if (!wishes || !wishes->private_data) return {};
    return {static_cast<const std::byte*>(wishes->private_data), wishes->private_data_len};
}

int errno_of_answer(const Error& error) {
    if (error.code == Code::disconnected) return ECONNRESET;
    if (error.code != Code::exhausted) return errno_of(error);
    // The system has said what there is none of; or it is a queue pair that is connected already,
    // or has failed.
    return error.detail ? error.detail : EINVAL;
}

/// Inside a Hold.
int connect(Identifier& one, const rdma_conn_param* wishes) {
    if (one.is_inherited()) return fail_with(EIO);
    if (one.stage != Stage::route_resolved || !are_in_range(wishes)) return fail_with(EINVAL);
    if (!chosen_queue_pair(one, wishes)) return fail_with(EINVAL);
    one.inbound_reads = one.outbound_reads = limits::reads;
    note_depths(one, wishes);
    if (auto told = private_data_of(wishes); !told.empty())
        one.private_data.assign(told.begin(), told.end());
    if (auto begun = initiate(one); !begun) return fail_with(errno_of_answer(begun.error()));
    one.stage = Stage::connecting;
    Engine::get().push();
    return 0;
}

/// Inside a Hold. An application may post sends as soon as it has accepted, so the answer must be
/// gone by then. It is the first that goes out on its stream, and fits.
void send_answer(const verbs::QueuePair& queue_pair, const Identifier& one) {
    constexpr int turns_max = 100;
    for (int i = 0; i < turns_max && one.stage == Stage::accepted &&
                    queue_pair.state() == verbs::QueuePairState::idle;
         ++i)
        Engine::get().world().turn(Wait::not_at_all);
}

/// Inside a Hold.
int accept(Identifier& one, const rdma_conn_param* wishes) {
    if (one.is_inherited()) return fail_with(EIO);
    if (one.stage != Stage::requested || !are_in_range(wishes)) return fail_with(EINVAL);
    auto* queue_pair = chosen_queue_pair(one, wishes);
    if (!queue_pair) return fail_with(EINVAL);
    note_depths(one, wishes);
    auto options = connect_options();
    options.inbound_reads = one.inbound_reads;
    options.outbound_reads = one.outbound_reads;
    options.private_data = private_data_of(wishes);
    options.traffic_class = one.traffic_class;
    auto connection = one.request->accept(*queue_pair->engine_side, options, one.news);
    if (!connection) return fail_with(errno_of_answer(connection.error()));
    one.connection = std::move(*connection);
    one.request.reset();
    one.stage = Stage::accepted;
    set_state(*queue_pair, IBV_QPS_RTS);
    send_answer(*queue_pair->engine_side, one);
    return 0;
}

int reject(Identifier& one, ConstBuffer private_data) {
    Hold hold;
    if (one.is_inherited()) return fail_with(EIO);
    if (one.stage != Stage::requested) return fail_with(EINVAL);
    auto rejected = one.request->reject(private_data);
    one.request.reset();
    one.stage = Stage::over;
    if (!rejected) return fail_with(errno_of_answer(rejected.error()));
    Engine::get().push();
    return 0;
}

/// Inside a Hold.
int disconnect(Identifier& one) {
    if (one.is_inherited()) return fail_with(EIO);
    switch (one.stage) {
        case Stage::idle:
        case Stage::bound:
        case Stage::address_resolved:
        case Stage::route_resolved:
        case Stage::listening:
            return fail_with(EINVAL);
        case Stage::over:
            if (one.end_is_untold) tell_end(one);
            return 0;
        case Stage::requested:
            return 0;
        case Stage::connecting:
        case Stage::accepted:
        case Stage::connected:
            break;
    }
    if (auto* queue_pair = queue_pair_of(one)) set_state(*queue_pair, IBV_QPS_ERR);
    one.end_is_asked = true;
    if (one.is_between_attempts) {
        one.timer.reset();
        one.news.failed(Error{.code = Code::disconnected});
        return 0;
    }
    one.connection->disconnect();
    // The end goes out before the application can destroy what it belongs to.
    Engine::get().push();
    return 0;
}

/// Inside a Hold.
bool will_hear_of_it(Identifier& one) {
    bool is_live = one.stage == Stage::connecting || one.stage == Stage::accepted ||
                   one.stage == Stage::connected;
    return is_live || (one.is_synchronous && !one.reports_to()->events.empty());
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int rdma_connect(rdma_cm_id* id, rdma_conn_param* wishes) {
    return act_or_fail([&]() -> int {
        if (!id) return fail_with(EINVAL);
        {
            Hold hold;
            if (connect(of(*id), wishes) < 0) return -1;
        }
        return complete(of(*id));
    });
}

int rdma_accept(rdma_cm_id* id, rdma_conn_param* wishes) {
    return act_or_fail([&]() -> int {
        if (!id) return fail_with(EINVAL);
        {
            Hold hold;
            if (accept(of(*id), wishes) < 0) return -1;
        }
        return complete(of(*id));
    });
}

int rdma_reject(rdma_cm_id* id, const void* private_data, uint8_t size) {
    return act_or_fail([&]() -> int {
        if (!id) return fail_with(EINVAL);
        auto* octets = static_cast<const std::byte*>(private_data);
        return reject(of(*id), {octets, octets ? size : std::size_t{0}});
    });
}

int rdma_reject_ece(rdma_cm_id* id, const void* private_data, uint8_t size) {
    return rdma_reject(id, private_data, size);
}

int rdma_disconnect(rdma_cm_id* id) {
    return act_or_fail([&]() -> int {
        if (!id) return fail_with(EINVAL);
        bool to_wait = false;
        {
            Hold hold;
            if (disconnect(of(*id)) < 0) return -1;
            to_wait = will_hear_of_it(of(*id));
        }
        return to_wait ? complete(of(*id)) : 0;
    });
}

int rdma_establish(rdma_cm_id* id) {
    if (!id || id->qp) return fail_with(EINVAL);
    Hold hold;
    // What this completes, a connection of iWARP has behind it when it is reported.
    return of(*id).stage == Stage::connected ? 0 : fail_with(EINVAL);
}

int rdma_notify(rdma_cm_id* id, ibv_event_type) {
    if (!id) return fail_with(EINVAL);
    Hold hold;
    if (of(*id).is_inherited()) return fail_with(EIO);
    auto stage = of(*id).stage;
    bool has_begun = stage == Stage::listening || stage >= Stage::requested;
    return has_begun ? 0 : fail_with(EINVAL);
}

}  // extern "C"
