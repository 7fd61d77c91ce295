// SPDX-License-Identifier: Apache-2.0
// Completions as the engine tells them, and as applications read them.
#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include "weft/verbs.hpp"

namespace weft::abi {

inline ibv_wc_status status_of(const verbs::Completion& completion) {
    using enum verbs::Status;
    switch (completion.status) {
        case success:
            return IBV_WC_SUCCESS;
        case local_length:
            return IBV_WC_LOC_LEN_ERR;
        case local_operation:
            return IBV_WC_LOC_QP_OP_ERR;
        case local_protection:
            return IBV_WC_LOC_PROT_ERR;
        case window_binding:
            return IBV_WC_MW_BIND_ERR;
        case remote_access:
            return IBV_WC_REM_ACCESS_ERR;
        case remote_operation:
            return IBV_WC_REM_OP_ERR;
        case remote_invalid:
            return IBV_WC_REM_INV_REQ_ERR;
        case flushed:
            return IBV_WC_WR_FLUSH_ERR;
    }
    return IBV_WC_GENERAL_ERR;
}

inline ibv_wc_opcode opcode_of(const verbs::Completion& completion) {
    if (completion.what == verbs::Ended::received) return IBV_WC_RECV;
    if (completion.what == verbs::Ended::received_immediate) return IBV_WC_RECV_RDMA_WITH_IMM;
    using enum verbs::Operation;
    switch (completion.operation) {
        case send:
        case send_invalidate:
            return IBV_WC_SEND;
        case write:
        case write_immediate:
            return IBV_WC_RDMA_WRITE;
        case read:
        case read_invalidate:
            return IBV_WC_RDMA_READ;
        case compare_and_swap:
            return IBV_WC_COMP_SWAP;
        case fetch_and_add:
            return IBV_WC_FETCH_ADD;
        case bind_window:
            return IBV_WC_BIND_MW;
        case fast_register:
        case local_invalidate:
            return IBV_WC_LOCAL_INV;
    }
    return IBV_WC_SEND;
}

inline unsigned flags_of(const verbs::Completion& completion) {
    if (completion.what == verbs::Ended::received_immediate) return IBV_WC_WITH_IMM;
    return completion.invalidated ? static_cast<unsigned>(IBV_WC_WITH_INV) : 0;
}

/// The immediate data in network order, or the invalidated key: the same bits of a struct.
inline std::uint32_t word_of(const verbs::Completion& completion) {
    if (completion.invalidated) return static_cast<std::uint32_t>(*completion.invalidated);
    return htonl(completion.immediate);
}

inline void show(const verbs::Completion& completion, ibv_wc& to) {
    to = {};
    to.wr_id = completion.id;
    to.status = status_of(completion);
    to.opcode = opcode_of(completion);
    to.byte_len = completion.bytes;
    to.imm_data = word_of(completion);
    to.qp_num = completion.queue_pair;
    to.wc_flags = flags_of(completion);
}

}  // namespace weft::abi
