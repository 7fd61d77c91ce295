// SPDX-License-Identifier: Apache-2.0
// The states of a queue pair as applications drive and see them. On iWARP most of them say only how
// far an application has come: what really happens follows from the connection, which librdmacm
// makes. Two are orders all the same: ERR ends the connection, RESET makes ready for another.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "abi/limits.hpp"
#include "abi/verbs/context.hpp"
#include "abi/verbs/rights.hpp"

namespace weft::abi {
namespace {

/// Besides those to RESET and to ERR, which can be had from everywhere.
constexpr std::array<std::pair<ibv_qp_state, ibv_qp_state>, 5> steps{{
    {IBV_QPS_RESET, IBV_QPS_INIT},
    {IBV_QPS_INIT, IBV_QPS_INIT},
    {IBV_QPS_INIT, IBV_QPS_RTR},
    {IBV_QPS_RTR, IBV_QPS_RTS},
    {IBV_QPS_RTS, IBV_QPS_RTS},
}};

bool is_step(ibv_qp_state from, ibv_qp_state to) {
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return true;
    return std::find(steps.begin(), steps.end(), std::pair(from, to)) != steps.end();
}

bool has_ended(const QueuePair& queue_pair) {
    return queue_pair.engine_side->state() > verbs::QueuePairState::running;
}

/// What the application was told last, unless the connection has ended since.
ibv_qp_state state_now(const QueuePair& queue_pair) {
    return has_ended(queue_pair) ? IBV_QPS_ERR : queue_pair.qp_base.state;
}

int check(const QueuePair& queue_pair, const ibv_qp_attr& wish, int mask) {
    constexpr int all = (IBV_QP_DEST_QPN << 1) - 1;
    // The queues have the size they were made with: IBV_DEVICE_RESIZE_MAX_WR is not among our
    // flags.
    if (mask & (~all | IBV_QP_CAP)) return EOPNOTSUPP;
    auto from = state_now(queue_pair);
    if ((mask & IBV_QP_CUR_STATE) && wish.cur_qp_state != from) return EINVAL;
    if ((mask & IBV_QP_PORT) && wish.port_num != 1) return EINVAL;
    if (!(mask & IBV_QP_STATE)) return 0;
    // A send queue that rests while the connection goes on is InfiniBand's.
    if (wish.qp_state == IBV_QPS_SQD) return EOPNOTSUPP;
    if (!is_step(from, wish.qp_state)) return EINVAL;
    // There is no way to be ready to send without a connection.
    bool runs = queue_pair.engine_side->state() == verbs::QueuePairState::running;
    return wish.qp_state == IBV_QPS_RTS && !runs ? EINVAL : 0;
}

void remember(QueuePair& queue_pair, const ibv_qp_attr& wish, int mask) {
    if (mask & IBV_QP_ACCESS_FLAGS) {
        queue_pair.access = wish.qp_access_flags;
        queue_pair.engine_side->limit_peer(rights_of(wish.qp_access_flags));
    }
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC) queue_pair.reads_out = wish.max_rd_atomic;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) queue_pair.reads_in = wish.max_dest_rd_atomic;
}

/// Outside a Hold. The engine takes a queue pair back only when its connection is gone, and that
/// has last words for the peer: they go first, if they can. What was posted completes as flushed.
/// The news of that end must have been told, to deaf ears, before the queue pair is fresh again.
int reset(QueuePair& queue_pair) {
    using Clock = std::chrono::steady_clock;
    auto end = Clock::now() + std::chrono::milliseconds(limits::reset_ms);
    for (;;) {
        {
            Hold hold;
            queue_pair.is_resetting = true;
            queue_pair.engine_side->fail();
            Engine::get().poll();
            Engine::get().push();
            bool is_done = queue_pair.engine_side->reset().has_value();
            if (is_done) set_state(queue_pair, IBV_QPS_RESET);
            if (is_done) ++queue_pair.resets;
            if (is_done || Clock::now() > end) {
                queue_pair.is_resetting = false;
                queue_pair.ends_as_asked = !is_done;
                return is_done ? 0 : EBUSY;
            }
        }
        ::usleep(100);
    }
}

}  // namespace

void set_state(QueuePair& queue_pair, ibv_qp_state state) {
    queue_pair.qp_base.state = state;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int ibv_modify_qp(ibv_qp* face, ibv_qp_attr* wish, int mask) {
    auto& queue_pair = of(*face);
    {
        Hold hold;
        if (int wrong = why_unusable(queue_pair)) return wrong;
        if (int wrong = check(queue_pair, *wish, mask)) return wrong;
        remember(queue_pair, *wish, mask);
        if (!(mask & IBV_QP_STATE)) return 0;
        queue_pair.ends_as_asked |=
            wish->qp_state == IBV_QPS_ERR || wish->qp_state == IBV_QPS_RESET;
        if (wish->qp_state != IBV_QPS_RESET) {
            set_state(queue_pair, wish->qp_state);
            if (wish->qp_state == IBV_QPS_ERR) queue_pair.engine_side->fail();
            Engine::get().push();
            return 0;
        }
    }
    return reset(queue_pair);
}

int ibv_query_qp(ibv_qp* face, ibv_qp_attr* attributes, int, ibv_qp_init_attr* initial) {
    Hold hold;
    auto& queue_pair = of(*face);
    if (int wrong = why_unusable(queue_pair)) return wrong;
    set_state(queue_pair, state_now(queue_pair));
    *attributes = {};
    attributes->qp_state = attributes->cur_qp_state = face->state;
    attributes->path_mtu = IBV_MTU_4096;
    attributes->path_mig_state = IBV_MIG_MIGRATED;
    attributes->qp_access_flags = queue_pair.access;
    attributes->cap = queue_pair.limits;
    attributes->max_rd_atomic = queue_pair.reads_out;
    attributes->max_dest_rd_atomic = queue_pair.reads_in;
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
