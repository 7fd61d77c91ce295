// SPDX-License-Identifier: Apache-2.0
// What a target sends, as TcpInitiatorMover takes it.
#include <algorithm>

#include "iscsi/tcp_initiator_mover.hpp"
#include "wire/iscsi_segments.hpp"

namespace weft::iscsi {

namespace {

constexpr Error broken_rule{.code = Code::malformed};

}  // namespace

Buffer TcpInitiatorMover::want() {
    if (failed_ || closing_ || released_ || controls_.size() >= initiator_control_max) return {};
    return receiver_.want();
}

void TcpInitiatorMover::filled(std::size_t count) {
    auto event = receiver_.filled(count);
    if (!event) return fail(event.error());
    if (!*event) return;
    Result<void> taken;
    if (const auto* header = std::get_if<PduHeader>(&**event)) {
        taken = take_header(*header);
    } else if (const auto* data = std::get_if<PduData>(&**event)) {
        taken = take_segment(*data);
    } else {
        taken = Error{.code = Code::io_failed};
    }
    if (!taken) fail(taken.error());
}

TcpInitiatorMover::Slot* TcpInitiatorMover::find(wire::InitiatorTaskTag tag) {
    InitiatorMoverTask* task = user_.find_task(tag);
    if (task == nullptr || task->slot >= slots_.size()) return nullptr;
    Slot& slot = slots_[task->slot];
    return slot.task == task && !slot.over ? &slot : nullptr;
}

Result<void> TcpInitiatorMover::take_header(const PduHeader& header) {
    basic_ = header.basic;
    switch (header.basic.opcode) {
        case wire::IscsiOpcode::data_in:
            return take_data_in(header);
        case wire::IscsiOpcode::ready_to_transfer:
            return take_request(header);
        case wire::IscsiOpcode::scsi_response:
            return take_response(header);
        default:
            return take_control(header);
    }
}

Result<void> TcpInitiatorMover::take_data_in(const PduHeader& header) {
    WEFT_TRY(data_in_, decode<wire::DataInPdu>(header.octets));
    user_.heard(data_in_.numbers, data_in_.has_status ? count_of(data_in_.numbers.status_number)
                                                      : StatusCount::peeks);
    receiving_ = find(data_in_.task_tag);
    if (receiving_ == nullptr) {
        // Of a command that was given up: what was on its way is let go by.
        if (data_in_.data_length > 0) receiver_.discard();
        return {};
    }
    Slot& slot = *receiving_;
    // Until its data is here and whole: what is sent meanwhile must not acknowledge it.
    if (data_in_.has_status) leave_unsettled(data_in_.numbers.status_number);
    const bool again = slot.has_hole(data_in_.data_number);
    const bool in_turn = again || data_in_.data_number == slot.next_data_number;
    const bool fits =
        within(data_in_.buffer_offset, data_in_.data_length, block::total_size(slot.task->data_in));
    const bool adjoins = again || data_in_.buffer_offset == slot.placed || !terms_.data_in_order;
    if (!in_turn || !fits || !adjoins) slot.damaged = true;
    if (!again) {
        slot.next_data_number = data_in_.data_number + 1;
        // As far as it will be in place, when all holes are filled.
        if (!slot.damaged) slot.placed += data_in_.data_length;
    }
    if (data_in_.data_length == 0) {
        end_data_in(true);
    } else if (slot.damaged) {
        receiver_.discard();
    } else {
        slot.receiving = true;
        receiver_.place(slot.task->data_in, data_in_.buffer_offset);
    }
    return {};
}

void TcpInitiatorMover::end_data_in(bool digest_good) {
    if (receiving_ == nullptr) return;
    Slot& slot = *std::exchange(receiving_, nullptr);
    slot.receiving = false;
    if (slot.over) {
        if (data_in_.has_status) settle(data_in_.numbers.status_number);
        return retire_if_over(slot);
    }
    if (!digest_good && ask_for_data_again(slot)) return;
    if (!digest_good) slot.damaged = true;
    if (recovers()) {
        fill_hole(slot, data_in_.data_number);
        if (data_in_.acknowledge) slot.to_acknowledge = data_in_;
        if (!data_in_.has_status) return go_on_if_whole(slot);
    }
    if (!data_in_.has_status) return;
    take_status(slot,
                {.residual = data_in_.residual,
                 .status = data_in_.status,
                 .task_tag = data_in_.task_tag,
                 .numbers = data_in_.numbers,
                 .expected_data_number = slot.next_data_number,
                 .residual_count = data_in_.residual_count},
                {});
}

void TcpInitiatorMover::answer(Slot& slot, const InitiatorAnswer& answer) {
    InitiatorAnswer whole = answer;
    whole.placed = slot.damaged ? 0 : slot.placed;
    whole.damaged = slot.damaged;
    slot.over = true;
    user_.responded(*slot.task, whole);
    retire_if_over(slot);
}

Result<void> TcpInitiatorMover::take_request(const PduHeader& header) {
    WEFT_TRY(const auto request, decode<wire::ReadyToTransferPdu>(header.octets));
    user_.heard(request.numbers, StatusCount::peeks);
    Slot* slot = find(request.task_tag);
    if (slot == nullptr) return {};  // of a command that was given up
    const auto& command = slot->task->command;
    const bool good =
        command.write && request.ready_number == slot->next_request_number &&
        request.desired_length > 0 && request.desired_length <= terms_.burst_max &&
        within(request.buffer_offset, request.desired_length, command.expected_transfer_length) &&
        slot->requests.size() < terms_.outstanding_requests_max && !slot->requests.full();
    if (!good) return broken_rule;
    ++slot->next_request_number;
    slot->requests.push_back({.transfer_tag = request.transfer_tag,
                              .offset = request.buffer_offset,
                              .left = request.desired_length});
    if (slot->queued) return {};
    slot->burst = slot->requests.front();
    slot->requests.pop_front();
    load_burst(*slot);
    sender_.queue(*slot);
    wake();
    return {};
}

Result<void> TcpInitiatorMover::take_response(const PduHeader& header) {
    WEFT_TRY(response_, decode<wire::ScsiResponsePdu>(header.octets));
    status_number_ = response_.numbers.status_number;
    user_.heard(response_.numbers, count_of(response_.numbers.status_number));
    if (response_.data_length == 0) return end_response({});
    if (!receiver_.can_collect(response_.data_length)) return broken_rule;
    leave_unsettled(status_number_);
    receiver_.collect();
    return {};
}

Result<void> TcpInitiatorMover::end_response(ConstBuffer segment) {
    WEFT_TRY(const auto parts, wire::split_sense_segment(segment));
    Slot* slot = find(response_.task_tag);
    if (slot == nullptr)
        settle(response_.numbers.status_number);
    else
        take_status(*slot, response_, parts.sense);
    return {};
}

Result<void> TcpInitiatorMover::take_control(const PduHeader& header) {
    std::ranges::copy(header.octets, header_.begin());
    WEFT_TRY(const auto numbers,
             decode<wire::TargetNumbers>(header.octets.subspan(wire::target_numbers_at)));
    // A ping of the target's own carries the number of a status that is yet to come.
    const bool unasked = basic_.opcode == wire::IscsiOpcode::nop_in &&
                         basic_.task_tag == wire::InitiatorTaskTag::none;
    status_number_ = numbers.status_number;
    user_.heard(numbers, unasked ? StatusCount::peeks : count_of(numbers.status_number));
    if (basic_.data_length == 0) {
        end_control({});
        return {};
    }
    if (!receiver_.can_collect(basic_.data_length)) return broken_rule;
    if (!unasked) leave_unsettled(status_number_);
    receiver_.collect();
    return {};
}

void TcpInitiatorMover::end_control(ConstBuffer segment) {
    user_.control({.basic = basic_, .header = header_, .additional_headers = {}, .data = segment});
}

Result<void> TcpInitiatorMover::take_segment(const PduData& data) {
    if (basic_.opcode == wire::IscsiOpcode::data_in) {
        end_data_in(data.digest_good);
        return {};
    }
    if (!data.digest_good) return ask_for_status_again(status_number_);
    if (basic_.opcode == wire::IscsiOpcode::scsi_response) return end_response(data.collected);
    settle(status_number_);
    end_control(data.collected);
    return {};
}

}  // namespace weft::iscsi
