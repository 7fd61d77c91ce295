// SPDX-License-Identifier: Apache-2.0
// The channels by which completion queues tell that they have something.
#include "abi/verbs/completion_channel.hpp"

#include <unistd.h>

#include <utility>

#include "abi/limits.hpp"
#include "abi/verbs/acknowledgements.hpp"
#include "abi/verbs/context.hpp"
#include "abi/verbs/event_descriptor.hpp"
#include "abi/verbs/inventory.hpp"

namespace weft::abi {
namespace {

CompletionQueue* take_oldest(CompletionChannel& channel) {
    if (channel.with_events.empty()) return nullptr;
    auto& queue = channel.with_events.pop_front();
    if (--queue.events_waiting > 0) channel.with_events.push_back(queue);
    ++queue.events_delivered;
    if (channel.uncounted > 0)
        --channel.uncounted;
    else
        uncount_event(channel.fd);
    return &queue;
}

/// Looks at the network for who waits here. The first event that this brings is taken at once, and
/// the way through the descriptor is saved; what comes besides, others must be able to see.
CompletionQueue* look(CompletionChannel& channel, Engine::Waiting& waiting) {
    channel.reader_looks = true;
    waiting.turn();
    channel.reader_looks = false;
    auto* queue = take_oldest(channel);
    for (; channel.uncounted > 0; --channel.uncounted) count_event(channel.fd);
    return queue;
}

void free_channel(CompletionChannel& channel) {
    ::close(channel.fd);
    delete &channel;
}

/// A thread that waits at a channel; programs destroy it under one that they cancel later. Made in
/// the Hold in which it was seen that there is something to wait for, unmade outside.
class Reader {
public:
    explicit Reader(CompletionChannel& channel) : channel_(channel) { ++channel_.readers; }
    ~Reader() {
        Hold hold;
        if (--channel_.readers == 0 && channel_.is_destroyed) free_channel(channel_);
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

private:
    CompletionChannel& channel_;
};

/// Inside a Hold. A queue that was armed, whether it has something or not.
CompletionQueue* take_unfounded(CompletionChannel& channel) {
    for (auto& [engine_side, queue] : Inventory::get().completion_queues) {
        if (queue->channel != &channel || !queue->is_armed) continue;
        ++queue->events_delivered;
        return queue;
    }
    return nullptr;
}

/// What who waits at a channel can hope for.
struct Prospects {
    bool may_complete = false;  ///< something is posted that will be told of here
    std::uint64_t writes = 0;   ///< that peers have made, of which nothing is told
};

/// Inside a Hold. Where there are many queue pairs nobody looks through all of them for each wait.
Prospects prospects(const CompletionChannel& channel) {
    constexpr std::size_t looked_through = 64;
    auto& queue_pairs = Inventory::get().queue_pairs;
    if (queue_pairs.size() > looked_through) return {.may_complete = true};
    Prospects found;
    for (auto& [number, queue_pair] : queue_pairs) {
        auto tells = [&](ibv_cq* queue) { return queue && of(*queue).channel == &channel; };
        auto& face = *queue_pair->face();
        if (!queue_pair->engine_side || (!tells(face.send_cq) && !tells(face.recv_cq))) continue;
        found.may_complete |= queue_pair->engine_side->expects_completions();
        found.writes += queue_pair->engine_side->writes_received();
    }
    return found;
}

/// Outside a Hold. Null, and errno, if the wait was interrupted.
///
/// Some programs wait here for what no completion will tell them: perftest, when it has run out of
/// the credits that its peer writes into its memory. Slower completions than ours would still be
/// coming then, and wake it. So who waits although nothing is left that could complete is given an
/// event without a completion, as any program must expect, when a peer has written; and who has
/// waited for a while although the network brought something is given one as well.
CompletionQueue* await_event(CompletionChannel& channel, Engine& engine) {
    Engine::Waiting waiting(engine, Engine::Waiting::Hurry::yes);
    std::optional<Instant> end;
    for (bool network_spoke = false;;) {
        {
            Hold hold;
            if (auto* queue = look(channel, waiting)) return queue;
            auto now = engine.world().now();
            auto [may_complete, writes] = prospects(channel);
            bool was_written = std::exchange(channel.writes_seen, writes) != writes;
            if ((was_written && !may_complete) || (end && *end <= now)) {
                if (auto* queue = take_unfounded(channel)) return queue;
                end.reset();
            }
            if ((network_spoke || was_written) && !end) end = now + limits::patience_with_events;
        }
        auto ready = waiting.sleep(channel.fd, end);
        if (ready < 0 && !goes_on_after_signal()) return nullptr;
        network_spoke = ready == 0;
    }
}

}  // namespace

void add_event(CompletionChannel& channel, CompletionQueue& queue) {
    if (queue.events_waiting++ == 0) channel.with_events.push_back(queue);
    if (channel.reader_looks)
        ++channel.uncounted;
    else
        count_event(channel.fd);
}

void forget_events(CompletionChannel& channel, CompletionQueue& queue) {
    for (auto left = channel.with_events.size(); left > 0; --left) {
        auto& each = channel.with_events.pop_front();
        if (&each != &queue) channel.with_events.push_back(each);
    }
    for (; queue.events_waiting > 0; --queue.events_waiting) uncount_event(channel.fd);
}

void expect_reader(CompletionChannel& channel, CompletionQueue& queue) {
    if (channel.reader_waits_here || std::exchange(queue.is_awaited_elsewhere, true)) return;
    Engine::get().begin_wait_elsewhere();
}

void stop_waiting_elsewhere(CompletionQueue& queue) {
    if (std::exchange(queue.is_awaited_elsewhere, false)) Engine::get().end_wait_elsewhere();
}

}  // namespace weft::abi

using namespace weft::abi;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* face) {
    Hold hold;
    auto& context = of(*face);
    if (int wrong = why_not(context, Kind::channel)) return refuse(wrong);
    return make_or_refuse([&]() -> ibv_comp_channel* {
        auto channel = std::make_unique<CompletionChannel>(context);
        channel->fd = make_event_descriptor();
        return channel->fd < 0 ? nullptr : channel.release();
    });
}

