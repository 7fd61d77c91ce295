// SPDX-License-Identifier: Apache-2.0
// Data and answers of the target's iSER datamover: what is read, what is written, and the Sends
// that follow.
#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "iscsi/iser_memory.hpp"
#include "iscsi/iser_target_mover.hpp"
#include "wire/iscsi_segments.hpp"

namespace weft::iscsi {
IserTargetMover::Slot& IserTargetMover::slot_of(const TargetMoverTask& task) {
    WEFT_CHECK(task.slot < slots_.size());
    return slots_[task.slot];
}

// ---------------------------------------------------------------------------------- data-out

void IserTargetMover::take_data(TargetMoverTask& task, std::span<const Buffer> places) {
    auto& slot = slot_of(task);
    WEFT_CHECK(slot.task == &task && !slot.taking);
    slot.taking = true;
    slot.places = places;
    slot.data_out.want(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(block::total_size(places), task.out_length)));
    if (slot.immediate) {
        place(slot, 0, slot.immediate_data);
        let_go_of_receive();
        give_back(*std::exchange(slot.immediate, nullptr));
    }
    while (!slot.early.empty()) {
        let_go_of_receive();
        take_unsolicited(slot, slot.early.pop_front());
    }
    if (slot.data_out.has_part()) {
        // An abandoned task's turn may still be there, and is as good.
        if (!std::exchange(slot.in_line, true)) reading_.push_back(&slot);
        pump_reads();
    }
    settle_data(slot);
}

void IserTargetMover::take_unsolicited(Slot& slot, iser::Receive& receive) {
    auto message = iser::read_message(receive.octets());
    auto pdu = message ? decode<wire::DataOutPdu>(message->pdu.header)
                       : Result<wire::DataOutPdu>(message.error());
    if (pdu && slot.data_out.take(*pdu)) place(slot, pdu->buffer_offset, message->pdu.data);
    give_back(receive);
}

void IserTargetMover::place(Slot& slot, std::uint64_t offset, ConstBuffer data) {
    std::uint64_t wanted = slot.data_out.wanted();
    if (offset >= wanted) return;
    auto count = std::min<std::uint64_t>(data.size(), wanted - offset);
    block::copy_in(data.first(count), block::ScatterCursor(slot.places, offset, count));
}

void IserTargetMover::settle_data(Slot& slot) {
    auto outcome = slot.data_out.outcome();
    if (!slot.taking || !outcome) return;
    slot.taking = false;
    if (std::exchange(slot.abandoned, false)) --abandoned_;
    user_.data_taken(*slot.task, *outcome);
}

bool IserTargetMover::prepare_sinks() {
    if (!sinks_.empty()) return true;
    if (!connection_ || queue_pair_->state() != verbs::QueuePairState::running) return false;
    auto count = connection_->facts().outbound_reads;
    if (reads_allowed_) count = std::min(count, *reads_allowed_);
    sinks_ = std::vector<Sink>(count);
    for (auto& sink : sinks_) {
        auto made = target_.domain_->allocate_tag(iser::pieces_max);
        if (!made) break;
        sink.region = std::move(*made);
        sink.tag = sink.region->tag();
        free_sinks_.push_back(&sink);
    }
    registration_.pieces.reserve(iser::pieces_max);
    registration_.rights = Rights::local_write;
    registration_.addressing = Addressing::from_zero;
    // An initiator that lets us read nothing cannot write more than it sends along.
    if (free_sinks_.empty()) fail({.code = Code::unsupported});
    return !free_sinks_.empty();
}

void IserTargetMover::pump_reads() {
    while (!reading_.empty()) {
        auto& slot = *reading_.front();
        if (!slot.data_out.has_part()) {
            slot.in_line = false;
            reading_.pop_front();
            continue;
        }
        if (fault_ || over_ || !prepare_sinks() || free_sinks_.empty()) return;
        if (!post_read(slot, *free_sinks_.back())) return;
        free_sinks_.pop_back();
    }
}

