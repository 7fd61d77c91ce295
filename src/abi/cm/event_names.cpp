// SPDX-License-Identifier: Apache-2.0
#include <rdma/rdma_cma.h>

extern "C" const char* rdma_event_str(rdma_cm_event_type event) {
#define NAME_OF(event) \
    case event:        \
        return #event
    switch (event) {
        NAME_OF(RDMA_CM_EVENT_ADDR_RESOLVED);
        NAME_OF(RDMA_CM_EVENT_ADDR_ERROR);
        NAME_OF(RDMA_CM_EVENT_ROUTE_RESOLVED);
        NAME_OF(RDMA_CM_EVENT_ROUTE_ERROR);
        NAME_OF(RDMA_CM_EVENT_CONNECT_REQUEST);
        NAME_OF(RDMA_CM_EVENT_CONNECT_RESPONSE);
        NAME_OF(RDMA_CM_EVENT_CONNECT_ERROR);
        NAME_OF(RDMA_CM_EVENT_UNREACHABLE);
        NAME_OF(RDMA_CM_EVENT_REJECTED);
        NAME_OF(RDMA_CM_EVENT_ESTABLISHED);
        NAME_OF(RDMA_CM_EVENT_DISCONNECTED);
        NAME_OF(RDMA_CM_EVENT_DEVICE_REMOVAL);
        NAME_OF(RDMA_CM_EVENT_MULTICAST_JOIN);
        NAME_OF(RDMA_CM_EVENT_MULTICAST_ERROR);
        NAME_OF(RDMA_CM_EVENT_ADDR_CHANGE);
        NAME_OF(RDMA_CM_EVENT_TIMEWAIT_EXIT);
    }
#undef NAME_OF
    return "UNKNOWN EVENT";
}
