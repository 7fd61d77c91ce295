// SPDX-License-Identifier: Apache-2.0
// Reads of our device, context and connection identifier what programs read by themselves, through
// Debian's headers and not through a function. Compiled and linked as any program would be; as C
// here, as C++ in device_fields.cpp.
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

#define CHECK(what)                                                    \
    do {                                                               \
        if (!(what)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
            ++failures;                                                \
        }                                                              \
    } while (0)

static void check_context(struct ibv_context* context) {
    struct pollfd events = {context->async_fd, POLLIN, 0};
    struct verbs_context* table = verbs_get_ctx(context);
    CHECK(table != NULL);
    if (table == NULL) return;
    CHECK(table->sz == sizeof(struct verbs_context));
    CHECK(table->query_port && table->query_device_ex && table->create_cq_ex);
    CHECK(table->create_qp_ex && table->create_srq_ex && table->get_srq_num);
    CHECK(context->ops.poll_cq && context->ops.req_notify_cq && context->ops.post_send);
    CHECK(context->ops.post_recv && context->ops.post_srq_recv);
    CHECK(context->num_comp_vectors >= 1);
    CHECK(poll(&events, 1, 0) == 0);  // a real descriptor, and nothing has happened
}

static void check_answers(struct ibv_context* context) {
    struct ibv_device_attr_ex device;
    struct ibv_port_attr port;
    union ibv_gid gid;
    memset(&device, 0, sizeof device);
    CHECK(ibv_query_device_ex(context, NULL, &device) == 0);
    CHECK(device.orig_attr.phys_port_cnt == 1);
    CHECK(device.orig_attr.max_qp > 0 && device.orig_attr.max_cq > 0 &&
          device.orig_attr.max_mr > 0);
    CHECK(device.orig_attr.max_qp_wr > 0 && device.orig_attr.max_sge > 0);
    CHECK(ibv_query_port(context, 1, &port) == 0);
    // An interface that is down has a port that is.
    CHECK(port.state == IBV_PORT_ACTIVE || port.state == IBV_PORT_DOWN);
    CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET);
    CHECK(port.gid_tbl_len >= 1 && port.max_msg_sz > 0);
    CHECK(ibv_query_gid(context, 1, 0, &gid) == 0);
}

static void check_device(struct ibv_device* device) {
    struct ibv_context* context;
    CHECK(device->node_type == IBV_NODE_RNIC && device->transport_type == IBV_TRANSPORT_IWARP);
    CHECK(strcmp(ibv_get_device_name(device), device->name) == 0 && device->name[0] != 0);
    context = ibv_open_device(device);
    CHECK(context != NULL);
    if (context == NULL) return;
    CHECK(context->device == device);
    check_context(context);
    check_answers(context);
    CHECK(ibv_close_device(context) == 0);
}

static void check_identifier(void) {
    struct rdma_event_channel* channel = rdma_create_event_channel();
    struct rdma_cm_id* id = NULL;
    struct pollfd events = {0, POLLIN, 0};
    CHECK(channel != NULL);
    if (channel == NULL) return;
    events.fd = channel->fd;
    CHECK(poll(&events, 1, 0) == 0);
    CHECK(rdma_create_id(channel, &id, &events, RDMA_PS_TCP) == 0);
    if (id != NULL) {
        CHECK(id->channel == channel && id->context == &events && id->ps == RDMA_PS_TCP);
        CHECK(id->verbs == NULL && id->qp == NULL && id->event == NULL);
        CHECK(rdma_destroy_id(id) == 0);
    }
    rdma_destroy_event_channel(channel);
}

int main(void) {
    int count = 0, index;
    struct ibv_device** devices = ibv_get_device_list(&count);
    CHECK(devices != NULL && count >= 1);  // there is always a loopback
    for (index = 0; index < count; ++index) check_device(devices[index]);
    if (devices != NULL) ibv_free_device_list(devices);
    check_identifier();
    return failures != 0;
}
