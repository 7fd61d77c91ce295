// SPDX-License-Identifier: Apache-2.0
#include "verbs/queue_pair.hpp"

#include "base/check.hpp"
#include "iwarp/memory_faults.hpp"

namespace weft::verbs {
namespace {

/// What the peer's Terminate says about the work it stumbled on.
Status status_for(const wire::TerminateControl& why) {
    using enum wire::TerminateLayer;
    bool protection =
        (why.layer == rdmap &&
         why.error_type == static_cast<std::uint8_t>(wire::RdmapErrorType::remote_protection)) ||
        (why.layer == ddp &&
         why.error_type == static_cast<std::uint8_t>(wire::DdpErrorType::tagged_buffer));
    if (protection) return Status::remote_access;
    bool untagged = why.layer == ddp && why.error_type == static_cast<std::uint8_t>(
                                                              wire::DdpErrorType::untagged_buffer);
    if (untagged) return Status::remote_invalid;
    return why.layer == mpa ? Status::flushed : Status::remote_operation;
}

AsyncEvent::Kind event_for(const wire::TerminateControl& why, iwarp::FaultOf whose) {
    if (whose == iwarp::FaultOf::peer) return AsyncEvent::Kind::queue_pair_failed;
    bool senseless =
        why.layer == wire::TerminateLayer::rdmap &&
        why.error_type == static_cast<std::uint8_t>(wire::RdmapErrorType::remote_operation);
    if (senseless) return AsyncEvent::Kind::request_violation;
    switch (status_for(why)) {
        case Status::remote_access:
            return AsyncEvent::Kind::access_violation;
        case Status::remote_invalid:
            return AsyncEvent::Kind::request_violation;
        default:
            return AsyncEvent::Kind::queue_pair_failed;
    }
}

Termination termination_of(const wire::TerminateControl& why, iwarp::FaultOf whose,
                           const iwarp::Quoted& about) {
    using About = Termination::About;
    Termination said{
        .from = whose == iwarp::FaultOf::us ? Termination::From::us : Termination::From::peer,
        .layer = static_cast<std::uint8_t>(why.layer),
        .error_type = why.error_type,
        .error_code = why.error_code};
    if (about.header) said.about = About::other;
    auto* tagged = about.header ? std::get_if<wire::TaggedSegment>(&*about.header) : nullptr;
    if (tagged && tagged->opcode == wire::RdmapOpcode::write) {
        said.about = About::write;
        said.target = {static_cast<std::uint64_t>(tagged->offset), tagged->steering_tag};
    } else if (about.read_request) {
        const auto& request = *about.read_request;
        said.about = About::read;
        said.target = {static_cast<std::uint64_t>(request.source_offset), request.source_tag};
        said.size = request.size;
    }
    return said;
}

}  // namespace

QueuePairObject::QueuePairObject(std::shared_ptr<DeviceCore> core, const QueuePairOptions& options)
    : core_(std::move(core)),
      number_(core_->next_queue_pair++),
      domain_(std::static_pointer_cast<ProtectionDomainObject>(options.domain)),
      send_completions_(std::static_pointer_cast<CompletionQueueObject>(options.send_completions)),
      receive_completions_(
          std::static_pointer_cast<CompletionQueueObject>(options.receive_completions)),
      shared_(std::static_pointer_cast<SharedReceiveQueueObject>(options.shared_receives)),
      sends_({.capacity = options.sends,
              .pieces = options.pieces,
              .inline_bytes = options.inline_bytes,
              .sends_own_memory = options.sends_own_memory},
             core_->memory, {domain_->id(), iwarp::QueuePairId{number_}}),
      receives_(shared_ ? 0 : options.receives, options.pieces) {}

QueuePairObject::~QueuePairObject() {
    if (link_) link_->queue_pair_gone();
    link_ = nullptr;
    session_.reset();
    drop_taken();
    if (sends_.unpolled() > 0) send_completions_->forget(sends_.unpolled());
}

void QueuePairObject::drop_taken() {
    if (!taken_) return;
    shared_ ? shared_->give_back(*taken_) : receives_.give_back(*taken_);
    taken_ = nullptr;
}

Result<void> QueuePairObject::post(const SendRequest& request) {
    if (state_ == QueuePairState::idle) return Error{.code = Code::disconnected};
    if (state_ != QueuePairState::running) {
        // Taken and flushed, so that an application finds all it posted in one place.
        auto posted = sends_.post_flushed(request);
        report_ended_sends();
        return posted;
    }
    if (auto posted = sends_.post(request, session_->terms()); !posted) return posted;
    wake();
    return {};
}

Result<void> QueuePairObject::post(const ReceiveRequest& request) {
    if (shared_) return Error{.code = Code::unsupported};
    if (auto posted = receives_.post(request); !posted) return posted;
    if (state_ == QueuePairState::running)
        session_->receive_posted();
    else if (state_ != QueuePairState::idle)
        flush_receives();
    return {};
}

Result<void> QueuePairObject::check(std::span<const SendRequest> requests) const {
    if (state_ == QueuePairState::idle) return Error{.code = Code::disconnected};
    bool runs = state_ == QueuePairState::running;
    if (requests.size() > sends_.room())
        return Error{.code = Code::exhausted, .where = static_cast<std::uint32_t>(sends_.room())};
    for (auto& request : requests)
        if (auto good = sends_.check(request, runs ? session_->terms() : terms_of_the_ended); !good)
            return good;
    return {};
}

void QueuePairObject::fail() {
    if (state_ == QueuePairState::running) return session_->fail(iwarp::local_fault());
    note(LifeEvent::fault);
    if (link_ && !session_) link_->queue_pair_failed();
}

Result<void> QueuePairObject::reset() {
    if (state_ == QueuePairState::idle) return {};
    if (state_ != QueuePairState::failed || link_) return Error{.code = Code::exhausted};
    note(LifeEvent::reset);
    sends_.reset();
    return {};
}

bool QueuePairObject::give_back(SteeringTag tag) {
    if (!link_ || !session_ || !session_->holds(tag)) return false;
    link_->drop_stream();
    return true;
}

iwarp::Session& QueuePairObject::begin_session(const iwarp::Terms& terms,
                                               const iwarp::SessionOptions& options) {
    session_ = std::make_unique<iwarp::Session>(
        *this, core_->memory,
        iwarp::Asker{domain_->id(), iwarp::QueuePairId{number_}, &remote_limit_}, core_->buffers,
        terms, options);
    termination_.reset();
    note(LifeEvent::connected);
    return *session_;
}

void QueuePairObject::unlink() {
    link_ = nullptr;
    session_.reset();
    sends_.stream_gone();
    report_ended_sends();
}

std::optional<iwarp::Message> QueuePairObject::next_work() {
    auto message = sends_.next_message(session_->reads());
    if (sends_.has_failed()) session_->fail(iwarp::local_fault());
    if (sends_.waits_for_memory()) core_->memory_waiters.add(*this);
    // Local work may have ended on the way, and what is done before the end is reported before it.
    report_ended_sends();
    return message;
}

void QueuePairObject::work_sent() {
    sends_.message_sent();
    report_ended_sends();
}

void QueuePairObject::read_ended(std::uint64_t) {
    sends_.read_ended();
    report_ended_sends();
    if (sends_.has_failed()) return session_->fail(iwarp::local_fault());
    if (sends_.has_unbegun()) wake();  // it may have waited for room, or behind a fence
}

const iwarp::PostedReceive* QueuePairObject::take_receive() {
    taken_ = shared_ ? shared_->take(*this) : receives_.take();
    return taken_ ? &taken_->receive : nullptr;
}

void QueuePairObject::receive_ended(const iwarp::ReceiveOutcome& outcome) {
    end_receive(outcome);
}

void QueuePairObject::end_receive(const iwarp::ReceiveOutcome& outcome) {
    WEFT_CHECK(taken_);
    Completion completion{.id = taken_->receive.id,
                          .status = outcome.status,
                          .what = outcome.what,
                          .solicited = outcome.solicited,
                          .bytes = outcome.bytes,
                          .immediate = outcome.immediate,
                          .invalidated = outcome.invalidated};
    drop_taken();
    report(*receive_completions_, completion, nullptr);
}

void QueuePairObject::wake() {
    if (link_) link_->wake();
}

void QueuePairObject::peer_spoke() {
    if (link_) link_->peer_spoke();
    if (sends_.has_unbegun()) wake();
}

void QueuePairObject::receive_posted() {
    if (session_ && state_ == QueuePairState::running) session_->receive_posted();
}

void QueuePairObject::session_failed(const wire::TerminateControl& why, iwarp::FaultOf whose,
                                     const iwarp::Quoted& about) {
    termination_ = termination_of(why, whose, about);
    if (whose == iwarp::FaultOf::peer)
        step(LifeEvent::peer_terminated, {status_for(why), about}, event_for(why, whose));
    else
        step(LifeEvent::fault, {}, event_for(why, whose));
}

void QueuePairObject::step(LifeEvent event, const Blame& blame, AsyncEvent::Kind kind) {
    auto next = next_step(state_, event);
    if (!next) return;
    state_ = next->to;
    if (includes(next->then, Duty::raise_event))
        core_->raise({.kind = kind, .queue_pair = number_});
    if (includes(next->then, Duty::flush_work)) flush(blame);
}

void QueuePairObject::flush(const Blame& blame) {
    sends_.flush(blame);
    report_ended_sends();
    MemoryWaiter::stop_waiting();
    ReceiveWaiter::stop_waiting();
    flush_receives();
    if (shared_)
        core_->raise({.kind = AsyncEvent::Kind::last_receive_reached, .queue_pair = number_});
}

void QueuePairObject::flush_receives() {
    if (taken_) end_receive({.status = Status::flushed});
    while ((taken_ = receives_.take())) end_receive({.status = Status::flushed});
}

void QueuePairObject::report_ended_sends() {
    while (auto completion = sends_.next_completion())
        report(*send_completions_, *completion, &sends_.unpolled());
}

void QueuePairObject::report(CompletionQueueObject& queue, Completion completion,
                             std::uint32_t* unpolled) {
    completion.queue_pair = number_;
    if (queue.push(completion, unpolled)) return;
    if (session_ && state_ == QueuePairState::running) session_->fail(iwarp::local_fault());
}

}  // namespace weft::verbs
