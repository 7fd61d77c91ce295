// SPDX-License-Identifier: Apache-2.0
// Endpoints: an identifier and all it needs in one call, out of what rdma_getaddrinfo() found.
#include <rdma/rdma_verbs.h>
#include "abi/cm/limits.hpp"
#include "abi/cm/objects.hpp"

namespace weft::abi {
namespace {

int prepare_to_listen(Identifier& one, const rdma_addrinfo& found, ibv_pd* domain,
                      const ibv_qp_init_attr* wishes) {
    if (rdma_bind_addr(&one, found.ai_src_addr) < 0) return -1;
    if (domain) one.pd = domain;
    if (!wishes) return 0;
    one.queue_pair_wishes = *wishes;
    one.queue_pair_wishes->qp_type = static_cast<ibv_qp_type>(found.ai_qp_type);
    return 0;
}

int prepare_to_connect(Identifier& one, const rdma_addrinfo& found, ibv_pd* domain,
                       ibv_qp_init_attr* wishes) {
    if (rdma_resolve_addr(&one, found.ai_src_addr, found.ai_dst_addr, limits::resolution_ms) < 0 ||
        rdma_resolve_route(&one, limits::resolution_ms) < 0)
        return -1;
    if (wishes) {
        wishes->qp_type = static_cast<ibv_qp_type>(found.ai_qp_type);
        if (rdma_create_qp(&one, domain, wishes) < 0) return -1;
    }
    if (auto* octets = static_cast<const std::byte*>(found.ai_connect))
        one.private_data.assign(octets, octets + found.ai_connect_len);
    return 0;
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* found, ibv_pd* domain,
                   ibv_qp_init_attr* wishes) {
    return act_or_fail([&]() -> int {
        if (!id || !found) return fail_with(EINVAL);
        rdma_cm_id* made = nullptr;
        if (make_identifier(nullptr, &made, nullptr,
                            static_cast<rdma_port_space>(found->ai_port_space),
                            static_cast<ibv_qp_type>(found->ai_qp_type)) < 0)
            return -1;
        bool listens = found->ai_flags & RAI_PASSIVE;
        auto prepared = listens ? prepare_to_listen(of(*made), *found, domain, wishes)
                                : prepare_to_connect(of(*made), *found, domain, wishes);
        if (prepared < 0) {
            auto why = errno;
            rdma_destroy_ep(made);
            return fail_with(why);
        }
        *id = made;
        return 0;
    });
}

void rdma_destroy_ep(rdma_cm_id* id) {
    if (!id) return;
    if (id->qp) rdma_destroy_qp(id);
    if (id->srq) rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

}  // extern "C"
