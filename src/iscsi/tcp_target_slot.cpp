// SPDX-License-Identifier: Apache-2.0
#include "iscsi/tcp_target_slot.hpp"

#include <algorithm>

#include "block/scatter.hpp"

namespace weft::iscsi {
namespace {

/// Asked for along with a DataACK, so that the slot is found again. No R2T has it: their tags count
/// up from zero, and what answers them is no SNACK.
wire::TargetTransferTag data_transfer_tag(std::uint32_t slot) {
    return static_cast<wire::TargetTransferTag>(slot << 16 | 0xffff);
}

}  // namespace

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

void TcpTargetMover::Slot::begin_answer(const TargetAnswer& given) {
    answer = given;
    total_in = std::min<std::uint64_t>(block::total_size(given.data_in), task->in_length);
    sent_in = kept_offset = 0;
    data_number = kept_number = 0;
    snack_tag = 0;
    segment_max = mover.terms_.send_segment_max;
    repeated = resegment_wanted = false;
    repeat_from = repeat_to = 0;
    runs.clear();
    load_answer();
}

/// The Data-In that begins there, without a status. At the end of a burst, but for the last, the
/// initiator is asked to say that it has all so far (section 11.7.2).
wire::DataInPdu TcpTargetMover::Slot::data_in_at(std::uint64_t offset, std::uint32_t number) const {
    const auto length = length_at(offset);
    const bool asks = mover.terms_.error_recovery_level > 0 && offset + length < total_in &&
                      ends_sequence(offset + length);
    return {.final = ends_sequence(offset + length),
            .acknowledge = asks,
            .data_length = static_cast<std::uint32_t>(length),
            .logical_unit = asks ? task->logical_unit : wire::LogicalUnit{},
            .task_tag = task->tag,
            .transfer_tag = asks ? data_transfer_tag(task->slot) : wire::TargetTransferTag::none,
            .data_number = number,
            .buffer_offset = static_cast<std::uint32_t>(offset)};
}

void TcpTargetMover::Slot::load_data_in() {
    const auto length = length_at(sent_in);
    const bool ends = sent_in + length == total_in;
    const auto& response = answer.response;
    // A status may ride on the last data if it says no more than that all went well
    // (section 11.7.3).
    last = ends && answer.sense.empty() && task->out_length == 0 && snack_tag == 0 &&
           response.response == wire::ServiceResponse::completed_at_target &&
           (response.status == wire::ScsiStatus::good ||
            response.status == wire::ScsiStatus::condition_met);
    count = last ? StatusCount::counts : StatusCount::peeks;
    auto pdu = data_in_at(sent_in, data_number++);
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
    response.snack_tag = snack_tag;
    repeated = snack_tag != 0 && on_its_way;
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
            if (std::exchange(on_its_way, false))
                mover.let_go_of_acknowledged();
            else
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
    if (sending != Sending::kept || on_its_way) return Then::done;
    if (std::exchange(resegment_wanted, false)) {
        resegment_now();
    } else if (!runs.empty()) {
        const auto run = runs[runs.size() - 1];
        runs.pop_back();
        repeat_now(run);
    }
    return Then::done;
}

void TcpTargetMover::Slot::acknowledged() {
    sending = Sending::nothing;
    mover.user_.answered(*std::exchange(task, nullptr));
}

// ----------------------------------------------------- once more, at error recovery level 1

/// Where the Data-In of this number begins; not one that is acknowledged.
std::uint64_t TcpTargetMover::Slot::offset_of(std::uint32_t number) const {
    auto offset = kept_offset;
    for (auto before = kept_number; before < number; ++before) offset += length_at(offset);
    return offset;
}

std::optional<wire::RejectReason> TcpTargetMover::Slot::repeat_data(std::uint32_t from,
                                                                    std::uint32_t length) {
    if (from == 0 && length == 0) from = kept_number;  // all that is not acknowledged
    const auto to = length == 0 ? data_number : from + length;
    if (from < kept_number || from >= to || to > data_number)
        return wire::RejectReason::protocol_error;
    if (sending == Sending::kept && !on_its_way) {
        repeat_now({from, to});
        return std::nullopt;
    }
    if (runs.full()) return wire::RejectReason::snack_reject;
    runs.push_back({from, to});
    return std::nullopt;
}

void TcpTargetMover::Slot::repeat_now(Run run) {
    repeat_from = run.from;
    repeat_to = run.to;
    swap_with_status();
    load_repeated();
    on_its_way = true;
    mover.queue(*this);
}

bool TcpTargetMover::Slot::data_acknowledged(std::uint32_t expected) {
    if (expected < kept_number || expected > data_number) return false;
    kept_offset = offset_of(expected);
    kept_number = expected;
    return true;
}

void TcpTargetMover::Slot::resegment(std::uint32_t tag) {
    snack_tag = tag;
    if (sending == Sending::kept && !on_its_way) return resegment_now();
    resegment_wanted = true;
}

void TcpTargetMover::Slot::resegment_now() {
    runs.clear();  // all of it goes again
    sent_in = kept_offset;
    data_number = kept_number;
    segment_max = mover.terms_.send_segment_max;
    repeated = false;
    on_its_way = true;
    load_answer();
    mover.queue(*this);
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
    const auto offset = offset_of(number);
    const auto pdu = data_in_at(offset, number);
    encode(pdu, header);
    count = StatusCount::peeks;
    data = answer.data_in;
    data_skip = offset;
    data_length = pdu.data_length;
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
