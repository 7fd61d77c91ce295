// SPDX-License-Identifier: Apache-2.0
// The states of a queue pair as applications drive and see them. On iWARP most of them say only how
// far an application has come: what really happens follows from the connection.
#include "abi/verbs/context.hpp"

namespace weft::abi {

void set_state(QueuePair& queue_pair, ibv_qp_state state) {
    queue_pair.qp_base.state = state;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int ibv_modify_qp(ibv_qp* face, ibv_qp_attr* attributes, int mask) {
    Hold hold;
    auto& queue_pair = of(*face);
    if (queue_pair.is_inherited()) return EIO;
    if (mask & IBV_QP_ACCESS_FLAGS) queue_pair.access = attributes->qp_access_flags;
    if (mask & IBV_QP_STATE) {
        if (attributes->qp_state == IBV_QPS_ERR) queue_pair.engine_side->fail();
        set_state(queue_pair, attributes->qp_state);
    }
    Engine::get().push();
    return 0;
}

int ibv_query_qp(ibv_qp* face, ibv_qp_attr* attributes, int, ibv_qp_init_attr* initial) {
    Hold hold;
    auto& queue_pair = of(*face);
    if (queue_pair.is_inherited()) return EIO;
    *attributes = {};
    attributes->qp_state = attributes->cur_qp_state = face->state;
    attributes->qp_access_flags = queue_pair.access;
    attributes->cap = queue_pair.limits;
    attributes->port_num = 1;
    *initial = {face->qp_context,  face->send_cq, face->recv_cq,           face->srq,
                queue_pair.limits, face->qp_type, queue_pair.all_signalled};
    return 0;
}

/// The system puts the bytes in place, and promises nothing about the order of single ones.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) {
    return 0;
}

}  // extern "C"
