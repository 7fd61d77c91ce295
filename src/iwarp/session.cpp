// SPDX-License-Identifier: Apache-2.0
#include "iwarp/session.hpp"

#include "base/check.hpp"
#include "iwarp/fault.hpp"
#include "wire/rdmap.hpp"

namespace weft::iwarp {
namespace {

/// How long to hold back the first word, or to wait for the peer's.
Duration restraint_under(const Terms& terms) {
    if (terms.role == Role::initiator) return limits::first_word_delay;
    return terms.ready == ReadyMessage::none ? limits::silent_initiator_grace
                                             : limits::ready_patience;
}

}  // namespace

std::size_t ulpdu_max(const Terms& terms, std::size_t segment_size) {
    if (terms.peer != Peer::unknown || segment_size == 0) return wire::ulpdu_limit;
    return wire::largest_ulpdu(segment_size,
                               terms.markers_out ? wire::Markers::present : wire::Markers::absent);
}

Session::Session(SessionOwner& owner, MemoryTable& memory, Asker asker, FpduBuffers& buffers,
                 const Terms& terms, const SessionOptions& options)
    : owner_(owner),
      buffers_(buffers),
      terms_(terms),
      reads_(terms.outbound_reads),
      responder_(memory, asker, terms.inbound_reads),
      inbound_(owner, memory, asker, terms_, responder_, reads_),
      receiver_waits_(owner),
      sender_waits_(owner),
      receiver_(inbound_, buffers, receiver_waits_,
                {.checksum = terms.checksum,
                 .markers = terms.markers_in,
                 .placement = options.placement}),
      sender_(*this, memory, buffers, sender_waits_,
              {.checksum = terms.checksum,
               .markers = terms.markers_out,
               .ulpdu_max = ulpdu_max(terms, options.segment_size)}),
      under_way_(limits::messages_under_way),
      ready_message_due_(terms.role == Role::initiator && terms.ready != ReadyMessage::none),
      may_begin_(terms.role == Role::initiator && terms.peer == Peer::weft),
      receive_patience_(options.receive_patience),
      restraint_(restraint_under(terms)) {
    if (!may_begin_) restraint_.begin();
}

Buffer Session::want() {
    if (ended_) return {};
    auto place = receiver_.want();
    if (receiver_.is_amid_fpdu()) fpdu_patience_.begin();
    if (receiver_.holds_buffer()) receiver_holds_.begin();
    return place;
}

void Session::filled(std::size_t count) {
    if (ended_) return;  // they were on their way
    note(receiver_.filled(count));
}

std::size_t Session::take_ahead(ConstBuffer bytes) {
    std::size_t taken = 0;
    while (!ended_) {
        auto size = receiver_.take_whole(bytes.subspan(taken));
        note(size ? Result<void>{} : Result<void>(size.error()));
        if (!size || *size == 0) break;
        taken += *size;
    }
    return taken;
}

void Session::receive_posted() {
    if (ended_ || !receiver_.is_stalled()) return;
    note(receiver_.resume());
    if (!ended_) owner_.wake();
}

void Session::note(Result<void> outcome) {
    if (ended_) return;  // what was received has made the owner end it
    if (!outcome) return fail(outcome.error());
    if (receiver_.is_stalled()) receive_patience_.begin();
    if (inbound_.peer_terminate()) {
        close();
        owner_.session_failed(*inbound_.peer_terminate(), FaultOf::peer, quoted_by_peer());
    }
}

std::size_t Session::pending(std::span<ConstBuffer> pieces) {
    asking_ = true;
    auto count = sender_.pending(pieces);
    asking_ = false;
    if (sender_.has_room()) rest_.begin();
    if (sender_.holds_buffers()) sender_holds_.begin();
    if (!fault_found_) return count;
    fail(*fault_found_);
    return sender_.pending(pieces);
}

void Session::sent(std::size_t count) {
    asking_ = true;
    sender_.sent(count);
    asking_ = false;
    if (fault_found_) fail(*fault_found_);
}

bool Session::may_speak() const {
    return may_begin_ || inbound_.peer_has_spoken();
}

std::optional<Message> Session::next_message() {
    if (!may_speak()) return std::nullopt;
    if (ready_message_due_) {
        ready_message_due_ = false;
        under_way_.push_back(Origin::connection);
        return ready_message();
    }
    // In turns: neither may the peer's long reads starve our work, nor our work its answers.
    for (int attempt = 0; attempt < 2; ++attempt) {
        bool answer = std::exchange(answer_is_next_, !answer_is_next_);
        auto message = answer ? next_answer() : next_work();
        if (fault_found_) return std::nullopt;
        if (message) return message;
    }
    return std::nullopt;
}

std::optional<Message> Session::next_answer() {
    auto message = responder_.next_message();
    if (!message) {
        refused_read_ = responder_.next_read();
        fail(message.error());
        return std::nullopt;
    }
    if (*message) under_way_.push_back(Origin::answer);
    return *message;
}

std::optional<Message> Session::next_work() {
    auto message = owner_.next_work();
    if (message) under_way_.push_back(Origin::work);
    return message;
}

void Session::message_sent() {
    auto origin = under_way_.front();
    under_way_.pop_front();
    if (origin == Origin::answer) responder_.message_sent();
    if (origin == Origin::work) owner_.work_sent();
}

Message Session::ready_message() {
    // Nothing is sent, so no tag is looked at; but some RNICs refuse a tag of 0 unseen.
    constexpr auto no_tag = SteeringTag{1};
    switch (terms_.ready) {
        case ReadyMessage::write:
            return {.opcode = wire::RdmapOpcode::write, .tag = no_tag};
        case ReadyMessage::read: {
            encode(wire::ReadRequest{.sink_tag = no_tag, .source_tag = no_tag}, ready_body_);
            body_piece_ = ready_body_;
            body_source_ = {MemoryRange({&body_piece_, 1}, 0, wire_size<wire::ReadRequest>()), {}};
            reads_.push({.kind = OutstandingRead::Kind::ready_message});
            return {.opcode = wire::RdmapOpcode::read_request, .payload = {&body_source_, 1}};
        }
        default:
            return {.opcode = wire::RdmapOpcode::send};
    }
}

void Session::fail(Error why) {
    if (ended_) return;
    if (asking_) {
        if (!fault_found_) fault_found_ = why;
        return;
    }
    auto control = control_of(why);
    const auto quoted = compose_terminate(control);
    sender_.wind_up(Message{.opcode = wire::RdmapOpcode::terminate, .payload = {&body_source_, 1}});
    end();
    owner_.session_failed(control, FaultOf::us, quoted);
}

/// The ready message had the first number of its queue, and is not the owner's.
Quoted Session::quoted_by_peer() const {
    auto quoted = inbound_.peer_quoted();
    if (terms_.role != Role::initiator || !quoted.header) return quoted;
    auto* untagged = std::get_if<wire::UntaggedSegment>(&*quoted.header);
    bool is_counted =
        untagged &&
        ((terms_.ready == ReadyMessage::send && untagged->queue == wire::QueueNumber::send) ||
         (terms_.ready == ReadyMessage::read &&
          untagged->queue == wire::QueueNumber::read_request));
    if (is_counted) --untagged->message_number;
    return quoted;
}

Quoted Session::compose_terminate(const wire::TerminateControl& control) {
    using enum wire::TerminateLayer;
    wire::Terminate terminate;
    terminate.control = control;
    auto segment = receiver_.segment();
    auto read_request = inbound_.read_request();
    std::array<std::byte, wire_size<wire::UntaggedSegment>()> read_header;
    if (refused_read_) {
        // Other segments have come since: what its header was follows from its number.
        encode(wire::UntaggedSegment{.last = true,
                                     .opcode = wire::RdmapOpcode::read_request,
                                     .queue = wire::QueueNumber::read_request,
                                     .message_number = refused_read_->message_number},
               read_header);
        segment.header_octets = read_header;
        segment.ulpdu_size = read_header.size() + wire_size<wire::ReadRequest>();
        read_request = refused_read_->request;
    }
    // RFC 5040 section 4.8, figure 10: MPA's faults and local ones have no segment to show.
    bool about_a_segment = (control.layer == rdmap || control.layer == ddp) &&
                           control.error_type != 0 && !segment.header_octets.empty();
    if (about_a_segment) {
        terminate.control.segment_size_valid = true;
        terminate.control.segment_header_included = true;
        terminate.segment_size = static_cast<std::uint16_t>(segment.ulpdu_size);
        terminate.segment_header = segment.header_octets;
        bool remote_protection = control.layer == rdmap &&
                                 control.error_type == static_cast<std::uint8_t>(
                                                           wire::RdmapErrorType::remote_protection);
        if (remote_protection && read_request) {
            terminate.control.read_request_included = true;
            terminate.read_request = *read_request;
        }
    }
    auto size = wire::encode_terminate(terminate, terminate_body_);
    body_piece_ = terminate_body_;
    body_source_ = {MemoryRange({&body_piece_, 1}, 0, size), {}};
    Quoted quoted;
    if (!about_a_segment) return quoted;
    if (auto header = wire::decode_segment(segment.header_octets)) quoted.header = *header;
    if (terminate.control.read_request_included) quoted.read_request = terminate.read_request;
    return quoted;
}

void Session::close() {
    if (ended_) return;
    sender_.wind_up(std::nullopt);
    end();
}

void Session::end() {
    ended_ = true;
    inbound_.stop();
    receiver_.stop_waiting();
    owner_.wake();
}

std::optional<Instant> Session::deadline() const {
    if (ended_) return std::nullopt;
    std::optional<Instant> earliest;
    for (auto* patience : {&fpdu_patience_, &receive_patience_, &restraint_, &rest_,
                           &receiver_holds_, &sender_holds_}) {
        auto when = patience->deadline();
        if (when && (!earliest || *when < *earliest)) earliest = when;
    }
    return earliest;
}

/// Ends it if others wait for what it holds without getting on.
bool Session::gives_way(Instant now) {
    bool deaf = receiver_holds_.is_over(
        now, receiver_.holds_buffer(),
        receiver_.fpdu_count() + receiver_.octet_count() / limits::buffer_progress);
    bool mute = sender_holds_.is_over(
        now, sender_.holds_buffers(),
        sender_.fpdus_sent() + sender_.octets_sent() / limits::buffer_progress);
    if (!buffers_.is_short() || !(deaf || mute)) return false;
    stuck_ = mute;
    fail(receiver_.is_stalled() ? fault(wire::UntaggedBufferError::no_buffer)
                                : fault(wire::MpaError::connection_lost));
    receiver_.drop_buffer();
    return true;
}

void Session::tick(Instant now) {
    if (ended_ || gives_way(now)) return;
    if (restraint_.is_over(now, !may_speak(), 0)) {
        bool was_promised = terms_.role == Role::responder && terms_.ready != ReadyMessage::none;
        if (was_promised) return fail(fault(wire::MpaError::connection_lost));
        may_begin_ = true;
        owner_.wake();
    }
    if (rest_.is_over(now, sender_.has_room(), sender_.fpdu_count())) sender_.rest();
    bool stalled = receiver_.is_stalled();
    if (receive_patience_.is_over(now, stalled, receiver_.fpdu_count()))
        return fail(fault(wire::UntaggedBufferError::no_buffer));
    bool peer_is_slow =
        receiver_.is_amid_fpdu() && !stalled && !receiver_waits_.is_waiting_for_buffer;
    if (fpdu_patience_.is_over(now, peer_is_slow, receiver_.fpdu_count()))
        return fail(fault(wire::MpaError::connection_lost));
}

}  // namespace weft::iwarp