bool IserTargetMover::post_read(Slot& slot, Sink& sink) {
    auto offset = slot.data_out.part_offset();
    block::ScatterCursor places(slot.places, offset, slot.data_out.wanted() - offset);
    registration_.pieces.clear();
    std::uint32_t length = 0;
    while (places.left() > 0 && registration_.pieces.size() < iser::pieces_max &&
           length < terms_.burst_max) {
        auto piece = places.piece();
        piece = piece.first(std::min<std::size_t>(piece.size(), terms_.burst_max - length));
        registration_.pieces.push_back(piece);
        length += static_cast<std::uint32_t>(piece.size());
        places.advance(piece.size());
    }
    registration_.tag = with_next_key(sink.tag);

    std::array local{verbs::LocalMemory{.address = 0, .size = length, .tag = registration_.tag}};
    std::array<verbs::SendRequest, 2> requests{};
    requests[0].operation = verbs::Operation::fast_register;
    requests[0].signalled = false;
    requests[0].registration = &registration_;
    requests[1].operation = verbs::Operation::read_invalidate;
    requests[1].id = id_of(Kind::read, static_cast<std::size_t>(&sink - sinks_.data()));
    requests[1].local = local;
    if (!queue_pair_->check(requests)) return false;

    auto part = slot.data_out.next_part(length);
    WEFT_CHECK(part && part->length == length);
    auto& buffer = slot.advertised.write_buffer;
    requests[1].remote = {
        .address = static_cast<std::uint64_t>(buffer.base_offset) + part->in_buffer,
        .tag = buffer.steering_tag};
    for (auto& request : requests) WEFT_CHECK(queue_pair_->post(request));
    sink.tag = registration_.tag;
    sink.slot = &slot;
    return true;
}

void IserTargetMover::read_ended(Sink& sink) {
    auto& slot = *std::exchange(sink.slot, nullptr);
    free_sinks_.push_back(&sink);
    slot.data_out.part_came();
    pump_reads();
    settle_data(slot);
}

void IserTargetMover::abandon(TargetMoverTask& task) {
    auto& slot = slot_of(task);
    if (slot.task != &task || over_) return;
    if (slot.answering) return;  // it goes as it is, and answered() follows
    slot.data_out.abandon();
    if (slot.taking && !std::exchange(slot.abandoned, true)) ++abandoned_;
    while (!slot.early.empty()) {
        let_go_of_receive();
        give_back(slot.early.pop_front());
    }
    if (slot.immediate) {
        let_go_of_receive();
        give_back(*std::exchange(slot.immediate, nullptr));
    }
    if (slot.taking) return settle_data(slot);
    slot.task = nullptr;
}

// ---------------------------------------------------------------------------------- answers

void IserTargetMover::answer(TargetMoverTask& task, const TargetAnswer& answer) {
    auto& slot = slot_of(task);
    WEFT_CHECK(slot.task == &task && !slot.taking && !slot.answering);
    if (over_) return;
    slot.answering = true;
    slot.answer = answer;
    slot.data_in_sent = 0;
    // Where there is no buffer to write to, the initiator gets none.
    slot.data_in_size =
        slot.advertised.read_buffer_valid
            ? std::min<std::uint64_t>(block::total_size(answer.data_in), task.in_length)
            : 0;
    ++answers_unsent_;
    outgoing_.push_back(slot);
    pump_sends();
}

void IserTargetMover::pump_sends() {
    while (!outgoing_.empty() && !over_) {
        auto& next = outgoing_.front();
        bool posted = next.is_answer ? post_answer(static_cast<Slot&>(next))
                                     : post_control(static_cast<Control&>(next));
        if (!posted) return;
        outgoing_.pop_front();
    }
}

bool IserTargetMover::post_control(Control& control) {
    std::array local{own(control.octets)};
    verbs::SendRequest request{
        .id = id_of(Kind::control, control.index), .solicited = true, .local = local};
    if (!queue_pair_->check({&request, 1})) return false;
    if (control.count != StatusCount::given)
        iser::stamp(user_.numbers(control.count),
                    Buffer(control.octets).subspan(wire::iser_header_size));
    WEFT_CHECK(queue_pair_->post(request));
    return true;
}

