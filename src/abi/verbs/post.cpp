// SPDX-License-Identifier: Apache-2.0
// ibv_post_send(), ibv_post_recv(), ibv_post_srq_recv(): the way in of all work. A chain of
// requests is taken whole and then pushed to the network once.
#include "abi/verbs/context.hpp"
#include "abi/verbs/work_request.hpp"

namespace weft::abi {
namespace {

constinit Pieces pieces;

int outcome(const Result<void>& posted) {
    return posted ? 0 : errno_of(posted.error());
}

void take_remote(const ibv_send_wr& work, verbs::SendRequest& request) {
    using enum verbs::Operation;
    switch (request.operation) {
        case write_immediate:
            request.immediate = ntohl(work.imm_data);
            [[fallthrough]];
        case write:
        case read:
            request.remote = {work.wr.rdma.remote_addr, SteeringTag{work.wr.rdma.rkey}};
            return;
        case compare_and_swap:
            request.remote = {work.wr.atomic.remote_addr, SteeringTag{work.wr.atomic.rkey}};
            request.compare = work.wr.atomic.compare_add;
            request.operand = work.wr.atomic.swap;
            return;
        case fetch_and_add:
            request.remote = {work.wr.atomic.remote_addr, SteeringTag{work.wr.atomic.rkey}};
            request.operand = work.wr.atomic.compare_add;
            return;
        case send_invalidate:
        case local_invalidate:
            request.invalidate = SteeringTag{work.invalidate_rkey};
            return;
        default:
            return;
    }
}

int post_one(QueuePair& queue_pair, const ibv_send_wr& work) {
    auto operation = operation_of(work.opcode);
    if (!operation) return EOPNOTSUPP;
    bool is_local = *operation >= verbs::Operation::bind_window;
    if (!pieces.take(work.sg_list, is_local ? 0 : work.num_sge, queue_pair.limits.max_send_sge))
        return EINVAL;
    verbs::SendRequest request{
        .id = work.wr_id,
        .operation = *operation,
        .signalled = queue_pair.all_signalled || (work.send_flags & IBV_SEND_SIGNALED),
        .solicited = (work.send_flags & IBV_SEND_SOLICITED) != 0,
        .fenced = (work.send_flags & IBV_SEND_FENCE) != 0,
        .inlined = (work.send_flags & IBV_SEND_INLINE) != 0 && !is_local,
        .local = pieces.all()};
    take_remote(work, request);
    if (*operation != verbs::Operation::bind_window)
        return outcome(queue_pair.engine_side->post(request));
    if (!work.bind_mw.mw || work.bind_mw.mw->type != IBV_MW_TYPE_2) return EINVAL;
    auto binding = binding_of(work.bind_mw.rkey, work.bind_mw.bind_info);
    request.binding = &binding;
    int failed = outcome(queue_pair.engine_side->post(request));
    if (!failed) work.bind_mw.mw->rkey = work.bind_mw.rkey;
    return failed;
}

/// Into a queue pair's own queue or a shared one.
template <class Queue>
int post_all(Queue& queue, std::uint32_t pieces_max, ibv_recv_wr* work, ibv_recv_wr** bad) {
    for (; work; work = work->next) {
        int failed = pieces.take(work->sg_list, work->num_sge, pieces_max)
                         ? outcome(queue.post(verbs::ReceiveRequest{work->wr_id, pieces.all()}))
                         : EINVAL;
        if (failed) {
            *bad = work;
            return failed;
        }
    }
    return 0;
}

}  // namespace

int post_sends(ibv_qp* face, ibv_send_wr* work, ibv_send_wr** bad) {
    Hold hold;
    auto& queue_pair = of(*face);
    if (int wrong = why_unusable(queue_pair)) {
        *bad = work;
        return wrong;
    }
    int failed = 0;
    for (; work; work = work->next) {
        failed = post_one(queue_pair, *work);
        if (failed) {
            *bad = work;
            break;
        }
    }
    Engine::get().push();
    return failed;
}

int post_receives(ibv_qp* face, ibv_recv_wr* work, ibv_recv_wr** bad) {
    Hold hold;
    auto& queue_pair = of(*face);
    if (int wrong = why_unusable(queue_pair)) {
        *bad = work;
        return wrong;
    }
    if (face->srq) {
        *bad = work;
        return EINVAL;
    }
    return post_all(*queue_pair.engine_side, queue_pair.limits.max_recv_sge, work, bad);
}

int post_shared_receives(ibv_srq* face, ibv_recv_wr* work, ibv_recv_wr** bad) {
    Hold hold;
    auto& queue = of(*face);
    if (int wrong = why_unusable(queue)) {
        *bad = work;
        return wrong;
    }
    return post_all(*queue.engine_side, queue.limits.max_sge, work, bad);
}

}  // namespace weft::abi
