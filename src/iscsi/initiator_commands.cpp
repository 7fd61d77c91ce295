// SPDX-License-Identifier: Apache-2.0
// The commands of an InitiatorSession: from the queue to a connection and back.
#include <algorithm>

#include "iscsi/initiator_session.hpp"

namespace weft::iscsi {

void InitiatorSession::submit(InitiatorCommand& command) {
    command.journey = {};
    waiting_.push_back(command);
    start_waiting();
}

void InitiatorSession::submit_first(InitiatorCommand& command) {
    command.journey = {};
    command.journey.first = true;
    first_.push_back(command);
    start_waiting();
}

void InitiatorSession::submit_again(InitiatorCommand& command) {
    // In front: what overlaps waits for one that was perhaps carried out, and must not wait for
    // itself.
    auto& queue = command.journey.first ? first_ : waiting_;
    IntrusiveQueue<InitiatorCommand> ahead;
    ahead.push_back(command);
    ahead.append(queue);
    queue = ahead;
    start_waiting();
}

void InitiatorSession::hold(bool held) {
    held_ = held;
    start_waiting();
}

void InitiatorSession::submit_later(InitiatorCommand& command) {
    later_.push_back(&command);
    again_later_ += command.journey.again ? 1 : 0;
    if (later_deadline_) return;
    later_deadline_ = now_ + busy_pause;
    user_.deadline_changed();
}

void InitiatorSession::start_waiting() {
    // start() may end a command at once, whose maker may submit the next: one loop takes them all.
    if (starting_) return;
    starting_ = true;
    while (state_ == State::up && !draining_ && something_to_start() && !free_slots_.empty() &&
           window_open()) {
        if (first_.empty() && must_wait(waiting_.front())) break;
        InitiatorConnection* connection = next_connection();
        if (connection == nullptr) break;
        start(first_.empty() ? waiting_.pop_front() : first_.pop_front(), *connection);
    }
    starting_ = false;
    log_out_if_idle();
}

InitiatorConnection* InitiatorSession::next_connection() {
    InitiatorConnection* best = nullptr;
    for (std::size_t step = 1; step <= connections_.size(); ++step) {
        InitiatorConnection& connection =
            *connections_[(last_connection_ + step) % connections_.size()];
        if (connection.ready() && (best == nullptr || connection.under_way < best->under_way))
            best = &connection;
    }
    if (best != nullptr) last_connection_ = best->index();
    return best;
}

bool InitiatorSession::must_wait(const InitiatorCommand& command) const {
    if (again_under_way_ + again_later_ == 0) return false;
    auto in_the_way = [&](const InitiatorCommand* other) {
        return other != nullptr && other->journey.again && overlap(*other, command);
    };
    return std::ranges::any_of(slots_, in_the_way) || std::ranges::any_of(later_, in_the_way);
}

void InitiatorSession::start(InitiatorCommand& command, InitiatorConnection& connection) {
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = &command;
    ++under_way_;
    again_under_way_ += command.journey.again ? 1 : 0;
    ++connection.under_way;
    command.slot = slot;
    command.journey.connection = connection.index();
    command.journey.answered = command.journey.damaged = false;
    command.journey.since.reset();
    if (command.journey.order == 0) command.journey.order = next_order_++;
    generation_ = (generation_ + 1) & 0xffffff;
    command.command.task_tag =
        static_cast<wire::InitiatorTaskTag>(generation_ << tag_slot_bits | slot);
    command.command.numbers.command_number = command_number_.value();
    ++command_number_;
    connection.mover().start(command);
}

InitiatorMoverTask* InitiatorSession::find_task(wire::InitiatorTaskTag tag) {
    const std::uint32_t slot = static_cast<std::uint32_t>(tag) & ((1u << tag_slot_bits) - 1);
    if (slot >= slots_.size() || slots_[slot] == nullptr) return nullptr;
    return slots_[slot]->command.task_tag == tag ? slots_[slot] : nullptr;
}

void InitiatorSession::heard(const wire::TargetNumbers& numbers) {
    // RFC 7143 section 4.2.2.1: a window that ends before it begins says nothing.
    const SequenceNumber32 expected(numbers.expected_command_number);
    const SequenceNumber32 last(numbers.max_command_number);
    if (last + 1 < expected) return;
    expected_command_number_ = std::max(expected_command_number_, expected);
    if (last <= max_command_number_) return;
    max_command_number_ = last;
    if (something_to_start()) start_waiting();
}

void InitiatorSession::responded(InitiatorCommand& command, const InitiatorAnswer& answer) {
    command.journey.answered = true;
    command.journey.damaged = answer.damaged;
    command.journey.sense.clear();
    for (std::byte octet : answer.sense.first(std::min(answer.sense.size(), std::size_t{252})))
        command.journey.sense.push_back(octet);
    command.journey.end = {.status = answer.response.status,
                           .sense = {command.journey.sense.data(), command.journey.sense.size()},
                           .placed = answer.placed,
                           .residual = answer.response.residual,
                           .residual_count = answer.response.residual_count};
    if (answer.response.response != wire::ServiceResponse::completed_at_target)
        command.journey.end.delivered = Error{.code = Code::io_failed};
    mark_overtaken(command);
}

void InitiatorSession::mark_overtaken(const InitiatorCommand& acknowledged) {
    // Whatever the status: a change that failed may have been made in part.
    if (acknowledged.effect != Effect::replaces) return;
    for (InitiatorCommand* command : slots_)
        if (command != nullptr && command->journey.order < acknowledged.journey.order &&
            overlap(*command, acknowledged))
            command->journey.overtaken = true;
}

void InitiatorSession::retired(InitiatorCommand& command) {
    if (command.slot >= slots_.size() || slots_[command.slot] != &command) return;
    slots_[command.slot] = nullptr;
    if (rescue_ && rescue_->command == &command) rescue_->command = nullptr;
    free_slots_.push_back(command.slot);
    --under_way_;
    again_under_way_ -= command.journey.again ? 1 : 0;
    --connections_[command.journey.connection]->under_way;
    if (command.journey.damaged && command.effect == Effect::reads && may_send_again(command)) {
        // Bytes were lost on the way and the command can be had again: nothing has happened yet.
        (command.journey.first ? first_ : waiting_).push_back(command);
    } else {
        if (command.journey.damaged)
            command.journey.end = {.delivered = Error{.code = Code::io_failed}};
        const CommandEnd end = command.journey.end;
        command.journey.order = 0;
        command.ended(end);
    }
    start_waiting();
}

}  // namespace weft::iscsi
