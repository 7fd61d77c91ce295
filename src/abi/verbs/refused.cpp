// SPDX-License-Identifier: Apache-2.0
// What iWARP does not have (address handles, multicast, ECE), and what this library does not
// (device memory of others, objects of other processes). Each refuses as its manual page says.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

#include "abi/refusals.hpp"

using weft::abi::fail_with;
using weft::abi::refuse;

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd*, ibv_ah_attr*) {
    return refuse(EOPNOTSUPP);
}
int ibv_init_ah_from_wc(ibv_context*, std::uint8_t, ibv_wc*, ibv_grh*, ibv_ah_attr*) {
    return fail_with(EOPNOTSUPP);
}
ibv_ah* ibv_create_ah_from_wc(ibv_pd*, ibv_wc*, ibv_grh*, std::uint8_t) {
    return refuse(EOPNOTSUPP);
}
int ibv_destroy_ah(ibv_ah*) {
    return EOPNOTSUPP;
}
int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*) {
    return -EOPNOTSUPP;
}

int ibv_attach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) {
    return EOPNOTSUPP;
}
int ibv_detach_mcast(ibv_qp*, const ibv_gid*, std::uint16_t) {
    return EOPNOTSUPP;
}

int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
    *ece = {};
    return EOPNOTSUPP;
}
int ibv_set_ece(ibv_qp*, ibv_ece*) {
    return EOPNOTSUPP;
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
    return refuse(EOPNOTSUPP);
}
ibv_context* ibv_import_device(int) {
    return refuse(EOPNOTSUPP);
}
ibv_pd* ibv_import_pd(ibv_context*, std::uint32_t) {
    return refuse(EOPNOTSUPP);
}
ibv_mr* ibv_import_mr(ibv_pd*, std::uint32_t) {
    return refuse(EOPNOTSUPP);
}
ibv_dm* ibv_import_dm(ibv_context*, std::uint32_t) {
    return refuse(EOPNOTSUPP);
}
void ibv_unimport_pd(ibv_pd*) {}
void ibv_unimport_mr(ibv_mr*) {}
void ibv_unimport_dm(ibv_dm*) {}

}  // extern "C"
