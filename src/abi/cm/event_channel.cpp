// SPDX-License-Identifier: Apache-2.0
// Event channels: queues of what applications are told, each behind a descriptor they can wait for.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "abi/cm/devices.hpp"
#include "abi/cm/limits.hpp"
#include "abi/cm/objects.hpp"
#include "abi/verbs/acknowledgements.hpp"
#include "abi/verbs/event_descriptor.hpp"

namespace weft::abi {

Event::Event(Identifier& whose, rdma_cm_event_type kind, int what_status)
    : rdma_cm_event{}, counted_by(&whose) {
    id = &whose;
    event = kind;
    status = what_status;
}

void Event::tell(ConstBuffer private_data) {
    told.assign(private_data.begin(), private_data.end());
    constexpr std::size_t most = std::numeric_limits<std::uint8_t>::max();
    param.conn.private_data = told.empty() ? nullptr : told.data();
    param.conn.private_data_len = static_cast<std::uint8_t>(std::min(told.size(), most));
}

std::unique_ptr<EventChannel> make_channel() {
    if (!Engine::start()) return nullptr;
    auto channel = std::make_unique<EventChannel>();
    channel->fd = make_event_descriptor();
    return channel->fd < 0 ? nullptr : std::move(channel);
}

void EventChannel::fall_silent() {
    // Programs destroy a channel before its identifiers, on their way out.
    for (auto* identifier : identifiers) identifier->channel = nullptr;
    identifiers.clear();
    for (auto count = events.size(); count > 0; --count) uncount_event(fd);
    events.clear();
    if (fd >= 0 && readers == 0) ::close(std::exchange(fd, -1));
}

EventChannel::~EventChannel() {
    fall_silent();
}

void report(Identifier& whose, rdma_cm_event_type kind, int status) {
    report(std::make_unique<Event>(whose, kind, status));
}

void report(std::unique_ptr<Event> event) {
    auto* channel = event->counted_by->reports_to();
    if (!channel) return;
    channel->events.push_back(std::move(event));
    count_event(channel->fd);
}

/// They are out of the channel when they go: some own an identifier that reports there too.
std::deque<std::unique_ptr<Event>> take_events_of(Identifier& one) {
    auto* channel = one.reports_to();
    if (!channel) return {};
    std::deque<std::unique_ptr<Event>> taken, left;
    for (auto& event : channel->events)
        (event->counted_by == &one ? taken : left).push_back(std::move(event));
    channel->events = std::move(left);
    for (std::size_t i = 0; i < taken.size(); ++i) uncount_event(channel->fd);
    return taken;
}

void report_to(Identifier& one, EventChannel* channel) {
    auto events = take_events_of(one);
    if (auto* before = one.reports_to()) before->identifiers.erase(&one);
    one.channel = channel;
    if (!channel) return;
    channel->identifiers.insert(&one);
    for (auto& event : events) {
        if (event->newcomer) report_to(*event->newcomer, channel);
        report(std::move(event));
    }
}

namespace {

/// Inside a Hold. The oldest event that the application can be told; it is its own from now on.
Event* take_oldest(EventChannel& channel) {
    while (!channel.events.empty()) {
        auto event = std::move(channel.events.front());
        channel.events.pop_front();
        uncount_event(channel.fd);
        auto& owner = *event->counted_by;
        if (event->newcomer) {
            --owner.requests_waiting;
            if (owner.is_synchronous && !give_own_channel(*event->newcomer)) continue;
            event->newcomer.release();
        }
        ++owner.events_delivered;
        return event.release();
    }
    return nullptr;
}

/// Outside a Hold. False, and errno: the wait was interrupted.
bool wait_at(EventChannel& channel) {
    /// Also undone where the thread is cancelled in its wait.
    struct Reader {
        explicit Reader(EventChannel& of) : where(of) {
            Hold hold;
            ++where.readers;
            descriptor = where.fd;
        }
        ~Reader() {
            Hold hold;
            --where.readers;
        }
        EventChannel& where;
        int descriptor = -1;
    } reader(channel);
    return wait_for_event(reader.descriptor);
}

int get_event(EventChannel& channel, rdma_cm_event** told) {
    do {
        Hold hold;
        if (channel.is_inherited()) return fail_with(EIO);
        if (channel.is_destroyed) continue;
        auto* event = take_oldest(channel);
        bool may_wait = !is_nonblocking(channel.fd);
        if (!event && !may_wait) {
            Engine::get().poll();
            event = take_oldest(channel);
            if (!event) Engine::get().will_wait_elsewhere();
        }
        if (event) {
            *told = event;
            return 0;
        }
        if (!may_wait) return fail_with(EAGAIN);
    } while (wait_at(channel));
    return -1;
}

}  // namespace

/// Programs destroy a channel while a thread of theirs waits there, or is about to: rping's and
/// cmtime's do. In the kernel's hands it would wait until the process ends, and so it does in ours.
/// So long the channel cannot be freed; but nobody comes back to one of long ago.
void bury(EventChannel& channel) {
    static auto* destroyed = new std::deque<EventChannel*>;
    channel.fall_silent();
    channel.is_destroyed = true;
    destroyed->push_back(&channel);
    for (auto count = destroyed->size(); count > limits::destroyed_channels; --count) {
        auto* oldest = destroyed->front();
        destroyed->pop_front();
        if (oldest->readers == 0)
            delete oldest;
        else
            destroyed->push_back(oldest);
    }
}

int failure_told_by(const rdma_cm_event& event) {
    if (event.status != 0 && event.event == RDMA_CM_EVENT_REJECTED) return ECONNREFUSED;
    return std::abs(event.status);
}

void show(Identifier& one, rdma_cm_event* event) {
    rdma_cm_event* shown = nullptr;
    {
        Hold hold;
        shown = std::exchange(one.event, event);
    }
    if (shown) rdma_ack_cm_event(shown);
}

int complete(Identifier& one) {
    if (!one.is_synchronous) return 0;
    show(one, nullptr);
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(one.channel, &event) < 0) return -1;
    int failed = failure_told_by(*event);
    show(one, event);
    return failed ? fail_with(failed) : 0;
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
    Hold hold;
    return make_or_refuse([]() -> rdma_event_channel* { return make_channel().release(); });
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
    if (!channel) return;
    Hold hold;
    auto& one = of(*channel);
    if (!one.is_inherited()) return bury(one);
    // The rest of it points into the parent's engine.
    if (one.has_descriptors()) ::close(one.fd);
}

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
    return act_or_fail([&]() -> int {
        if (!channel || !event) return fail_with(EINVAL);
        for (;;) {
            if (get_event(of(*channel), event) < 0) return -1;
            if ((*event)->event != RDMA_CM_EVENT_CONNECT_REQUEST) return 0;
            // Not before, because it makes objects of libibverbs, and that cannot be done in a
            // Hold.
            auto* newcomer = (*event)->id;
            if (attach_device(of(*newcomer))) return 0;
            rdma_ack_cm_event(*event);
            rdma_destroy_id(newcomer);
        }
    });
}

int rdma_ack_cm_event(rdma_cm_event* event) {
    if (!event) return fail_with(EINVAL);
    std::unique_ptr<Event> done(static_cast<Event*>(event));
    auto& owner = *done->counted_by;
    acknowledge(owner, owner.events_acknowledged, 1);
    return 0;
}

}  // extern "C"
