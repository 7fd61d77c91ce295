// SPDX-License-Identifier: Apache-2.0
// Queue pairs: how they are made and how they go. What happens in between is in queue_pair_state,
// post and work_builder; the connection is librdmacm's.
#include <algorithm>

#include "abi/limits.hpp"
#include "abi/verbs/acknowledgements.hpp"
#include "abi/verbs/async_events.hpp"
#include "abi/verbs/context.hpp"
#include "abi/verbs/inventory.hpp"
#include "abi/verbs/work_builder.hpp"
#include "verbs/limits.hpp"

namespace weft::abi {
namespace {

int check(const ibv_qp_init_attr_ex& wish) {
    namespace each = verbs::limits;
    constexpr std::uint32_t known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if (wish.comp_mask & ~known) return EOPNOTSUPP;
    if (wish.qp_type != IBV_QPT_RC) return EOPNOTSUPP;
    if ((wish.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && wish.create_flags) return EOPNOTSUPP;
    bool builds = wish.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if (builds && !can_build(wish.send_ops_flags)) return EOPNOTSUPP;
    if (!(wish.comp_mask & IBV_QP_INIT_ATTR_PD)) return EINVAL;  // else `pd` holds anything
    if (!wish.pd || !wish.send_cq || !wish.recv_cq) return EINVAL;
    auto& cap = wish.cap;
    bool too_much = cap.max_send_wr > each::sends || cap.max_send_sge > each::pieces ||
                    cap.max_recv_wr > each::receives || cap.max_recv_sge > each::pieces ||
                    cap.max_inline_data > each::inline_bytes;
    return too_much ? EINVAL : 0;
}

/// At least what was asked for, and never so little that the engine has nothing to work with.
ibv_qp_cap granted(const ibv_qp_cap& asked, bool has_shared_receives) {
    ibv_qp_cap cap;
    cap.max_send_wr = std::max(asked.max_send_wr, 1u);
    cap.max_send_sge = std::max(asked.max_send_sge, 1u);
    cap.max_recv_wr = has_shared_receives ? 0 : std::max(asked.max_recv_wr, 1u);
    cap.max_recv_sge = has_shared_receives ? 0 : std::max(asked.max_recv_sge, 1u);
    cap.max_inline_data =
        std::max(asked.max_inline_data, static_cast<std::uint32_t>(limits::inline_bytes_least));
    return cap;
}

ibv_qp* create(Context& context, ibv_qp_init_attr_ex& wish) {
    auto& domain = of(*wish.pd);
    auto& sends = of(*wish.send_cq);
    auto& receives = of(*wish.recv_cq);
    auto* shared = wish.srq ? &of(*wish.srq) : nullptr;
    if (domain.is_inherited() || sends.is_inherited() || receives.is_inherited() ||
        (shared && shared->is_inherited()))
        return refuse(EIO);

    auto queue_pair = std::make_unique<QueuePair>(context, domain, sends, receives, shared);
    auto cap = granted(wish.cap, shared != nullptr);
    auto made = Engine::get().device().make_queue_pair(
        {.domain = domain.engine_side,
         .send_completions = sends.engine_side,
         .receive_completions = receives.engine_side,
         .shared_receives = shared ? shared->engine_side : nullptr,
         .sends = cap.max_send_wr,
         .receives = std::max(cap.max_recv_wr, 1u),
         .pieces = std::max(cap.max_send_sge, cap.max_recv_sge),
         .inline_bytes = cap.max_inline_data});
    if (!made) return refuse(errno_of(made.error()));
    queue_pair->engine_side = std::move(*made);
    queue_pair->limits = wish.cap = cap;
    queue_pair->all_signalled = wish.sq_sig_all;
    auto& face = queue_pair->qp_base;
    face.qp_context = wish.qp_context;
    face.qp_num = face.handle = queue_pair->engine_side->number();
    face.qp_type = wish.qp_type;
    face.state = IBV_QPS_RESET;
    if (wish.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) add_builder(*queue_pair);
    Inventory::get().queue_pairs[face.qp_num] = queue_pair.get();
    return queue_pair.release()->face();
}

}  // namespace

QueuePair::QueuePair(Context& home, Domain& domain, CompletionQueue& sends,
                     CompletionQueue& receives, SharedReceiveQueue* shared)
    : ibv_qp_ex{},
      Tenant(home, Kind::queue_pair),
      domain_use(domain.users),
      send_use(sends.users),
      receive_use(receives.users) {
    if (shared) shared_use.emplace(shared->users);
    qp_base.context = &home.face();
    qp_base.pd = &domain;
    qp_base.send_cq = sends.face();
    qp_base.recv_cq = receives.face();
    qp_base.srq = shared;
    qp_base.mutex = PTHREAD_MUTEX_INITIALIZER;
    qp_base.cond = PTHREAD_COND_INITIALIZER;
}

QueuePair::~QueuePair() {
    Inventory::get().queue_pairs.erase(qp_base.qp_num);
}

ibv_qp* create_queue_pair(ibv_context* face, ibv_qp_init_attr_ex* wish) {
    if (int wrong = check(*wish)) return refuse(wrong);
    Hold hold;
    auto& context = of(*face);
    if (int wrong = why_not(context, Kind::queue_pair)) return refuse(wrong);
    return make_or_refuse([&] { return create(context, *wish); });
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wish) {
    ibv_qp_init_attr_ex extended{};
    extended.qp_context = wish->qp_context;
    extended.send_cq = wish->send_cq;
    extended.recv_cq = wish->recv_cq;
    extended.srq = wish->srq;
    extended.cap = wish->cap;
    extended.qp_type = wish->qp_type;
    extended.sq_sig_all = wish->sq_sig_all;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    extended.pd = domain;
    auto* made = create_queue_pair(domain->context, &extended);
    if (made) wish->cap = extended.cap;
    return made;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* face) {
    auto& queue_pair = of(*face);
    return queue_pair.builder ? &queue_pair : nullptr;
}

int ibv_destroy_qp(ibv_qp* face) {
    auto& queue_pair = of(*face);
    std::uint32_t delivered = 0;
    {
        Hold hold;
        if (queue_pair.is_inherited()) return 0;
        forget_async_events(of(*face->context), face);
        Inventory::get().queue_pairs.erase(face->qp_num);
        queue_pair.engine_side.reset();
        delivered = queue_pair.events_delivered;
    }
    await_acknowledgements(*face, face->events_completed, delivered);
    Hold hold;
    delete &queue_pair;
    return 0;
}

}  // extern "C"
