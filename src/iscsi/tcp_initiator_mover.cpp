// SPDX-License-Identifier: Apache-2.0
// How commands and their data-out go. What comes is in tcp_initiator_replies.cpp.
#include "iscsi/tcp_initiator_mover.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/sequence_number.hpp"

namespace weft::iscsi {

TcpInitiatorMover::TcpInitiatorMover(InitiatorDatamoverUser& user)
    : user_(user), receiver_(initiator_scratch) {}

TcpInitiatorMover::~TcpInitiatorMover() = default;

void TcpInitiatorMover::begin_full_feature(const ConnectionTerms& terms) {
    terms_ = terms;
    const Digests digests{terms.header_digest, terms.data_digest};
    sender_.use_digests(digests);
    receiver_.use_digests(digests);
    receiver_.limit_data_length(terms.receive_segment_max);
    slots_ = std::vector<Slot>(terms.tasks_max);
    for (Slot& slot : slots_) slot.mover = this;
}

void TcpInitiatorMover::stamp(std::span<std::byte> header) {
    SequenceNumber32 expected(user_.expected_status_number());
    for (const auto number : unsettled_) expected = std::min(expected, SequenceNumber32(number));
    store_big_endian<4>(expected.value(), header.data() + wire::expected_status_number_at);
}

void TcpInitiatorMover::Slot::about_to_go() {
    mover->stamp(header);
}

void TcpInitiatorMover::Control::about_to_go() {
    mover->stamp(header);
}

OutgoingPdu::Then TcpInitiatorMover::Control::gone() {
    mover->controls_.erase(self);  // and with it this
    return Then::done;
}

void TcpInitiatorMover::send(const ControlPdu& pdu) {
    if (failed_) return;
    Control& control = controls_.emplace_back();
    control.self = std::prev(controls_.end());
    control.mover = this;
    WEFT_CHECK(pdu.header.size() == control.header.size());
    std::ranges::copy(pdu.header, control.header.begin());
    control.octets.assign(pdu.data.begin(), pdu.data.end());
    control.piece = control.octets;
    control.data = {&control.piece, 1};
    control.data_length = static_cast<std::uint32_t>(pdu.data.size());
    sender_.queue(control);
    wake();
}

void TcpInitiatorMover::start(InitiatorMoverTask& task) {
    WEFT_CHECK(task.slot < slots_.size() && slots_[task.slot].task == nullptr);
    Slot& slot = slots_[task.slot];
    slot.task = &task;
    slot.over = slot.damaged = slot.receiving = false;
    slot.burst = {};
    slot.requests.clear();
    slot.holes.clear();
    slot.held.reset();
    slot.to_acknowledge.reset();
    slot.next_data_number = slot.next_request_number = 0;
    slot.placed = 0;
    if (failed_) return;  // lost() is about to come, and then it is the user's again

    wire::ScsiCommandPdu command = task.command;
    const std::uint32_t length = command.write ? command.expected_transfer_length : 0;
    const std::uint32_t unsolicited = std::min(length, terms_.first_burst_max);
    const std::uint32_t immediate =
        terms_.immediate_data ? std::min(unsolicited, terms_.send_segment_max) : 0;
    if (!terms_.initial_request_needed)
        slot.burst = {.offset = immediate, .left = unsolicited - immediate};
    command.final = slot.burst.left == 0;
    command.data_length = immediate;
    command.additional_header_words =
        static_cast<std::uint8_t>(task.additional_headers.size() / wire::iscsi_padding_unit);
    encode(command, slot.header);
    slot.additional = task.additional_headers;
    slot.data = task.data_out;
    slot.data_skip = 0;
    slot.data_length = immediate;
    slot.queued = true;
    sender_.queue(slot);
    wake();
}

void TcpInitiatorMover::load_burst(Slot& slot) {
    Burst& burst = slot.burst;
    const std::uint32_t length = std::min(burst.left, terms_.send_segment_max);
    const wire::DataOutPdu pdu{.final = length == burst.left,
                               .data_length = length,
                               .logical_unit = burst.transfer_tag == wire::TargetTransferTag::none
                                                   ? wire::LogicalUnit{}
                                                   : slot.task->command.logical_unit,
                               .task_tag = slot.task->command.task_tag,
                               .transfer_tag = burst.transfer_tag,
                               .data_number = burst.data_number++,
                               .buffer_offset = burst.offset};
    encode(pdu, slot.header);
    slot.additional = {};
    slot.data_skip = burst.offset;
    slot.data_length = length;
    burst.offset += length;
    burst.left -= length;
    slot.queued = true;
}

OutgoingPdu::Then TcpInitiatorMover::Slot::gone() {
    queued = false;
    if (over) {
        mover->retire_if_over(*this);
        return Then::done;
    }
    if (burst.left > 0) {
        mover->load_burst(*this);
        return Then::again;
    }
    if (!requests.empty()) {
        // Behind what others have queued meanwhile: no command's data keeps all else waiting.
        burst = requests.front();
        requests.pop_front();
        mover->load_burst(*this);
        mover->sender_.queue(*this);
    }
    return Then::done;
}

void TcpInitiatorMover::abandon(InitiatorMoverTask& task) {
    Slot& slot = slots_[task.slot];
    WEFT_CHECK(slot.task == &task);
    slot.over = true;
    retire_if_over(slot);
}

void TcpInitiatorMover::retire_if_over(Slot& slot) {
    if (!slot.over || slot.queued || slot.receiving || slot.task == nullptr) return;
    InitiatorMoverTask& task = *slot.task;
    slot.task = nullptr;
    user_.retired(task);
}

std::size_t TcpInitiatorMover::pending(std::span<ConstBuffer> pieces) {
    return failed_ ? 0 : sender_.pending(pieces);
}

void TcpInitiatorMover::sent(std::size_t count) {
    const bool was_full = controls_.size() >= initiator_control_max;
    sender_.sent(count);
    if (was_full && controls_.size() < initiator_control_max) wake();
    release();
}

void TcpInitiatorMover::release_when_sent(std::function<void(std::unique_ptr<Stream>)> released) {
    released_ = std::move(released);
    release();
}

void TcpInitiatorMover::release() {
    if (!released_ || !sender_.empty()) return;
    std::exchange(released_, nullptr)(std::move(stream_));
}

void TcpInitiatorMover::wake() {
    if (stream_) stream_->wake();
}

void TcpInitiatorMover::close_when_sent() {
    closing_ = true;
    wake();
}

void TcpInitiatorMover::close() {
    fail({.code = Code::disconnected});
}

void TcpInitiatorMover::fail(Error why) {
    if (!failed_) fault_ = why;
    failed_ = true;
    wake();
}

bool TcpInitiatorMover::finished() const {
    return failed_ || (closing_ && sender_.empty());
}

void TcpInitiatorMover::closed(std::optional<Error> why) {
    failed_ = true;
    sender_.drop_all();
    controls_.clear();
    for (Slot& slot : slots_) slot.task = nullptr;
    user_.lost(fault_ ? fault_ : why);
}

}  // namespace weft::iscsi
