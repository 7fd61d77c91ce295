// SPDX-License-Identifier: Apache-2.0
// Error recovery level 1 at the initiator: what came with a wrong digest is asked for again, by
// SNACK, and until it is there the target keeps it, since no status behind it is acknowledged (RFC
// 7143 sections 7.8 and 11.16).
#include "iscsi/tcp_initiator_mover.hpp"

namespace weft::iscsi {

void TcpInitiatorMover::send_snack(const wire::SnackRequestPdu& snack) {
    std::array<std::byte, wire::basic_header_size> header{};
    encode(snack, header);
    send({.header = header, .data = {}});
}

bool TcpInitiatorMover::ask_for_data_again(Slot& slot) {
    const auto number = data_in_.data_number;
    if (!recovers() || slot.damaged || ++asked_in_vain_ > initiator_snacks_max) return false;
    if (!slot.has_hole(number)) {
        if (slot.holes.full()) return false;
        slot.holes.push_back(number);
    }
    // The status that came along comes along again, too.
    if (data_in_.has_status) leave_unsettled(data_in_.numbers.status_number);
    send_snack({.type = wire::SnackType::data_or_ready_to_transfer,
                .task_tag = data_in_.task_tag,
                .transfer_or_snack_tag = 0xffffffff,
                .first_of_run = number,
                .run_length = 1});
    return true;
}

void TcpInitiatorMover::fill_hole(Slot& slot, std::uint32_t number) {
    for (std::size_t i = 0; i < slot.holes.size(); ++i) {
        if (slot.holes[i] != number) continue;
        slot.holes[i] = slot.holes[slot.holes.size() - 1];
        slot.holes.pop_back();
        asked_in_vain_ = 0;
        return;
    }
}

void TcpInitiatorMover::go_on_if_whole(Slot& slot) {
    if (!slot.holes.empty() && !slot.damaged) return;
    acknowledge_data(slot);
    if (!slot.held) return;
    const auto held = *std::exchange(slot.held, std::nullopt);
    take_status(slot, held.response, {held.sense.data(), held.sense.size()});
}

void TcpInitiatorMover::acknowledge_data(Slot& slot) {
    // With the status comes an acknowledgement of all data.
    if (!slot.to_acknowledge || slot.held || slot.damaged) return slot.to_acknowledge.reset();
    send_snack(
        {.type = wire::SnackType::data_acknowledgement,
         .logical_unit = slot.to_acknowledge->logical_unit,
         .task_tag = wire::InitiatorTaskTag::none,
         .transfer_or_snack_tag = static_cast<std::uint32_t>(slot.to_acknowledge->transfer_tag),
         .first_of_run = slot.next_data_number});
    slot.to_acknowledge.reset();
}

void TcpInitiatorMover::take_status(Slot& slot, const wire::ScsiResponsePdu& response,
                                    ConstBuffer sense) {
    if (slot.holes.empty() || slot.damaged) {
        settle(response.numbers.status_number);
        InitiatorAnswer whole;
        whole.response = response;
        whole.sense = sense;
        return answer(slot, whole);
    }
    auto& held = slot.held.emplace();
    held.response = response;
    for (std::byte octet : sense.first(std::min(sense.size(), held.sense.capacity())))
        held.sense.push_back(octet);
    leave_unsettled(response.numbers.status_number);
}

Result<void> TcpInitiatorMover::ask_for_status_again(std::uint32_t number) {
    if (!recovers() || ++asked_in_vain_ > initiator_snacks_max)
        return Error{.code = Code::io_failed};
    leave_unsettled(number);
    send_snack({.type = wire::SnackType::status,
                .task_tag = wire::InitiatorTaskTag::none,
                .transfer_or_snack_tag = 0xffffffff,
                .first_of_run = number,
                .run_length = 1});
    return {};
}

StatusCount TcpInitiatorMover::count_of(std::uint32_t status_number) const {
    const bool known =
        std::find(unsettled_.begin(), unsettled_.end(), status_number) != unsettled_.end();
    return known ? StatusCount::peeks : StatusCount::counts;
}

void TcpInitiatorMover::leave_unsettled(std::uint32_t status_number) {
    if (recovers() && count_of(status_number) == StatusCount::counts)
        unsettled_.push_back(status_number);
}

void TcpInitiatorMover::settle(std::uint32_t status_number) {
    if (std::erase(unsettled_, status_number) > 0) asked_in_vain_ = 0;
}

}  // namespace weft::iscsi
