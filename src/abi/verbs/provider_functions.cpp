// SPDX-License-Identifier: Apache-2.0
// IBVERBS_PRIVATE_34: what providers of libibverbs use of it. Debian's perftest and libfabric are
// linked with two of them (libmlx5, libefa), which register themselves when they are loaded and
// then find no hardware. So all of these must be there, and only the first is ever called.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

#include "abi/refusals.hpp"

using weft::abi::refuse;

extern "C" {

/// Providers set it; we have nothing that could be disassociated.
bool verbs_allow_disassociate_destroy = false;

void verbs_register_driver_34(const void*) {}

ibv_context* verbs_open_device(ibv_device*, void*) {
    return refuse(EOPNOTSUPP);
}
void* _verbs_init_and_alloc_context(ibv_device*, int, std::size_t, void*, std::uint32_t) {
    return refuse(EOPNOTSUPP);
}
void verbs_uninit_context(void*) {}
void verbs_set_ops(void*, const void*) {}
void verbs_init_cq(ibv_cq*, ibv_context*, ibv_comp_channel*, void*) {}
void __verbs_log(void*, std::uint32_t, const char*, ...) {}
unsigned __ioctl_final_num_attrs(unsigned count, void*) {
    return count;
}
int execute_ioctl(ibv_context*, void*) {
    return EOPNOTSUPP;
}
int ibv_read_ibdev_sysfs_file(char*, std::size_t, void*, const char*, ...) {
    errno = ENOENT;
    return -1;
}

// Orders for a kernel's device. Nobody of ours gives them, whatever their parameters are.
#define WEFT_NO_KERNEL(name) \
    int ibv_cmd_##name() {   \
        return EOPNOTSUPP;   \
    }

WEFT_NO_KERNEL(advise_mr)
WEFT_NO_KERNEL(alloc_dm)
WEFT_NO_KERNEL(alloc_mw)
WEFT_NO_KERNEL(alloc_pd)
WEFT_NO_KERNEL(attach_mcast)
WEFT_NO_KERNEL(close_xrcd)
WEFT_NO_KERNEL(create_ah)
WEFT_NO_KERNEL(create_counters)
WEFT_NO_KERNEL(create_cq)
WEFT_NO_KERNEL(create_cq_ex)
WEFT_NO_KERNEL(create_flow)
WEFT_NO_KERNEL(create_flow_action_esp)
WEFT_NO_KERNEL(create_qp)
WEFT_NO_KERNEL(create_qp_ex)
WEFT_NO_KERNEL(create_qp_ex2)
WEFT_NO_KERNEL(create_rwq_ind_table)
WEFT_NO_KERNEL(create_srq)
WEFT_NO_KERNEL(create_srq_ex)
WEFT_NO_KERNEL(create_wq)
WEFT_NO_KERNEL(dealloc_mw)
WEFT_NO_KERNEL(dealloc_pd)
WEFT_NO_KERNEL(dereg_mr)
WEFT_NO_KERNEL(destroy_ah)
WEFT_NO_KERNEL(destroy_counters)
WEFT_NO_KERNEL(destroy_cq)
WEFT_NO_KERNEL(destroy_flow)
WEFT_NO_KERNEL(destroy_flow_action)
WEFT_NO_KERNEL(destroy_qp)
WEFT_NO_KERNEL(destroy_rwq_ind_table)
WEFT_NO_KERNEL(destroy_srq)
WEFT_NO_KERNEL(destroy_wq)
WEFT_NO_KERNEL(detach_mcast)
WEFT_NO_KERNEL(free_dm)
WEFT_NO_KERNEL(get_context)
WEFT_NO_KERNEL(modify_cq)
WEFT_NO_KERNEL(modify_flow_action_esp)
WEFT_NO_KERNEL(modify_qp)
WEFT_NO_KERNEL(modify_qp_ex)
WEFT_NO_KERNEL(modify_srq)
WEFT_NO_KERNEL(modify_wq)
WEFT_NO_KERNEL(open_qp)
WEFT_NO_KERNEL(open_xrcd)
WEFT_NO_KERNEL(poll_cq)
WEFT_NO_KERNEL(post_recv)
WEFT_NO_KERNEL(post_send)
WEFT_NO_KERNEL(post_srq_recv)
WEFT_NO_KERNEL(query_context)
WEFT_NO_KERNEL(query_device_any)
WEFT_NO_KERNEL(query_mr)
WEFT_NO_KERNEL(query_port)
WEFT_NO_KERNEL(query_qp)
WEFT_NO_KERNEL(query_srq)
WEFT_NO_KERNEL(read_counters)
WEFT_NO_KERNEL(reg_dm_mr)
WEFT_NO_KERNEL(reg_dmabuf_mr)
WEFT_NO_KERNEL(reg_mr)
WEFT_NO_KERNEL(req_notify_cq)
WEFT_NO_KERNEL(rereg_mr)
WEFT_NO_KERNEL(resize_cq)

#undef WEFT_NO_KERNEL

}  // extern "C"
