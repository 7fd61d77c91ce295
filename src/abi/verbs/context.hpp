// SPDX-License-Identifier: Apache-2.0
// Opened RNICs, and the little that all entry points have in common.
#pragma once

#include <cstddef>

#include "abi/refusals.hpp"
#include "abi/verbs/objects.hpp"

namespace weft::abi {

/// Inside a Hold. Null, and errno, where the system refuses what the engine needs.
Context* open_context(RnicDevice& device);
/// Inside a Hold; nothing that was made with it is left.
void free_context(Context& context);

/// What an inherited or overcrowded context says to a wish for one more; 0 if it may be made.
inline int why_not(Context& context, Kind kind) {
    if (context.born.is_inherited()) return EIO;
    return has_room_for(kind) ? 0 : ENOMEM;
}

// What the tables of a context point to, each defined where its kind is.
int query_device_ex(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*,
                    std::size_t);
int query_port(ibv_context*, std::uint8_t, ibv_port_attr*, std::size_t);
ibv_mw* allocate_window(ibv_pd*, ibv_mw_type);
int free_window(ibv_mw*);
int bind_window(ibv_qp*, ibv_mw*, ibv_mw_bind*);
ibv_cq_ex* create_completion_queue(ibv_context*, ibv_cq_init_attr_ex*);
int poll_completions(ibv_cq*, int, ibv_wc*);
int request_notification(ibv_cq*, int);
ibv_srq* create_shared_receive_queue(ibv_context*, ibv_srq_init_attr_ex*);
int number_of_shared_receive_queue(ibv_srq*, std::uint32_t*);
int post_shared_receives(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);
ibv_qp* create_queue_pair(ibv_context*, ibv_qp_init_attr_ex*);
int post_sends(ibv_qp*, ibv_send_wr*, ibv_send_wr**);
int post_receives(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**);
void hear_async_event(const verbs::AsyncEvent&);

}  // namespace weft::abi
