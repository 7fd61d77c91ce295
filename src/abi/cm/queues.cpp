// SPDX-License-Identifier: Apache-2.0
// Queue pairs and shared receive queues that belong to an identifier, with the completion queues
// that come along where the application brings none. All by libibverbs' public functions.
#include <rdma/rdma_verbs.h>

#include <cstring>

#include "abi/cm/objects.hpp"

namespace weft::abi {
namespace {

struct CompletionPlace {
    ibv_comp_channel* channel = nullptr;
    ibv_cq* queue = nullptr;
};

bool make_completion_queue(rdma_cm_id& id, std::uint32_t size, CompletionPlace& place) {
    if (size == 0) return true;
    place.channel = ibv_create_comp_channel(id.verbs);
    if (!place.channel) return false;
    // rdma_get_send_comp() and its sister insist that the queue's context is the identifier.
    place.queue = ibv_create_cq(id.verbs, static_cast<int>(size), &id, place.channel, 0);
    return place.queue != nullptr;
}

void destroy_completion_queue(ibv_comp_channel*& channel, ibv_cq*& queue) {
    if (queue) ibv_destroy_cq(queue);
    if (channel) ibv_destroy_comp_channel(channel);
    queue = nullptr;
    channel = nullptr;
}

void destroy_completion_queues(rdma_cm_id& id) {
    auto why = errno;
    destroy_completion_queue(id.send_cq_channel, id.send_cq);
    destroy_completion_queue(id.recv_cq_channel, id.recv_cq);
    errno = why;
}

bool make_completion_queues(rdma_cm_id& id, std::uint32_t sends, std::uint32_t receives) {
    CompletionPlace of_sends, of_receives;
    bool made = make_completion_queue(id, sends, of_sends) &&
                make_completion_queue(id, receives, of_receives);
    if (sends > 0) {
        id.send_cq_channel = of_sends.channel;
        id.send_cq = of_sends.queue;
    }
    if (receives > 0) {
        id.recv_cq_channel = of_receives.channel;
        id.recv_cq = of_receives.queue;
    }
    if (!made) destroy_completion_queues(id);
    return made;
}

bool is_other(const ibv_cq* own, const ibv_cq* wish) {
    return own && wish && own != wish;
}

int make_ready_for_receives(rdma_cm_id& id, ibv_qp& queue_pair) {
    ibv_qp_attr attributes{};
    int mask = 0;
    attributes.qp_state = IBV_QPS_INIT;
    if (rdma_init_qp_attr(&id, &attributes, &mask) < 0) return -1;
    return rdma_seterrno(ibv_modify_qp(&queue_pair, &attributes, mask));
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* wishes) {
    if (!id || !wishes || id->qp || !id->verbs) return fail_with(EINVAL);
    if (!(wishes->comp_mask & IBV_QP_INIT_ATTR_PD) || !wishes->pd) {
        wishes->comp_mask |= IBV_QP_INIT_ATTR_PD;
        wishes->pd = id->pd;
    } else if (wishes->pd->context != id->verbs) {
        return fail_with(EINVAL);
    }
    if (is_other(id->send_cq, wishes->send_cq) || is_other(id->recv_cq, wishes->recv_cq))
        return fail_with(EINVAL);
    bool has_sends = wishes->send_cq || id->send_cq, has_receives = wishes->recv_cq || id->recv_cq;
    if (!make_completion_queues(*id, has_sends ? 0 : wishes->cap.max_send_wr,
                                has_receives ? 0 : wishes->cap.max_recv_wr))
        return -1;
    if (!wishes->send_cq) wishes->send_cq = id->send_cq;
    if (!wishes->recv_cq) wishes->recv_cq = id->recv_cq;
    if (!wishes->srq) wishes->srq = id->srq;

    auto* queue_pair = ibv_create_qp_ex(id->verbs, wishes);
    if (queue_pair && make_ready_for_receives(*id, *queue_pair) < 0) {
        auto why = errno;
        ibv_destroy_qp(queue_pair);
        queue_pair = nullptr;
        errno = why;
    }
    if (!queue_pair) {
        destroy_completion_queues(*id);
        return -1;
    }
    id->pd = queue_pair->pd;
    id->qp = queue_pair;
    return 0;
}

int rdma_create_qp(rdma_cm_id* id, ibv_pd* domain, ibv_qp_init_attr* wishes) {
    if (!id || !wishes) return fail_with(EINVAL);
    // The extended struct begins as the plain one does.
    ibv_qp_init_attr_ex extended{};
    std::memcpy(&extended, wishes, sizeof *wishes);
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    extended.pd = domain ? domain : id->pd;
    int made = rdma_create_qp_ex(id, &extended);
    std::memcpy(wishes, &extended, sizeof *wishes);
    return made;
}

void rdma_destroy_qp(rdma_cm_id* id) {
    if (!id) return;
    if (id->qp) ibv_destroy_qp(id->qp);
    id->qp = nullptr;
    destroy_completion_queues(*id);
}

int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* wishes) {
    if (!id || !wishes || id->srq || !id->verbs) return fail_with(EINVAL);
    if (!(wishes->comp_mask & IBV_SRQ_INIT_ATTR_TYPE)) return fail_with(EINVAL);
    if (wishes->srq_type == IBV_SRQT_XRC) return fail_with(EOPNOTSUPP);
    if (!(wishes->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !wishes->pd) {
        wishes->pd = id->pd;
        wishes->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    }
    auto* made = ibv_create_srq_ex(id->verbs, wishes);
    if (!made) return -1;
    if (!id->pd) id->pd = wishes->pd;
    id->srq = made;
    return 0;
}

int rdma_create_srq(rdma_cm_id* id, ibv_pd* domain, ibv_srq_init_attr* wishes) {
    if (!id || !wishes) return fail_with(EINVAL);
    ibv_srq_init_attr_ex extended{};
    std::memcpy(&extended, wishes, sizeof *wishes);
    extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    extended.srq_type = IBV_SRQT_BASIC;
    extended.pd = domain;
    int made = rdma_create_srq_ex(id, &extended);
    std::memcpy(wishes, &extended, sizeof *wishes);
    return made;
}

void rdma_destroy_srq(rdma_cm_id* id) {
    if (!id) return;
    if (id->srq) ibv_destroy_srq(id->srq);
    id->srq = nullptr;
}

int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attributes, int* mask) {
    if (!id || !attributes || !mask || !id->verbs) return fail_with(EINVAL);
    *mask = 0;
    Hold hold;
    auto& one = of(*id);
    // Further than to here the connection brings it by itself, and what has come further stays.
    if (attributes->qp_state != IBV_QPS_INIT) return 0;
    bool is_begun = one.stage == Stage::accepted || one.stage == Stage::connected;
    *mask = IBV_QP_ACCESS_FLAGS | (is_begun ? 0 : IBV_QP_STATE | IBV_QP_PORT);
    attributes->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    attributes->port_num = id->port_num;
    return 0;
}

}  // extern "C"
