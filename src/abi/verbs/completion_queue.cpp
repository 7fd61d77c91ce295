// SPDX-License-Identifier: Apache-2.0
// Completion queues.
#include <deque>
#include <new>

#include "abi/limits.hpp"
#include "abi/verbs/acknowledgements.hpp"
#include "abi/verbs/async_events.hpp"
#include "abi/verbs/completion_channel.hpp"
#include "abi/verbs/context.hpp"
#include "abi/verbs/inventory.hpp"
#include "abi/verbs/poll.hpp"
#include "verbs/limits.hpp"

namespace weft::abi {
namespace {

void notify(CompletionQueue& queue) {
    queue.is_armed = false;
    stop_waiting_elsewhere(queue);
    if (queue.channel) add_event(of(*queue.channel), queue);
}

int check(const ibv_context& context, const ibv_cq_init_attr_ex& wish) {
    constexpr std::uint32_t known_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    constexpr std::uint32_t known_flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    constexpr std::uint64_t known_fields = IBV_WC_STANDARD_FLAGS;
    if (wish.comp_mask & ~known_mask) return EOPNOTSUPP;
    if ((wish.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (wish.flags & ~known_flags))
        return EOPNOTSUPP;
    if (wish.wc_flags & ~known_fields) return EOPNOTSUPP;
    if (wish.cqe == 0 || wish.cqe > verbs::limits::completions) return EINVAL;
    return wish.comp_vector >= static_cast<std::uint32_t>(context.num_comp_vectors) ? EINVAL : 0;
}

/// There are programs that go on polling a queue which a callback of theirs has just destroyed:
/// libiscsi, when an initiator leaves. For a while something is there, and it has nothing.
void bury(CompletionQueue& queue) {
    static auto* of_the_dead = [] {
        auto* context = new ibv_context{};
        context->ops.poll_cq = [](ibv_cq*, int, ibv_wc*) { return 0; };
        context->ops.req_notify_cq = [](ibv_cq*, int) { return 0; };
        return context;
    }();
    static auto* graves = new std::deque<void*>;
    queue.~CompletionQueue();
    auto* grave = new (&queue) ibv_cq{};
    grave->context = of_the_dead;
    graves->push_back(grave);
    if (graves->size() <= limits::buried_completion_queues) return;
    ::operator delete(graves->front());
    graves->pop_front();
}

}  // namespace

CompletionQueue::CompletionQueue(Context& home)
    : ibv_cq_ex{}, Tenant(home, Kind::completion_queue) {
    context = &home.face();
    mutex = PTHREAD_MUTEX_INITIALIZER;
    cond = PTHREAD_COND_INITIALIZER;
}

CompletionQueue::~CompletionQueue() {
    Inventory::get().completion_queues.erase(engine_side.get());
    if (!channel) return;
    forget_events(of(*channel), *this);
    --channel->refcnt;
}

ibv_cq_ex* create_completion_queue(ibv_context* face, ibv_cq_init_attr_ex* wish) {
    if (int wrong = check(*face, *wish)) return refuse(wrong);
    Hold hold;
    auto& context = of(*face);
    if (int wrong = why_not(context, Kind::completion_queue)) return refuse(wrong);
    if (wish->channel && of(*wish->channel).is_inherited()) return refuse(EIO);
    return make_or_refuse([&]() -> ibv_cq_ex* {
        auto queue = std::make_unique<CompletionQueue>(context);
        auto* itself = queue.get();
        auto made =
            Engine::get().device().make_completion_queue(wish->cqe, [itself] { notify(*itself); });
        if (!made) return refuse(errno_of(made.error()));
        queue->engine_side = std::move(*made);
        queue->cq_context = wish->cq_context;
        queue->cqe = static_cast<int>(queue->engine_side->capacity());
        fill_readers(*queue);
        bool has_one_thread = (wish->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
                              (wish->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
        pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
        if (!has_one_thread) queue->turn = fresh;
        Inventory::get().completion_queues[queue->engine_side.get()] = itself;
        queue->channel = wish->channel;
        if (wish->channel) ++wish->channel->refcnt;
        return queue.release();
    });
}

int request_notification(ibv_cq* face, int solicited_only) {
    Hold hold;
    auto& queue = of(*face);
    if (queue.is_inherited()) return EIO;
    if (!queue.engine_side) return 0;  // as when it is gone: it will have nothing
    using enum verbs::CompletionQueue::Wanted;
    queue.engine_side->arm(solicited_only ? solicited : any);
    queue.is_armed = true;
    if (queue.channel) expect_reader(of(*queue.channel), queue);
    return 0;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                      ibv_comp_channel* channel, int vector) {
    if (entries <= 0 || vector < 0) return refuse(EINVAL);
    ibv_cq_init_attr_ex wish{};
    wish.cqe = static_cast<std::uint32_t>(entries);
    wish.cq_context = cq_context;
    wish.channel = channel;
    wish.comp_vector = static_cast<std::uint32_t>(vector);
    return reinterpret_cast<ibv_cq*>(create_completion_queue(context, &wish));
}

int ibv_resize_cq(ibv_cq* face, int entries) {
    if (entries <= 0) return EINVAL;
    Hold hold;
    auto& queue = of(*face);
    if (int wrong = why_unusable(queue)) return wrong;
    try {
        auto resized = queue.engine_side->resize(static_cast<std::size_t>(entries));
        if (!resized) return errno_of(resized.error());
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
    queue.cqe = entries;
    return 0;
}

int ibv_destroy_cq(ibv_cq* face) {
    auto& queue = of(*face);
    std::uint32_t delivered = 0, async_delivered = 0;
    {
        Hold hold;
        if (queue.is_inherited()) return 0;
        if (queue.users > 0) return EBUSY;
        stop_waiting_elsewhere(queue);
        if (queue.channel) forget_events(of(*queue.channel), queue);
        forget_async_events(of(*queue.context), face);
        Inventory::get().completion_queues.erase(queue.engine_side.get());
        queue.engine_side.reset();
        delivered = queue.events_delivered;
        async_delivered = queue.async_events_delivered;
    }
    await_acknowledgements(*face, face->comp_events_completed, delivered);
    await_acknowledgements(*face, face->async_events_completed, async_delivered);
    Hold hold;
    bury(queue);
    return 0;
}

}  // extern "C"
