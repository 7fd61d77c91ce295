// SPDX-License-Identifier: Apache-2.0
// What happened to no request in particular: from the engine's listener to ibv_get_async_event().
#include "abi/verbs/async_events.hpp"

#include <algorithm>

#include "abi/limits.hpp"
#include "abi/verbs/acknowledgements.hpp"
#include "abi/verbs/context.hpp"
#include "abi/verbs/event_descriptor.hpp"
#include "abi/verbs/inventory.hpp"

namespace weft::abi {
namespace {

template <class Map, class Key>
auto find(const Map& map, const Key& key) -> typename Map::mapped_type {
    auto found = map.find(key);
    return found == map.end() ? nullptr : found->second;
}

void queue_event(ibv_context& face, const ibv_async_event& event) {
    auto& context = of(face);
    if (context.events.size() >= limits::events_waiting) return;
    context.events.push_back(event);
    count_event(face.async_fd);
}

void tell_queue_pair(std::uint32_t number, ibv_event_type type) {
    auto* queue_pair = find(Inventory::get().queue_pairs, number);
    if (!queue_pair || queue_pair->is_resetting) return;
    bool is_end = type != IBV_EVENT_QP_LAST_WQE_REACHED;
    if (is_end && queue_pair->ends_as_asked) return;
    if (is_end) set_state(*queue_pair, IBV_QPS_ERR);
    ibv_async_event event{};
    event.element.qp = queue_pair->face();
    event.event_type = type;
    queue_event(*queue_pair->face()->context, event);
}

void tell_completion_queue(const verbs::CompletionQueue* which) {
    auto* queue = find(Inventory::get().completion_queues, which);
    if (!queue) return;
    ibv_async_event event{};
    event.element.cq = queue->face();
    event.event_type = IBV_EVENT_CQ_ERR;
    queue_event(*queue->context, event);
}

void tell_shared_receive_queue(const verbs::SharedReceiveQueue* which) {
    auto* queue = find(Inventory::get().shared_receive_queues, which);
    if (!queue) return;
    queue->limits.srq_limit = 0;  // it is told once
    ibv_async_event event{};
    event.element.srq = queue;
    event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
    queue_event(*queue->context, event);
}

enum class About { completion_queue, queue_pair, shared_receive_queue, port };
About what_about(const ibv_async_event& event) {
    switch (event.event_type) {
        case IBV_EVENT_CQ_ERR:
            return About::completion_queue;
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
        case IBV_EVENT_QP_LAST_WQE_REACHED:
            return About::queue_pair;
        case IBV_EVENT_SRQ_LIMIT_REACHED:
            return About::shared_receive_queue;
        default:
            return About::port;
    }
}

void count_delivery(const ibv_async_event& event) {
    switch (what_about(event)) {
        case About::completion_queue:
            ++of(*event.element.cq).async_events_delivered;
            return;
        case About::queue_pair:
            ++of(*event.element.qp).events_delivered;
            return;
        case About::shared_receive_queue:
            ++of(*event.element.srq).events_delivered;
            return;
        case About::port:
            return;
    }
}

bool take_event(Context& context, ibv_async_event& event) {
    if (context.events.empty()) return false;
    event = context.events.front();
    context.events.pop_front();
    uncount_event(context.face().async_fd);
    count_delivery(event);
    return true;
}

}  // namespace

void hear_async_event(const verbs::AsyncEvent& event) {
    using enum verbs::AsyncEvent::Kind;
    switch (event.kind) {
        case queue_pair_failed:
            return tell_queue_pair(event.queue_pair, IBV_EVENT_QP_FATAL);
        case access_violation:
            return tell_queue_pair(event.queue_pair, IBV_EVENT_QP_ACCESS_ERR);
        case request_violation:
            return tell_queue_pair(event.queue_pair, IBV_EVENT_QP_REQ_ERR);
        case last_receive_reached:
            return tell_queue_pair(event.queue_pair, IBV_EVENT_QP_LAST_WQE_REACHED);
        case completions_overflowed:
            return tell_completion_queue(event.completions);
        case receives_low:
            return tell_shared_receive_queue(event.receives);
    }
}

void forget_async_events(Context& context, const void* object) {
    auto before = context.events.size();
    std::erase_if(context.events,
                  [&](const ibv_async_event& event) { return event.element.qp == object; });
    for (auto left = before - context.events.size(); left > 0; --left)
        uncount_event(context.face().async_fd);
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

int ibv_get_async_event(ibv_context* face, ibv_async_event* event) {
    auto& context = of(*face);
    std::optional<Stay> stay;  // programs close the context under a thread that waits for good
    {
        Hold hold;
        if (context.born.is_inherited()) {
            errno = EIO;
            return -1;
        }
        if (take_event(context, *event)) return 0;
        if (is_nonblocking(face->async_fd)) {
            errno = EAGAIN;
            return -1;
        }
        stay.emplace(context);
    }
    for (;;) {
        if (!wait_for_event(face->async_fd)) return -1;
        Hold hold;
        if (take_event(context, *event)) return 0;
    }
}

void ibv_ack_async_event(ibv_async_event* event) {
    switch (what_about(*event)) {
        case About::completion_queue:
            return acknowledge(*event->element.cq, event->element.cq->async_events_completed, 1);
        case About::queue_pair:
            return acknowledge(*event->element.qp, event->element.qp->events_completed, 1);
        case About::shared_receive_queue:
            return acknowledge(*event->element.srq, event->element.srq->events_completed, 1);
        case About::port:
            return;
    }
}

}  // extern "C"
