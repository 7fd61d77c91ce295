// SPDX-License-Identifier: Apache-2.0
// Receives that several queue pairs draw from.
#include <algorithm>

#include "abi/verbs/acknowledgements.hpp"
#include "abi/verbs/async_events.hpp"
#include "abi/verbs/context.hpp"
#include "abi/verbs/inventory.hpp"
#include "verbs/limits.hpp"

namespace weft::abi {
namespace {

ibv_srq* create(ibv_pd* domain_face, void* srq_context, ibv_srq_attr& attributes) {
    namespace each = verbs::limits;
    if (attributes.max_wr == 0 || attributes.max_wr > each::shared_receives ||
        attributes.max_sge > each::pieces)
        return refuse(EINVAL);
    Hold hold;
    auto& domain = of(*domain_face);
    auto& context = of(*domain_face->context);
    if (domain.is_inherited()) return refuse(EIO);
    if (int wrong = why_not(context, Kind::shared_receive_queue)) return refuse(wrong);
    return make_or_refuse([&]() -> ibv_srq* {
        auto queue = std::make_unique<SharedReceiveQueue>(context, domain);
        attributes.max_sge = std::max(attributes.max_sge, 1u);
        auto made =
            Engine::get().device().make_shared_receive_queue(attributes.max_wr, attributes.max_sge);
        if (!made) return refuse(errno_of(made.error()));
        queue->engine_side = std::move(*made);
        queue->srq_context = srq_context;
        queue->limits = attributes;
        queue->limits.srq_limit = 0;
        Inventory::get().shared_receive_queues[queue->engine_side.get()] = queue.get();
        return queue.release();
    });
}

}  // namespace

SharedReceiveQueue::SharedReceiveQueue(Context& home, Domain& domain)
    : ibv_srq{}, Tenant(home, Kind::shared_receive_queue), domain_use(domain.users) {
    context = &home.face();
    pd = &domain;
    mutex = PTHREAD_MUTEX_INITIALIZER;
    cond = PTHREAD_COND_INITIALIZER;
    static std::uint32_t made = 0;
    handle = ++made;
}

SharedReceiveQueue::~SharedReceiveQueue() {
    Inventory::get().shared_receive_queues.erase(engine_side.get());
}

ibv_srq* create_shared_receive_queue(ibv_context*, ibv_srq_init_attr_ex* wish) {
    constexpr std::uint32_t known = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
    if (wish->comp_mask & ~known) return refuse(EOPNOTSUPP);
    if ((wish->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && wish->srq_type != IBV_SRQT_BASIC)
        return refuse(EOPNOTSUPP);
    if (!(wish->comp_mask & IBV_SRQ_INIT_ATTR_PD)) return refuse(EINVAL);
    return create(wish->pd, wish->srq_context, wish->attr);
}

int number_of_shared_receive_queue(ibv_srq* face, std::uint32_t* number) {
    Hold hold;
    *number = of(*face).handle;
    return 0;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* wish) {
    return create(domain, wish->srq_context, wish->attr);
}

int ibv_modify_srq(ibv_srq* face, ibv_srq_attr* attributes, int mask) {
    if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) return EINVAL;
    if (mask & IBV_SRQ_MAX_WR) return EOPNOTSUPP;  // IBV_DEVICE_SRQ_RESIZE is not among our flags
    Hold hold;
    auto& queue = of(*face);
    if (int wrong = why_unusable(queue)) return wrong;
    if (!(mask & IBV_SRQ_LIMIT)) return 0;
    auto set = queue.engine_side->set_low_water(attributes->srq_limit);
    if (!set) return errno_of(set.error());
    queue.limits.srq_limit = attributes->srq_limit;
    return 0;
}

int ibv_query_srq(ibv_srq* face, ibv_srq_attr* attributes) {
    Hold hold;
    auto& queue = of(*face);
    if (queue.is_inherited()) return EIO;
    *attributes = queue.limits;
    return 0;
}

int ibv_destroy_srq(ibv_srq* face) {
    auto& queue = of(*face);
    std::uint32_t delivered = 0;
    {
        Hold hold;
        if (queue.is_inherited()) return 0;
        if (queue.users > 0) return EBUSY;
        forget_async_events(of(*face->context), face);
        Inventory::get().shared_receive_queues.erase(queue.engine_side.get());
        queue.engine_side.reset();
        delivered = queue.events_delivered;
    }
    await_acknowledgements(*face, face->events_completed, delivered);
    Hold hold;
    delete &queue;
    return 0;
}

}  // extern "C"
