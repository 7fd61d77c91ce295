// SPDX-License-Identifier: Apache-2.0
// What cannot exist on iWARP: multicast, and the enhanced connections of some InfiniBand RNICs.
#include "abi/cm/socket_names.hpp"

using namespace weft::abi;

extern "C" {

int rdma_join_multicast(rdma_cm_id*, sockaddr* group, void*) {
    return fail_with(read_name(group) ? EOPNOTSUPP : EINVAL);
}

int rdma_join_multicast_ex(rdma_cm_id*, rdma_cm_join_mc_attr_ex* group, void*) {
    constexpr std::uint32_t known = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    bool is_good = group && !(group->comp_mask & ~known) &&
                   (group->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) && read_name(group->addr);
    return fail_with(is_good ? EOPNOTSUPP : EINVAL);
}

int rdma_leave_multicast(rdma_cm_id*, sockaddr* group) {
    return fail_with(read_name(group) ? EADDRNOTAVAIL : EINVAL);
}

int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* wishes) {
    bool is_good = id && !id->qp && wishes && wishes->vendor_id && !wishes->comp_mask;
    return fail_with(is_good ? EOPNOTSUPP : EINVAL);
}

int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* answer) {
    if (!id || id->qp || !answer) return fail_with(EINVAL);
    *answer = {};  // which says that the peer has none
    return 0;
}

}  // extern "C"
