// SPDX-License-Identifier: Apache-2.0
#include "iscsi/tcp_target_slot.hpp"

#include <algorithm>

#include "block/scatter.hpp"

namespace weft::iscsi {

void TcpTargetMover::Slot::load_request(const DataOutTransfer::Request& request) {
    sending = Sending::requests;
    count = StatusCount::peeks;
    encode(wire::ReadyToTransferPdu{.logical_unit = task->logical_unit,
                                    .task_tag = task->tag,
                                    .transfer_tag = static_cast<wire::TargetTransferTag>(
                                        task->slot << 16 | request.tag),
                                    .ready_number = request.number,
                                    .buffer_offset = request.offset,
                                    .desired_length = request.length},
           header);
    data = {};
    data_skip = 0;
    data_length = 0;
}

void TcpTargetMover::Slot::load_answer() {
    sending = Sending::answer;
    if (sent_in < total_in)
        load_data_in();
    else
        load_response();
}

std::uint64_t TcpTargetMover::Slot::length_at(std::uint64_t offset) const {
    const std::uint64_t burst = mover.terms_.burst_max;
    return std::min({total_in - offset, burst - offset % burst, std::uint64_t{segment_max}});
}

bool TcpTargetMover::Slot::ends_sequence(std::uint64_t offset) const {
    return offset == total_in || offset % mover.terms_.burst_max == 0;
}

void TcpTargetMover::Slot::load_data_in() {
    const auto length = length_at(sent_in);
    const bool ends = sent_in + length == total_in;
    const auto& response = answer.response;
    // A status may ride on the last data if it says no more than that all went well
    // (section 11.7.3).
    last = ends && answer.sense.empty() && task->out_length == 0 &&
           response.response == wire::ServiceResponse::completed_at_target &&
           (response.status == wire::ScsiStatus::good ||
            response.status == wire::ScsiStatus::condition_met);
    count = last ? StatusCount::counts : StatusCount::peeks;
    wire::DataInPdu pdu{.final = ends_sequence(sent_in + length),
                        .data_length = static_cast<std::uint32_t>(length),
                        .task_tag = task->tag,
                        .transfer_tag = wire::TargetTransferTag::none,
                        .data_number = data_number++,
                        .buffer_offset = static_cast<std::uint32_t>(sent_in)};
    if (last) {
        pdu.has_status = true;
        pdu.status = response.status;
        pdu.residual = response.residual;
        pdu.residual_count = response.residual_count;
    }
    encode(pdu, header);
    data = answer.data_in;
    data_skip = sent_in;
    data_length = static_cast<std::uint32_t>(length);
    sent_in += length;
}

void TcpTargetMover::Slot::load_response() {
    last = true;
    count = StatusCount::counts;
    auto response = answer.response;
    response.expected_data_number = data_number;
    data = {};
    data_skip = 0;
    response.data_length = 0;
    if (!answer.sense.empty()) {
        auto written = wire::write_sense_segment(answer.sense, sense_segment);
        if (written) {
            sense_piece = Buffer(sense_segment).first(*written);
            data = {&sense_piece, 1};
            response.data_length = static_cast<std::uint32_t>(*written);
        }
    }
    data_length = response.data_length;
    encode(response, header);
}

OutgoingPdu::Then TcpTargetMover::Slot::gone() {
    if (may_go_again()) {
        sending == Sending::answer ? load_answer() : load_repeated();
        return Then::again;
    }
    switch (sending) {
        case Sending::answer:
            sending = Sending::kept;
            mover.keep(*this);
            break;
        case Sending::kept:
            if (std::exchange(on_its_way, false) && !repeated) swap_with_status();
            mover.let_go_of_acknowledged();
            break;
        default:
            sending = Sending::nothing;
            mover.pump(*this);
    }
    return Then::done;
}

void TcpTargetMover::Slot::acknowledged() {
    sending = Sending::nothing;
    mover.user_.answered(*std::exchange(task, nullptr));
}

// ------------------------------------------------------------- once more, at error recovery level
// 1

bool TcpTargetMover::Slot::repeat_data(std::uint32_t from, std::uint32_t to) {
    if (sending != Sending::kept || on_its_way || from >= to || to > data_number) return false;
    repeat_from = from;
    repeat_to = to;
    swap_with_status();
    load_repeated();
    on_its_way = true;
    mover.queue(*this);
    return true;
}

/// Puts the PDU with the status aside, or takes it out again.
void TcpTargetMover::Slot::swap_with_status() {
    std::swap(header, status_.header);
    std::swap(data, status_.data);
    std::swap(data_skip, status_.skip);
    std::swap(data_length, status_.length);
}

void TcpTargetMover::Slot::load_repeated() {
    const auto number = repeat_from++;
    const bool with_status =
        number + 1 == data_number &&
        decode<wire::BasicHeader>(status_.header)->opcode == wire::IscsiOpcode::data_in;
    repeated = with_status;
    if (with_status) return swap_with_status();
    std::uint64_t offset = 0;
    for (std::uint32_t before = 0; before < number; ++before) offset += length_at(offset);
    const auto length = length_at(offset);
    encode(wire::DataInPdu{.final = ends_sequence(offset + length),
                           .data_length = static_cast<std::uint32_t>(length),
                           .task_tag = task->tag,
                           .transfer_tag = wire::TargetTransferTag::none,
                           .data_number = number,
                           .buffer_offset = static_cast<std::uint32_t>(offset)},
           header);
    count = StatusCount::peeks;
    data = answer.data_in;
    data_skip = offset;
    data_length = static_cast<std::uint32_t>(length);
}

OutgoingPdu::Then TcpTargetMover::Control::gone() {
    if (std::exchange(on_its_way, false)) {
        mover.let_go_of_acknowledged();
        return Then::done;
    }
    --mover.controls_unsent_;
    if (count == StatusCount::counts)
        mover.keep(*this);
    else
        acknowledged();
    return Then::done;
}

}  // namespace weft::iscsi
