// SPDX-License-Identifier: Apache-2.0
#include "iscsi/tcp_target_mover.hpp"

#include <algorithm>
#include <cstring>

#include "base/sequence_number.hpp"
#include "block/scatter.hpp"
#include "iscsi/tcp_target_slot.hpp"

namespace weft::iscsi {
TcpTargetMover::TcpTargetMover(TargetDatamoverUser& user, std::function<void()> wake)
    : user_(user), wake_(std::move(wake)), receiver_(control_segment_max) {}

TcpTargetMover::~TcpTargetMover() = default;

// ------------------------------------------------------------------------------------ receiving

Buffer TcpTargetMover::want() {
    if (state_ != State::open || released_) return {};
    if (segment_ == Segment::none && !room_to_send()) return {};
    return receiver_.want();
}

void TcpTargetMover::filled(std::size_t count) {
    auto outcome = receiver_.filled(count);
    if (!outcome) return fail(outcome.error());
    if (!*outcome) return;
    if (auto* header = std::get_if<PduHeader>(&**outcome)) return header_came(*header);
    if (auto* data = std::get_if<PduData>(&**outcome)) return data_came(*data);
    // After a wrong header digest nothing tells where the next PDU begins.
    fail({.code = Code::malformed, .detail = 1});
}

void TcpTargetMover::fail(Error why) {
    if (!sends()) return;
    fault_ = why;
    state_ = State::broken;
    wake_();
}

ReceivedPdu TcpTargetMover::current(ConstBuffer data) const {
    return {.basic = basic_, .header = header_, .additional_headers = {}, .data = data};
}

void TcpTargetMover::acknowledge(const ReceivedPdu& pdu) {
    acknowledged_ = static_cast<std::uint32_t>(
        load_big_endian<4>(pdu.header.data() + wire::expected_status_number_at));
    user_.acknowledged(acknowledged_);
    let_go_of_acknowledged();
}

void TcpTargetMover::header_came(const PduHeader& header) {
    std::copy(header.octets.begin(), header.octets.end(), header_.begin());
    basic_ = header.basic;
    const bool has_data = basic_.data_length > 0;
    ReceivedPdu pdu{basic_, header_, header.additional, {}};
    if (basic_.opcode != wire::IscsiOpcode::login_request) acknowledge(pdu);
    switch (basic_.opcode) {
        case wire::IscsiOpcode::scsi_command:
            return command_came(pdu);
        case wire::IscsiOpcode::data_out:
            if (!full_feature_) return fail({.code = Code::malformed});
            return data_out_came(pdu);
        case wire::IscsiOpcode::snack_request:
            if (has_data) expect_nothing();
            return snack_came(pdu);
        default:
            break;
    }
    if (!has_data) return user_.control(pdu);
    if (!receiver_.can_collect(basic_.data_length)) {
        expect_nothing();
        return user_.refused(pdu, wire::RejectReason::invalid_pdu_field);
    }
    segment_ = Segment::control;
    receiver_.collect();
}

/// The data segment of this PDU is of no use.
void TcpTargetMover::expect_nothing() {
    segment_ = Segment::forgotten;
    receiver_.discard();
}

TcpTargetMover::Slot& TcpTargetMover::slot_of(const TargetMoverTask& task) {
    WEFT_CHECK(task.slot < terms_.tasks_max);
    if (slots_.size() <= task.slot) slots_.resize(task.slot + 1);
    auto& slot = slots_[task.slot];
    if (!slot) slot = std::make_unique<Slot>(*this);
    return *slot;
}

void TcpTargetMover::command_came(const ReceivedPdu& pdu) {
    auto* task = user_.command(pdu);
    if (task == nullptr) {
        if (pdu.basic.data_length > 0) expect_nothing();
        return;
    }
    Slot& slot = slot_of(*task);
    WEFT_CHECK(slot.task == nullptr && slot.sending == Slot::Sending::nothing);
    slot.task = task;
    slot.taking = false;
    slot.places = {};
    slot.transfer.begin(*task, terms_);
    if (task->immediate_length > 0) {
        segment_ = Segment::immediate;
        receiving_ = &slot;
        segment_offset_ = 0;
        segment_taken_ = slot.transfer.keeps_segment();
    }
    user_.begin(*task);
}

void TcpTargetMover::data_out_came(const ReceivedPdu& pdu) {
    const bool has_data = pdu.basic.data_length > 0;
    auto data_out = decode<wire::DataOutPdu>(pdu.header);
    Slot* slot = nullptr;
    if (data_out && data_out->transfer_tag != wire::TargetTransferTag::none) {
        auto index = static_cast<std::uint32_t>(data_out->transfer_tag) >> 16;
        if (index < slots_.size() && slots_[index]) slot = slots_[index].get();
    } else if (data_out) {
        if (auto* task = user_.find_task(data_out->task_tag)) slot = &slot_of(*task);
    }
    auto verdict = DataOutTransfer::Verdict::stranger;
    if (slot != nullptr && slot->task != nullptr && slot->task->tag == data_out->task_tag)
        verdict = slot->transfer.take(*data_out);
    if (verdict == DataOutTransfer::Verdict::stranger) {
        // Data of a command that has ended meanwhile: an initiator may not know yet.
        if (has_data) expect_nothing();
        return;
    }
    segment_ = Segment::data_out;
    receiving_ = slot;
    segment_offset_ = data_out->buffer_offset;
    segment_taken_ = verdict == DataOutTransfer::Verdict::take;
    if (!has_data) return data_came({});
    if (!segment_taken_)
        receiver_.discard();
    else if (slot->transfer.wanted())
        place_segment(*slot);
}

/// The segment being received belongs to this slot, which knows its places now.
void TcpTargetMover::place_segment(Slot& slot) {
    const auto length = receiver_.data_length();
    const auto wanted = slot.transfer.wanted_length();
    if (!segment_taken_ || segment_offset_ >= wanted) return receiver_.discard();
    if (segment_offset_ + length <= wanted) return receiver_.place(slot.places, segment_offset_);
    // The segment ends beyond what the command wants: its rest goes nowhere.
    patchwork_.clear();
    block::ScatterCursor inside(slot.places, segment_offset_, wanted - segment_offset_);
    for (; inside.left() > 0; inside.advance(inside.piece().size()))
        patchwork_.push_back(inside.piece());
    waste_.resize(4096);
    for (auto rest = segment_offset_ + length - wanted; rest > 0;) {
        auto piece = std::min<std::size_t>(rest, waste_.size());
        patchwork_.push_back(Buffer(waste_).first(piece));
        rest -= static_cast<std::uint32_t>(piece);
    }
    receiver_.place(patchwork_, 0);
}

void TcpTargetMover::data_came(const PduData& data) {
    auto segment = std::exchange(segment_, Segment::none);
    if (segment == Segment::forgotten) return;
    auto pdu = current(data.collected);
    if (segment == Segment::control) {
        if (!data.digest_good) return user_.refused(pdu, wire::RejectReason::data_digest_error);
        return user_.control(pdu);
    }
    Slot& slot = *std::exchange(receiving_, nullptr);
    slot.transfer.came(data.digest_good);
    if (!data.digest_good) user_.refused(pdu, wire::RejectReason::data_digest_error);
    pump(slot);
}

// ------------------------------------------------------------------------------------ the tasks

void TcpTargetMover::take_data(TargetMoverTask& task, std::span<const Buffer> places) {
    Slot& slot = slot_of(task);
    WEFT_CHECK(slot.task == &task && !slot.taking);
    slot.taking = true;
    slot.places = places;
    slot.transfer.want(static_cast<std::uint32_t>(block::total_size(places)));
    if (receiving_ == &slot && receiver_.waits_for_place()) {
        place_segment(slot);
        wake_();
    }
    pump(slot);
}

/// Asks for what is to be asked for, and tells the end.
void TcpTargetMover::pump(Slot& slot) {
    if (!slot.taking || slot.sending != Slot::Sending::nothing) return;
    if (auto request = slot.transfer.next_request()) {
        slot.load_request(*request);
        return queue(slot);
    }
    if (auto outcome = slot.transfer.outcome()) {
        slot.taking = false;
        slot.places = {};
        user_.data_taken(*slot.task, *outcome);
    }
}

void TcpTargetMover::answer(TargetMoverTask& task, const TargetAnswer& answer) {
    Slot& slot = slot_of(task);
    WEFT_CHECK(slot.task == &task && !slot.taking && slot.sending == Slot::Sending::nothing);
    slot.begin_answer(answer);
    queue(slot);
}

void TcpTargetMover::queue(Slot& slot) {
    sender_.queue(slot);
    wake_();
}

void TcpTargetMover::abandon(TargetMoverTask& task) {
    Slot& slot = slot_of(task);
    WEFT_CHECK(slot.task == &task);
    const bool too_late =
        slot.sending == Slot::Sending::answer || slot.sending == Slot::Sending::kept;
    if (too_late) return;
    slot.transfer.abandon();
    if (receiving_ == &slot) {
        segment_taken_ = false;
        if (receiver_.waits_for_place()) {
            receiver_.discard();
            wake_();
        }
    }
    if (slot.taking) return pump(slot);
    if (receiving_ == &slot) {
        // Its segment is still on its way, to nowhere; the slot shall not wait for that.
        segment_ = Segment::forgotten;
        receiving_ = nullptr;
    }
    slot.task = nullptr;
}

// -------------------------------------------------------------------------------------- sending

void TcpTargetMover::stamp(Counted& pdu) {
    if (pdu.count == StatusCount::given) return;
    auto numbers = user_.numbers(pdu.repeated ? StatusCount::peeks : pdu.count);
    if (pdu.repeated)
        numbers.status_number = pdu.status_number;
    else if (pdu.count == StatusCount::counts)
        pdu.status_number = numbers.status_number;
    encode(numbers, Buffer(pdu.header).subspan(wire::target_numbers_at));
}

void TcpTargetMover::send(const ControlPdu& pdu, StatusCount count) {
    if (!sends() || released_) return;
    if (free_controls_.empty()) {
        controls_.push_back(std::make_unique<Control>(*this));
        free_controls_.push_back(controls_.back().get());
    }
    Control& control = *free_controls_.back();
    free_controls_.pop_back();
    ++controls_unsent_;
    std::copy(pdu.header.begin(), pdu.header.end(), control.header.begin());
    store_big_endian<3>(pdu.data.size(), control.header.data() + wire::data_length_at);
    control.octets.assign(pdu.data.begin(), pdu.data.end());
    control.piece = control.octets;
    control.data =
        control.octets.empty() ? std::span<const Buffer>{} : std::span(&control.piece, 1);
    control.data_skip = 0;
    control.data_length = static_cast<std::uint32_t>(control.octets.size());
    control.count = count;
    control.repeated = false;
    sender_.queue(control);
    wake_();
}

std::size_t TcpTargetMover::pending(std::span<ConstBuffer> pieces) {
    if (!sends()) return 0;
    return sender_.pending(pieces);
}

void TcpTargetMover::sent(std::size_t count) {
    const bool had_room = room_to_send();
    sender_.sent(count);
    if (!had_room && room_to_send()) wake_();
    if (!released_ || !sender_.empty() || state_ != State::open) return;
    state_ = State::released;
    std::exchange(released_, {})();
}

void TcpTargetMover::release_when_sent(std::function<void()> gone) {
    released_ = std::move(gone);
}

bool TcpTargetMover::finished() const {
    return state_ != State::open && state_ != State::released;
}

// -------------------------------------------------------------------- error recovery level 1

void TcpTargetMover::keep(Counted& pdu) {
    if (terms_.error_recovery_level == 0) return pdu.acknowledged();
    kept_.push_back(&pdu);
    let_go_of_acknowledged();
    if (kept_.size() > kept_answers_max) fail({.code = Code::exhausted, .where = kept_answers_max});
}

void TcpTargetMover::let_go_of_acknowledged() {
    while (!kept_.empty() && !kept_.front()->on_its_way &&
           SequenceNumber32(kept_.front()->status_number) < SequenceNumber32(acknowledged_)) {
        auto& pdu = *kept_.front();
        kept_.pop_front();
        pdu.acknowledged();
    }
}

/// An initiator missed something and asks for it again, or says what it has (RFC 7143 section
/// 11.16).
void TcpTargetMover::snack_came(const ReceivedPdu& pdu) {
    auto request = decode<wire::SnackRequestPdu>(pdu.header);
    auto refused = request ? refusal_or_repeat(*request) : wire::RejectReason::protocol_error;
    if (refused) user_.refused(pdu, *refused);
}

std::optional<wire::RejectReason> TcpTargetMover::refusal_or_repeat(
    const wire::SnackRequestPdu& request) {
    using enum wire::RejectReason;
    if (terms_.error_recovery_level == 0) return snack_reject;
    switch (request.type) {
        case wire::SnackType::status:
            return repeat_status(request.first_of_run, request.run_length)
                       ? std::nullopt
                       : std::optional(protocol_error);
        case wire::SnackType::data_acknowledgement: {
            const auto index = request.transfer_or_snack_tag >> 16;
            auto* slot = index < slots_.size() ? slots_[index].get() : nullptr;
            const bool known = slot != nullptr && slot->task != nullptr && slot->answers() &&
                               slot->task->logical_unit == request.logical_unit;
            if (known && slot->data_acknowledged(request.first_of_run)) return std::nullopt;
            return invalid_data_acknowledgement;
        }
        case wire::SnackType::data_or_ready_to_transfer:
        case wire::SnackType::resegmented_data:
            break;
        default:
            return protocol_error;
    }
    auto* task = user_.find_task(request.task_tag);
    if (task == nullptr) return protocol_error;
    Slot& slot = slot_of(*task);
    if (request.type == wire::SnackType::resegmented_data) {
        if (!slot.answers() || request.transfer_or_snack_tag == 0) return protocol_error;
        slot.resegment(request.transfer_or_snack_tag);
        return std::nullopt;
    }
    if (slot.answers()) return slot.repeat_data(request.first_of_run, request.run_length);
    if (slot.sending != Slot::Sending::nothing) return snack_reject;
    auto again = slot.transfer.repeat_request(request.first_of_run);
    if (!again) return protocol_error;
    slot.load_request(*again);
    queue(slot);
    return std::nullopt;
}

bool TcpTargetMover::repeat_status(std::uint32_t first, std::uint32_t count) {
    bool found = false;
    for (auto* pdu : kept_) {
        auto ahead = SequenceNumber32(pdu->status_number) - SequenceNumber32(first);
        if (ahead > 0x7fffffff || (count != 0 && ahead >= count)) continue;
        found = true;
        if (std::exchange(pdu->on_its_way, true)) continue;
        pdu->repeated = true;
        pdu->count = StatusCount::counts;
        sender_.queue(*pdu);
    }
    wake_();
    return found;
}

void TcpTargetMover::begin_full_feature(const ConnectionTerms& terms) {
    terms_ = terms;
    full_feature_ = true;
    const Digests digests{terms.header_digest, terms.data_digest};
    receiver_.use_digests(digests);
    receiver_.limit_data_length(terms.receive_segment_max);
    sender_.use_digests(digests);
}

void TcpTargetMover::change_send_segment_max(std::uint32_t octets) {
    terms_.send_segment_max = octets;
}

// ---------------------------------------------------------------------------------------- ending

void TcpTargetMover::close_when_sent() {
    if (state_ == State::open) state_ = State::leaving;
    wake_();
}

void TcpTargetMover::close() {
    fail({.code = Code::disconnected});
}

void TcpTargetMover::closed(std::optional<Error> why) {
    if (state_ == State::closed || state_ == State::released) return;
    if (!fault_) fault_ = why;
    state_ = State::closed;
    sender_.drop_all();
    kept_.clear();
    for (auto& slot : slots_)
        if (slot) slot->task = nullptr;
    receiving_ = nullptr;
    user_.lost(fault_);
}

}  // namespace weft::iscsi
