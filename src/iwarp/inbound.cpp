// SPDX-License-Identifier: Apache-2.0
#include "iwarp/inbound.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "base/foreign_memory.hpp"
#include "iwarp/memory_faults.hpp"
#include "wire/rdmap.hpp"

namespace weft::iwarp {

using wire::QueueNumber;
using wire::RdmapOpcode;

namespace {

bool is_send(RdmapOpcode opcode) {
    return opcode >= RdmapOpcode::send && opcode <= RdmapOpcode::send_solicited_invalidate;
}
bool is_immediate(RdmapOpcode opcode) {
    return opcode == RdmapOpcode::immediate_data || opcode == RdmapOpcode::immediate_data_solicited;
}

/// The one size the body of this message can have; a Terminate's varies.
std::size_t body_size(RdmapOpcode opcode) {
    switch (opcode) {
        case RdmapOpcode::read_request:
            return wire_size<wire::ReadRequest>();
        case RdmapOpcode::atomic_request:
            return wire_size<wire::AtomicRequest>();
        case RdmapOpcode::atomic_response:
            return wire_size<wire::AtomicResponse>();
        default:
            return wire_size<wire::ImmediateData>();
    }
}

std::size_t index_of(QueueNumber queue) {
    return static_cast<std::size_t>(queue);
}

}  // namespace

Inbound::Inbound(SessionOwner& owner, MemoryTable& memory, Asker asker, const Terms& terms,
                 ReadResponder& responder, OutstandingReads& reads)
    : owner_(owner),
      memory_(memory),
      asker_(asker),
      terms_(terms),
      responder_(responder),
      reads_(reads),
      control_piece_(control_) {}

Result<Readiness> Inbound::begin(const InboundSegment& segment) {
    places_.clear();
    place_at_ = 0;
    revocations_seen_ = memory_.revocations();
    read_request_.reset();
    if (auto* tagged = std::get_if<wire::TaggedSegment>(&segment.header))
        return begin_tagged(*tagged, segment.payload_size);
    return begin_untagged(std::get<wire::UntaggedSegment>(segment.header), segment.payload_size);
}

Result<Readiness> Inbound::begin_tagged(const wire::TaggedSegment& header, std::size_t size) {
    if (header.opcode == RdmapOpcode::write) return begin_write(header, size);
    if (header.opcode == RdmapOpcode::read_response) return begin_read_response(header, size);
    return fault(wire::RemoteOperationError::unexpected_opcode);
}

Result<Readiness> Inbound::begin_write(const wire::TaggedSegment& header, std::size_t size) {
    if (size == 0) return Readiness::ready;  // tag and offset may not even be looked at
    auto place = add_place(header.steering_tag, static_cast<std::uint64_t>(header.offset), size,
                           Purpose::write);
    if (!place) return placement_fault(fault_of(place.error()));
    return Readiness::ready;
}

/// The peer fills what we asked for: the oldest read, from where it was left, and nothing else.
Result<Readiness> Inbound::begin_read_response(const wire::TaggedSegment& header,
                                               std::size_t size) {
    if (reads_.empty() || reads_.oldest().kind == OutstandingRead::Kind::atomic)
        return fault(wire::RemoteOperationError::unexpected_opcode);
    auto& read = reads_.oldest();
    bool ends_it = size == read.size - read.received;
    if (size > read.size - read.received || header.last != ends_it)
        return fault(wire::TaggedBufferError::out_of_bounds);
    if (size == 0) return Readiness::ready;
    if (header.steering_tag != read.sink_tag)
        return fault(wire::TaggedBufferError::invalid_steering_tag);
    if (static_cast<std::uint64_t>(header.offset) != read.sink_offset + read.received)
        return fault(wire::TaggedBufferError::out_of_bounds);
    auto place =
        add_place(read.sink_tag, static_cast<std::uint64_t>(header.offset), size, Purpose::read);
    if (!place) return end_read_without_memory();
    return Readiness::ready;
}

Result<void> Inbound::add_place(SteeringTag tag, std::uint64_t offset, std::size_t size,
                                Purpose purpose) {
    // Where it is our own request that is answered, our own right is what counts.
    auto rights = purpose == Purpose::write ? Rights::remote_write : Rights::local_write;
    WEFT_TRY(auto bytes, memory_.resolve(tag, offset, size, rights, asker_));
    places_.push_back(
        {.bytes = bytes, .offset = offset, .tag = tag, .rights = rights, .purpose = purpose});
    return {};
}

Result<Readiness> Inbound::begin_untagged(const wire::UntaggedSegment& header, std::size_t size) {
    if (!wire::is_assigned(header.opcode) || wire::is_tagged(header.opcode))
        return fault(wire::RemoteOperationError::unexpected_opcode);
    if (header.opcode > RdmapOpcode::terminate && terms_.peer != Peer::weft)
        return fault(wire::RemoteOperationError::unexpected_opcode);  // RFC 7306 was not agreed on
    if (header.queue != wire::queue_of(header.opcode))
        return fault(wire::UntaggedBufferError::invalid_queue);
    if (header.message_number != next_message_[index_of(header.queue)])
        return fault(wire::UntaggedBufferError::message_number_out_of_range);
    return is_send(header.opcode) ? begin_send(header, size) : begin_control(header, size);
}

bool Inbound::is_ready_message(const wire::UntaggedSegment& header, std::size_t size) const {
    return terms_.role == Role::responder && terms_.ready == ReadyMessage::send &&
           header.message_number == 1 && header.message_offset == 0 && size == 0 && header.last &&
           !peer_has_spoken_;
}

Result<Readiness> Inbound::begin_send(const wire::UntaggedSegment& header, std::size_t size) {
    if (is_ready_message(header, size)) return Readiness::ready;
    if (!receive_) {
        if (header.message_offset != 0)
            return fault(wire::UntaggedBufferError::invalid_message_offset);
        receive_ = owner_.take_receive();
        if (!receive_) return Readiness::not_yet;
        receive_opcode_ = header.opcode;
        received_ = 0;
    }
    if (header.message_offset != received_)
        return fault(wire::UntaggedBufferError::invalid_message_offset);
    if (header.opcode != receive_opcode_)
        return fault(wire::RemoteOperationError::unexpected_opcode);
    if (auto room = find_room_in_receive(size); !room) return room.error();
    return Readiness::ready;
}

/// Resolved anew for each segment: what the application unregistered meanwhile is not written to.
Result<void> Inbound::find_room_in_receive(std::size_t size) {
    std::uint64_t skip = received_;
    std::size_t left = size;
    for (auto& piece : receive_->local) {
        if (left == 0) break;
        if (skip >= piece.size) {
            skip -= piece.size;
            continue;
        }
        auto count = std::min<std::size_t>(piece.size - skip, left);
        if (!add_place(piece.tag, piece.address + skip, count, Purpose::receive))
            return end_receive_without_memory();
        skip = 0;
        left -= count;
    }
    if (left == 0) return {};
    receive_ = nullptr;
    owner_.receive_ended({.status = verbs::Status::local_length});
    return fault(wire::UntaggedBufferError::message_too_long);
}

/// What the application unregistered is its own affair: the peer did nothing wrong.
Error Inbound::end_receive_without_memory() {
    receive_ = nullptr;
    owner_.receive_ended({.status = verbs::Status::local_protection});
    return local_fault();
}

Error Inbound::end_read_without_memory() {
    reads_.pop();
    owner_.read_failed();
    return local_fault();
}

Result<Readiness> Inbound::begin_control(const wire::UntaggedSegment& header, std::size_t size) {
    if (header.message_offset != 0) return fault(wire::UntaggedBufferError::invalid_message_offset);
    bool fits = header.opcode == RdmapOpcode::terminate ? size <= control_.size()
                                                        : size == body_size(header.opcode);
    if (!fits || !header.last) return fault(wire::UntaggedBufferError::message_too_long);
    if (header.queue == QueueNumber::read_request && responder_.full())
        return fault(wire::UntaggedBufferError::no_buffer);
    if (is_immediate(header.opcode)) {
        // A Send that is not whole yet has its receive; an immediate amid it makes no sense.
        if (receive_) return fault(wire::RemoteOperationError::unexpected_opcode);
        receive_ = owner_.take_receive();
        if (!receive_) return Readiness::not_yet;
    }
    places_.push_back({.bytes = MemoryRange({&control_piece_, 1}, 0, size)});
    return Readiness::ready;
}

Buffer Inbound::place() {
    while (place_at_ < places_.size() && places_[place_at_].bytes.empty()) ++place_at_;
    if (place_at_ == places_.size()) return {};
    auto& here = places_[place_at_];
    if (here.tag != SteeringTag{} && memory_.revocations() != revocations_seen_) {
        // Some tag was taken back since. If it was this one, its memory may be gone already.
        auto left = memory_.resolve(here.tag, here.offset, here.bytes.size(), here.rights, asker_);
        if (!left) return {};
        here.bytes = *left;
    }
    return here.bytes.front();
}

Error Inbound::memory_gone() {
    switch (places_[place_at_].purpose) {
        case Purpose::receive:
            return end_receive_without_memory();
        case Purpose::read:
            return end_read_without_memory();
        case Purpose::write:
            break;
    }
    return placement_fault(MemoryFault::invalid_tag);
}

void Inbound::placed(std::size_t count) {
    auto& here = places_[place_at_];
    here.bytes.drop_front(count);
    here.offset += count;
}

Result<void> Inbound::end(const InboundSegment& segment) {
    if (!std::exchange(peer_has_spoken_, true)) owner_.peer_spoke();
    if (stopped_) return {};
    if (auto* tagged = std::get_if<wire::TaggedSegment>(&segment.header)) {
        end_tagged(*tagged, segment.payload_size);
        return {};
    }
    auto& untagged = std::get<wire::UntaggedSegment>(segment.header);
    return is_send(untagged.opcode) ? end_send(untagged, segment.payload_size)
                                    : end_control(untagged, segment.payload_size);
}

void Inbound::end_tagged(const wire::TaggedSegment& header, std::size_t size) {
    if (header.opcode == RdmapOpcode::read_response) {
        reads_.oldest().received += static_cast<std::uint32_t>(size);
        if (header.last) end_read(0);
    } else {
        write_bytes_ += size;
        if (!header.last) return;
        last_write_bytes_ = std::exchange(write_bytes_, 0);
        if (last_write_bytes_ > 0) ++writes_received_;  // else the ready message would be one
    }
}

void Inbound::end_read(std::uint64_t original) {
    bool ours = reads_.oldest().kind != OutstandingRead::Kind::ready_message;
    reads_.pop();
    if (ours) owner_.read_ended(original);
}

Result<void> Inbound::end_send(const wire::UntaggedSegment& header, std::size_t size) {
    received_ += static_cast<std::uint32_t>(size);
    if (!header.last) return {};
    ++next_message_[index_of(QueueNumber::send)];
    if (!receive_) return {};  // the ready message
    ReceiveOutcome outcome{.solicited = wire::solicits_event(header.opcode), .bytes = received_};
    receive_ = nullptr;
    if (wire::invalidates(header.opcode)) {
        if (!memory_.invalidate_for_peer(header.invalidate, asker_)) {
            outcome.status = verbs::Status::local_protection;
            owner_.receive_ended(outcome);
            return fault(wire::RemoteProtectionError::cannot_invalidate);
        }
        outcome.invalidated = header.invalidate;
    }
    owner_.receive_ended(outcome);
    return {};
}

Result<void> Inbound::end_control(const wire::UntaggedSegment& header, std::size_t size) {
    ++next_message_[index_of(header.queue)];
    ConstBuffer body = ConstBuffer(control_).first(size);
    switch (header.opcode) {
        case RdmapOpcode::read_request: {
            WEFT_TRY(auto request, decode<wire::ReadRequest>(body));
            read_request_ = request;
            return responder_.add_read({request, header.message_number});
        }
        case RdmapOpcode::atomic_request: {
            WEFT_TRY(auto request, decode<wire::AtomicRequest>(body));
            return responder_.add_atomic(request);
        }
        case RdmapOpcode::atomic_response:
            return end_atomic_response(body);
        case RdmapOpcode::terminate: {
            terminate_size_ = static_cast<std::uint8_t>(size);
            auto said = terminate();
            // However garbled, it ends the connection.
            peer_terminate_ = said ? said->control : wire::TerminateControl{};
            return {};
        }
        default:
            end_immediate(header, body);
            return {};
    }
}

Result<wire::Terminate> Inbound::terminate() const {
    auto body = ConstBuffer(control_).first(terminate_size_);
    auto layout =
        terms_.peer == Peer::siw ? wire::TerminateLayout::siw : wire::guess_terminate_layout(body);
    return wire::decode_terminate(body, layout);
}

Quoted Inbound::peer_quoted() const {
    Quoted quoted;
    auto said = terminate();
    if (!said) return quoted;
    if (said->control.read_request_included) quoted.read_request = said->read_request;
    if (!said->control.segment_header_included) return quoted;
    if (auto header = wire::decode_segment(said->segment_header)) quoted.header = *header;
    return quoted;
}

Result<void> Inbound::end_atomic_response(ConstBuffer body) {
    WEFT_TRY(auto response, decode<wire::AtomicResponse>(body));
    if (reads_.empty() || reads_.oldest().kind != OutstandingRead::Kind::atomic ||
        reads_.oldest().request_identifier != response.request_identifier)
        return fault(wire::RemoteOperationError::unexpected_opcode);
    auto& read = reads_.oldest();
    auto bytes = memory_.resolve(read.sink_tag, read.sink_offset, sizeof response.original_value,
                                 Rights::local_write, asker_);
    if (!bytes) return end_read_without_memory();
    auto* from = reinterpret_cast<const std::byte*>(&response.original_value);
    for (std::size_t left = sizeof response.original_value; left > 0;) {
        auto place = bytes->front();
        if (!touch_foreign_memory([&] { std::memcpy(place.data(), from, place.size()); }))
            return local_fault();
        bytes->drop_front(place.size());
        from += place.size();
        left -= place.size();
    }
    end_read(response.original_value);
    return {};
}

void Inbound::end_immediate(const wire::UntaggedSegment& header, ConstBuffer body) {
    receive_ = nullptr;
    owner_.receive_ended(
        {.what = verbs::Ended::received_immediate,
         .solicited = wire::solicits_event(header.opcode),
         .bytes = static_cast<std::uint32_t>(last_write_bytes_),
         .immediate = static_cast<std::uint32_t>(load_big_endian<4>(body.data()))});
}

}  // namespace weft::iwarp