bool IserTargetMover::post_answer(Slot& slot) {
    while (slot.data_in_sent < slot.data_in_size)
        if (!post_write(slot)) return false;
    auto tag = tag_to_invalidate(slot);
    std::array<verbs::LocalMemory, 1> local{};
    verbs::SendRequest request{
        .id = id_of(Kind::answer, slot.task->slot),
        .operation = tag ? verbs::Operation::send_invalidate : verbs::Operation::send,
        .solicited = true,
        .local = local,
        .invalidate = tag.value_or(SteeringTag{})};
    if (!queue_pair_->check({&request, 1})) return false;
    local[0] = own(compose_response(slot));
    WEFT_CHECK(queue_pair_->post(request));
    return true;
}

bool IserTargetMover::post_write(Slot& slot) {
    block::ScatterCursor data(slot.answer.data_in, slot.data_in_sent,
                              slot.data_in_size - slot.data_in_sent);
    std::array<verbs::LocalMemory, pieces> local{};
    std::size_t count = 0;
    std::uint64_t size = 0;
    while (data.left() > 0 && count < local.size()) {
        auto piece = data.piece();
        local[count++] = own(piece);
        size += piece.size();
        data.advance(piece.size());
    }
    auto& buffer = slot.advertised.read_buffer;
    bool is_last = slot.data_in_sent + size == slot.data_in_size;
    verbs::SendRequest request{
        .id = id_of(Kind::write, 0),
        .operation = verbs::Operation::write,
        .signalled = !is_last && writes_unsignalled_ + 1 >= iser::writes_per_signal,
        .local = std::span(local).first(count),
        .remote = {.address = static_cast<std::uint64_t>(buffer.base_offset) + slot.data_in_sent,
                   .tag = buffer.steering_tag}};
    if (!queue_pair_->check({&request, 1})) return false;
    WEFT_CHECK(queue_pair_->post(request));
    writes_unsignalled_ = request.signalled ? 0 : writes_unsignalled_ + 1;
    slot.data_in_sent += size;
    return true;
}

ConstBuffer IserTargetMover::compose_response(Slot& slot) {
    auto sense = slot.answer.sense;
    std::size_t segment = 0;
    if (!sense.empty()) {
        auto room =
            std::min<std::size_t>(control_data_max(), slot.response.size() - iser::headers_size);
        sense = sense.first(std::min(sense.size(), room - 2));
        segment =
            *wire::write_sense_segment(sense, Buffer(slot.response).subspan(iser::headers_size));
    }
    auto response = slot.answer.response;
    response.data_length = static_cast<std::uint32_t>(segment);
    response.expected_data_number = 0;  // no Data-In is ever sent
    response.numbers = user_.numbers(StatusCount::counts);
    encode(wire::IserControlHeader{}, slot.response);
    encode(response, Buffer(slot.response).subspan(wire::iser_header_size));
    return ConstBuffer(slot.response).first(iser::headers_size + segment);
}

/// The read's, if there is one, else the write's: a bidirectional command's initiator has to see to
/// the other itself (RFC 7145 section 7.3.2).
std::optional<SteeringTag> IserTargetMover::tag_to_invalidate(const Slot& slot) const {
    auto& advertised = slot.advertised;
    if (!may_invalidate_) return std::nullopt;
    auto tag = advertised.read_buffer_valid    ? advertised.read_buffer.steering_tag
               : advertised.write_buffer_valid ? advertised.write_buffer.steering_tag
                                               : SteeringTag{};
    if (tag == SteeringTag{}) return std::nullopt;
    return tag;
}

void IserTargetMover::sent(const verbs::Completion& completion) {
    // What was flushed is told of by lost(), all of it at once.
    if (completion.status != verbs::Status::success || over_) return;
    auto index = static_cast<std::size_t>(completion.id & 0xffff'ffff);
    switch (static_cast<Kind>(completion.id >> 32)) {
        case Kind::write:
            break;
        case Kind::control:
            --controls_unsent_;
            free_controls_.push_back(controls_[index].get());
            break;
        case Kind::answer: {
            auto& slot = slots_[index];
            --answers_unsent_;
            slot.answering = false;
            user_.answered(*std::exchange(slot.task, nullptr));
            break;
        }
        case Kind::read:
            read_ended(sinks_[index]);
    }
    pump_sends();
    pump_reads();
    handle_held();
    leave_if_sent();
}

}  // namespace weft::iscsi
