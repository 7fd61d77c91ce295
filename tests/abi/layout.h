// SPDX-License-Identifier: Apache-2.0
// The sizes and places of what our libraries fill in or read, as Debian 12's headers (rdma-core 44)
// lay them out on a 64-bit machine. Programs have these numbers compiled in: headers that say
// otherwise belong to other libraries than the ones we stand in for.
//
// Included by layout.c and layout.cpp: both languages must agree.
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <stddef.h>

#ifdef __cplusplus
#define EXPECT(what) static_assert(what, #what)
#else
#define EXPECT(what) _Static_assert(what, #what)
#endif
#define SIZE(type, bytes) EXPECT(sizeof(struct type) == (bytes))
#define PLACE(type, member, bytes) EXPECT(offsetof(struct type, member) == (bytes))

// What a device is.
SIZE(ibv_device, 664);
PLACE(ibv_device, node_type, 16);
PLACE(ibv_device, transport_type, 20);
PLACE(ibv_device, name, 24);
PLACE(ibv_device, dev_name, 88);
PLACE(ibv_device, dev_path, 152);
PLACE(ibv_device, ibdev_path, 408);

// An opened one, and the functions that headers call through it.
SIZE(ibv_context, 328);
PLACE(ibv_context, device, 0);
PLACE(ibv_context, ops, 8);
PLACE(ibv_context, ops.alloc_mw, 64);
PLACE(ibv_context, ops.bind_mw, 72);
PLACE(ibv_context, ops.dealloc_mw, 80);
PLACE(ibv_context, ops.poll_cq, 96);
PLACE(ibv_context, ops.req_notify_cq, 104);
PLACE(ibv_context, ops.post_srq_recv, 168);
PLACE(ibv_context, ops.post_send, 208);
PLACE(ibv_context, ops.post_recv, 216);
PLACE(ibv_context, cmd_fd, 264);
PLACE(ibv_context, async_fd, 268);
PLACE(ibv_context, num_comp_vectors, 272);
PLACE(ibv_context, mutex, 280);
PLACE(ibv_context, abi_compat, 320);

// What lies before it in memory. It grows at its beginning, so places count from its end.
SIZE(verbs_context, 648);
#define BEFORE_END(member, bytes) \
    EXPECT(sizeof(struct verbs_context) - offsetof(struct verbs_context, member) == (bytes))
BEFORE_END(context, 328);
BEFORE_END(sz, 336);
BEFORE_END(open_xrcd, 360);
BEFORE_END(create_srq_ex, 368);
BEFORE_END(get_srq_num, 376);
BEFORE_END(create_qp_ex, 384);
BEFORE_END(open_qp, 392);
BEFORE_END(query_device_ex, 432);
BEFORE_END(create_cq_ex, 448);
BEFORE_END(query_port, 648);

// Objects, and what programs read of them.
SIZE(ibv_pd, 16);
SIZE(ibv_comp_channel, 16);
PLACE(ibv_comp_channel, fd, 8);
PLACE(ibv_comp_channel, refcnt, 12);
SIZE(ibv_mr, 48);
PLACE(ibv_mr, addr, 16);
PLACE(ibv_mr, length, 24);
PLACE(ibv_mr, lkey, 36);
PLACE(ibv_mr, rkey, 40);
SIZE(ibv_mw, 32);
SIZE(ibv_cq, 128);
PLACE(ibv_cq, channel, 8);
PLACE(ibv_cq, cq_context, 16);
PLACE(ibv_cq, cqe, 28);
PLACE(ibv_cq, mutex, 32);
PLACE(ibv_cq, comp_events_completed, 120);
SIZE(ibv_cq_ex, 288);
PLACE(ibv_cq_ex, comp_events_completed, 120);
PLACE(ibv_cq_ex, status, 132);
PLACE(ibv_cq_ex, wr_id, 136);
SIZE(ibv_srq, 128);
SIZE(ibv_qp, 160);
PLACE(ibv_qp, qp_num, 52);
PLACE(ibv_qp, state, 56);
PLACE(ibv_qp, qp_type, 60);
PLACE(ibv_qp, mutex, 64);
PLACE(ibv_qp, events_completed, 152);
SIZE(ibv_qp_ex, 352);
PLACE(ibv_qp_ex, comp_mask, 160);
PLACE(ibv_qp_ex, wr_id, 168);

// Work and its completion.
SIZE(ibv_sge, 16);
SIZE(ibv_send_wr, 128);
SIZE(ibv_recv_wr, 32);
SIZE(ibv_wc, 48);
PLACE(ibv_wc, status, 8);
PLACE(ibv_wc, opcode, 12);
PLACE(ibv_wc, byte_len, 20);
PLACE(ibv_wc, qp_num, 28);

// Questions and answers.
SIZE(ibv_device_attr, 232);
SIZE(ibv_device_attr_ex, 400);
SIZE(ibv_port_attr, 52);
SIZE(ibv_qp_attr, 144);
SIZE(ibv_qp_init_attr, 64);
SIZE(ibv_qp_init_attr_ex, 136);
SIZE(ibv_srq_init_attr, 24);
SIZE(ibv_async_event, 16);
EXPECT(sizeof(union ibv_gid) == 16);

// The connection manager's.
SIZE(rdma_event_channel, 4);
SIZE(rdma_cm_id, 416);
PLACE(rdma_cm_id, verbs, 0);
PLACE(rdma_cm_id, channel, 8);
PLACE(rdma_cm_id, context, 16);
PLACE(rdma_cm_id, qp, 24);
PLACE(rdma_cm_id, route, 32);
PLACE(rdma_cm_id, ps, 344);
PLACE(rdma_cm_id, port_num, 348);
PLACE(rdma_cm_id, event, 352);
PLACE(rdma_cm_id, send_cq_channel, 360);
PLACE(rdma_cm_id, send_cq, 368);
PLACE(rdma_cm_id, recv_cq_channel, 376);
PLACE(rdma_cm_id, recv_cq, 384);
PLACE(rdma_cm_id, srq, 392);
PLACE(rdma_cm_id, pd, 400);
PLACE(rdma_cm_id, qp_type, 408);
SIZE(rdma_cm_event, 80);
PLACE(rdma_cm_event, id, 0);
PLACE(rdma_cm_event, listen_id, 8);
PLACE(rdma_cm_event, event, 16);
PLACE(rdma_cm_event, status, 20);
PLACE(rdma_cm_event, param, 24);
SIZE(rdma_conn_param, 24);
SIZE(rdma_addrinfo, 96);
