// SPDX-License-Identifier: Apache-2.0
#include "sim/rdma_endpoint.hpp"

#include <utility>

namespace weft::sim {

using verbs::Operation;
using verbs::Status;

namespace {
/// The longest that bytes are kept lent after the peer has them: a delay, and what clogs add.
constexpr Duration clog_max = std::chrono::milliseconds(2);
}  // namespace

Endpoint::Endpoint(Station& the_station, Pair& pair, unsigned side, const RdmaHabits& the_habits)
    : station(the_station), habits(the_habits), tags(the_station), pair_(pair), side_(side) {
    send_completions_ = station.completion_queue();
    receive_completions_ = station.completion_queue();
    make_queue_pair();
}

void Endpoint::make_queue_pair() {
    auto options = station.habits.queues;
    options.domain = station.domain;
    options.send_completions = send_completions_;
    options.receive_completions = receive_completions_;
    options.shared_receives = station.shared_receives;
    auto made = station.device->make_queue_pair(options);
    WEFT_CHECK(made);
    queue_pair = std::move(*made);
    ++queue_pairs;
    last_shared_ = 0;
}

void Endpoint::destroy_queue_pair() {
    // What has completed can still be polled; what has not never will.
    while (station.poll(64) > 0) continue;
    excuse();
    queue_pair.reset();
    is_over = true;
    for (auto& work : unfinished_) pair_.frozen.push_back(work);
    unfinished_.clear();
    for (auto& receive : posted_) {
        settle_unreceived(receive);
        pair_.frozen.push_back(receive.lease);
    }
    posted_.clear();
}

bool Endpoint::is_running() const {
    return queue_pair && queue_pair->state() == verbs::QueuePairState::running;
}

void Endpoint::complain(const std::string& what) {
    station.complaints.add(station.name + ", queue pair of pair " + std::to_string(pair_.number) +
                           ", connection " + std::to_string(pair_.generation) + ": " + what);
}

void Endpoint::left() {
    is_over = true;
    pair_.failed = true;
}

void Endpoint::happened(verbs::AsyncEvent::Kind kind) {
    using Kind = verbs::AsyncEvent::Kind;
    bool may_repeat = kind == Kind::completions_overflowed || kind == Kind::receives_low;
    if (++events_[static_cast<std::size_t>(kind)] > 1 && !may_repeat)
        complain("was told the same twice");
    if (kind == Kind::last_receive_reached && !station.shared_receives)
        complain("was told of shared receives, and has none");
}

bool Endpoint::post(Draft& draft) {
    auto work = draft.work;
    auto& request = draft.request;
    request.local = draft.local;
    request.id = work->id = ++last_id_;
    work->operation = request.operation;
    work->signalled = request.signalled;
    work->solicited = request.solicited;
    work->immediate = request.immediate;
    work->invalidate = request.invalidate;
    auto posted = queue_pair->post(request);
    if (!posted) {
        bool full = posted.error().code == Code::exhausted && !unfinished_.empty();
        bool early = posted.error().code == Code::disconnected &&
                     queue_pair->state() == verbs::QueuePairState::idle;
        if (!full && !early && !habits.overflows) complain("refused good work");
        return false;
    }
    if (request.inlined && work->local) {
        // The bytes were copied: the memory is the application's again.
        station.memory.write(work->local->stretches(),
                             station.memory.random_bytes(work->local->size()));
        work->local.reset();
    }
    if (work->remote && work->changes_memory()) {
        ++work->remote->changes;
        work->remote->lease->may_become(draft.changed);
        overtake(work->remote->reads, draft.changed);
    }
    if (work->awaits_answer()) {
        if (work->remote && !work->changes_memory()) work->remote->reads.push_back(work);
        if (work->local) {
            auto brought = work->payload;
            brought.resize(work->local->size());
            work->local->may_become(brought);
        }
        if (!work->fails_there) last_read = work;
    }
    if (work->remote) last_target = work->remote;
    for (auto& grant : {work->opens, work->closes})
        if (grant) grant->usable = false, grant->changing = true;
    sent_.push_back(work);
    unfinished_.push_back(work);
    return true;
}

void Endpoint::overtake(const std::vector<std::weak_ptr<Work>>& reads, const Bytes& changed) {
    for (auto& each : reads) {
        auto read = each.lock();
        if (!read || !read->local) continue;
        read->overtaken = true;
        auto brought = changed;
        brought.resize(read->local->size());
        read->local->may_become(brought);
    }
}

void Endpoint::post_receive(bool bad) {
    auto place = station.choose_for_receive(pair_.number);
    if (!place) return;
    auto& random = station.random();
    auto size = station.receive_size;
    if (habits.short_receives) size = random.between(0, size);
    PostedReceive receive{++station.receives_posted,
                          station.memory.lease(part_of(place->stretches, 0, size)), bad};
    std::vector<verbs::LocalMemory> local;
    for (std::size_t at = 0; at < size;) {
        bool last = local.size() + 1 == station.habits.queues.pieces;
        auto count = last ? size - at : random.between(1, size - at);
        local.push_back(place->grant->local(place->offset + at, count));
        if (bad) local.back().tag = with_other_key(local.back().tag);
        at += count;
    }
    verbs::ReceiveRequest request{receive.id, local};
    auto posted = station.shared_receives ? station.shared_receives->post(request)
                                          : queue_pair->post(request);
    if (!posted && posted.error().code != Code::exhausted) complain("refused a good receive");
    if (posted) (station.shared_receives ? station.shared_posted : posted_).push_back(receive);
}

bool Endpoint::owes_receive() {
    auto posted = station.shared_receives ? station.shared_receives->posted() : posted_.size();
    return posted == 0 && peer().next_to_be_received() != nullptr;
}

void Endpoint::completed(const verbs::Completion& completion) {
    if (completion.what == verbs::Ended::sent)
        send_completed(completion);
    else
        receive_completed(completion);
}

void Endpoint::send_completed(const verbs::Completion& completion) {
    while (!unfinished_.empty()) {
        auto work = unfinished_.front();
        unfinished_.pop_front();
        if (work->id == completion.id) {
            if (completion.operation != work->operation) complain("completed another operation");
            if (completion.status != Status::success) return end_failed(*work, completion.status);
            if (work->awaits_answer() && completion.bytes != work->payload.size())
                complain("read another number of bytes");
            if (!work->signalled) complain("completed unsignalled work that succeeded");
            return end_successful(*work);
        }
        if (habits.overflows) continue;  // it may have completed, and that was lost
        if (!work->signalled)
            end_successful(*work);
        else
            complain("work " + std::to_string(completion.id) + " completed before " +
                     std::to_string(work->id));
    }
    complain("work " + std::to_string(completion.id) + " completed, and was not awaited");
}

void Endpoint::end_successful(Work& work) {
    work.ended = true;
    if (refused_) complain("work succeeded behind what the peer had refused");
    if (work.fails_here) complain("work succeeded that a tag of our own should have stopped");
    if (work.awaits_answer()) {
        for (auto& earlier : sent_) {
            if (earlier->fails_there) complain("the peer answered what it should have refused");
            if (earlier.get() == &work) break;
        }
        carried_out_before(work);
        if (work.local && work.overtaken)
            work.local->settle_for_any_since("what a read brought that a write overtook");
        else if (work.local)
            work.local->settle("what a read or atomic brought");
        if (work.changes_memory())
            carry_out(work);
        else
            let_linger(work);
    }
    work.local.reset();
    if (auto grant = work.opens) {
        grant->tag = work.tag_of_opened();
        grant->usable = true;
        grant->changing = false;
    }
    if (work.closes && work.operation != Operation::send_invalidate) work.closes->changing = false;
}

void Endpoint::let_linger(Work& work) {
    auto until = station.world.now() + habits.links.longest_delay + clog_max;
    if (work.remote) {
        std::erase_if(work.remote->reads, [&](auto& each) { return each.lock().get() == &work; });
        work.remote->lent_until = until;
    }
    pair_.lingering.emplace_back(until, std::move(work.remote));
    for (auto& use : work.uses) pair_.lingering.emplace_back(until, std::move(use));
    work.uses.clear();
}

void Endpoint::end_failed(Work& work, Status status) {
    work.ended = true;
    pair_.failed = true;
    check_excuse(work, status);
    if (work.awaits_answer() && work.local)
        work.local->settle_for_any("the memory of a read or atomic that failed");
    // No byte comes or goes any more: the memory is the application's again.
    if (!work.awaits_answer() && work.local.use_count() == 1 && !work.local->has_ended())
        station.memory.write(work.local->stretches(),
                             station.memory.random_bytes(work.local->size()));
    work.local.reset();
    for (auto& use : work.uses) pair_.frozen.push_back(use);
}

void Endpoint::check_excuse(const Work& work, Status status) {
    if (status != Status::flushed && ++failures_ > 1) complain("two failures before the flush");
    refused_ |= status == Status::remote_access || status == Status::remote_invalid ||
                status == Status::remote_operation;
    bool revoked = habits.revocations > 0;
    bool refused =
        std::any_of(sent_.begin(), sent_.end(), [](auto& each) { return each->fails_there; });
    switch (status) {
        case Status::local_protection:
        case Status::local_operation:
        case Status::window_binding:
            if (!work.fails_here && !revoked) complain("work failed here without a reason");
            return;
        case Status::remote_access:
            if (!refused && !revoked) complain("the peer refused what it had allowed");
            return;
        case Status::local_length:
            complain("work to send cannot meet a receive that is too short");
            return;
        default:
            return;
    }
}

std::optional<PostedReceive> Endpoint::find_posted(std::uint64_t id) {
    auto& posted = station.shared_receives ? station.shared_posted : posted_;
    auto found =
        std::find_if(posted.begin(), posted.end(), [&](auto& each) { return each.id == id; });
    if (found == posted.end()) {
        complain("a receive completed that was not awaited");
        return std::nullopt;
    }
    auto receive = *found;
    if (!station.shared_receives && found != posted.begin()) {
        if (!habits.overflows) complain("a receive completed before an earlier one");
        for (auto lost = posted.begin(); lost != found; ++lost) lost->lease->settle_for_anything();
        posted.erase(posted.begin(), found);
        found = posted.begin();
    }
    if (station.shared_receives && receive.id < last_shared_)
        complain("took shared receives out of their order");
    last_shared_ = receive.id;
    posted.erase(found);
    return receive;
}

void Endpoint::receive_completed(const verbs::Completion& completion) {
    auto receive = find_posted(completion.id);
    if (!receive) return;
    // Where completions are lost nobody knows which message this is.
    if (habits.overflows) return receive->lease->settle_for_anything();
    if (completion.status == Status::success)
        end_received(*receive, completion);
    else
        end_unreceived(*receive, completion);
}

Work* Endpoint::next_to_be_received() {
    while (received_ < sent_.size() && !sent_[received_]->takes_receive()) ++received_;
    return received_ < sent_.size() ? sent_[received_].get() : nullptr;
}

void Endpoint::end_received(PostedReceive& receive, const verbs::Completion& completion) {
    auto* work = peer().next_to_be_received();
    if (!work) return complain("received what was not sent");
    ++peer().received_;
    bool immediate = work->operation == Operation::write_immediate;
    if (immediate != (completion.what == verbs::Ended::received_immediate) ||
        (immediate && completion.immediate != work->immediate))
        complain("received other immediate data than was sent");
    if (completion.solicited != work->solicited) complain("solicited is not as it was sent");
    if (completion.bytes != work->payload.size()) complain("received another number of bytes");
    bool invalidates = work->operation == Operation::send_invalidate;
    if (completion.invalidated.has_value() != invalidates ||
        (invalidates && *completion.invalidated != work->invalidate))
        complain("another tag was invalidated than the sender said");
    if (work->closes) work->closes->changing = false;
    peer().carried_out_before(*work);
    if (immediate) peer().carry_out(*work);
    for (auto& each : peer().sent_) {
        if (each->fails_there) complain("a message came after one that had to be refused");
        if (each.get() == work) break;
    }
    if (!immediate) {
        if (work->payload.size() > receive.lease->size())
            return complain("received more than there was room for");
        auto bytes = receive.lease->last_version();
        std::copy(work->payload.begin(), work->payload.end(), bytes.begin());
        receive.lease->may_become(bytes);
    }
    receive.lease->settle("what was received");
    if (receive.is_bad && !immediate && !work->payload.empty())
        complain("received into memory that was not ours");
    work->uses.clear();
}

void Endpoint::end_unreceived(PostedReceive& receive, const verbs::Completion& completion) {
    pair_.failed = true;
    auto* work = peer().next_to_be_received();
    if (completion.status == Status::local_length) {
        excuse();
        if (!work || work->payload.size() <= receive.lease->size())
            complain("a receive was called too short, and is not");
    } else if (completion.status == Status::local_protection) {
        if (receive.is_bad) excuse();
        if (!receive.is_bad && !(work && work->fails_there) && habits.revocations == 0)
            complain("a receive failed without a reason");
    } else if (completion.status != Status::flushed) {
        complain("a receive ended in no way that receives end");
    }
    settle_unreceived(receive);
}

/// It may hold the beginning of the message that met it, if one did.
void Endpoint::settle_unreceived(PostedReceive& receive) {
    if (habits.overflows) return receive.lease->settle_for_anything();
    auto* work = peer().next_to_be_received();
    if (work && work->operation != Operation::write_immediate) {
        auto bytes = receive.lease->last_version();
        std::copy_n(work->payload.begin(), std::min(work->payload.size(), bytes.size()),
                    bytes.begin());
        receive.lease->may_become(bytes);
    }
    receive.lease->settle_for_any("a receive that failed");
}

void Endpoint::carried_out_before(const Work& work) {
    for (; carried_out_ < sent_.size() && sent_[carried_out_]->id < work.id; ++carried_out_)
        carry_out(*sent_[carried_out_]);
}

void Endpoint::carry_out(Work& work) {
    if (std::exchange(work.carried_out, true) || !work.changes_memory() || !work.remote) return;
    if (--work.remote->changes == 0 && !work.fails_there)
        work.remote->lease->settle("what was written there before this");
    if (work.awaits_answer() && !work.ended) return;
    work.remote.reset();
    work.uses.clear();
}

void Endpoint::close_ledger() {
    if (!queue_pair) return;
    for (auto& work : std::exchange(unfinished_, {})) {
        if (work->signalled && !habits.overflows)
            complain("work " + std::to_string(work->id) + " never completed");
        else if (!habits.overflows)
            end_successful(*work);
    }
    bool flushes = queue_pair->state() != verbs::QueuePairState::idle;
    if (flushes && !posted_.empty() && !habits.overflows) complain("a receive was never flushed");
    if (flushes)
        for (auto& receive : std::exchange(posted_, {})) settle_unreceived(receive);
    if (!pair_.excused && next_to_be_received()) complain("what was sent was never received");
}

void Endpoint::begin_anew() {
    if (pair_.failed && !pair_.excused) complain("work failed, and nothing was wrong");
    for (auto& work : sent_) {
        if (work->remote) work->remote->lease->settle_for_any("the target of work that ended");
        if (work->awaits_answer() && work->local)
            work->local->settle_for_any("the memory of work that ended");
    }
    sent_.clear();
    received_ = carried_out_ = 0;
    failures_ = 0;
    refused_ = false;
    events_ = {};
    connection.reset();
    if (!queue_pair) make_queue_pair();
    if (!queue_pair->reset()) complain("cannot be used again");
    tags.renew();
}

}  // namespace weft::sim