int ibv_destroy_comp_channel(ibv_comp_channel* face) {
    Hold hold;
    auto& channel = of(*face);
    if (channel.is_inherited()) {
        // The rest of it points into the parent's engine.
        if (channel.has_descriptors()) ::close(channel.fd);
        return 0;
    }
    if (channel.refcnt > 0) return EBUSY;
    channel.is_destroyed = true;
    if (channel.readers == 0) free_channel(channel);
    return 0;
}

int ibv_get_cq_event(ibv_comp_channel* face, ibv_cq** cq, void** cq_context) {
    auto& channel = of(*face);
    Engine* engine = nullptr;
    CompletionQueue* queue = nullptr;
    std::optional<Reader> reader;
    {
        Hold hold;
        if (channel.is_inherited()) {
            errno = EIO;
            return -1;
        }
        queue = take_oldest(channel);
        bool may_wait = queue || !is_nonblocking(channel.fd);
        channel.found_ready = queue ? channel.found_ready + 1 : 0;
        if (!queue) channel.reader_waits_here = may_wait;
        if (channel.found_ready > limits::events_of_a_habit) channel.reader_waits_here = false;
        if (!may_wait) {
            errno = EAGAIN;
            return -1;
        }
        engine = &Engine::get();
        if (!queue) reader.emplace(channel);
    }
    if (!queue) queue = await_event(channel, *engine);
    if (!queue) return -1;
    *cq = queue->face();
    *cq_context = queue->cq_context;
    return 0;
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
    if (count > 0) acknowledge(*cq, cq->comp_events_completed, count);
}

}  // extern "C"
