// SPDX-License-Identifier: Apache-2.0
// Commands of an InitiatorSession that take too long, though the target is alive: pings tell that.
//
// First the command is aborted. If the target does not do that, the logical unit is reset, which
// ends everybody's commands there; if that does not help either, the session is begun anew. In each
// case the command's maker hears that time ran out, and a write may have been carried out, in part
// or not at all: it is not sent again. One command is seen to at a time.
#include "iscsi/initiator_session.hpp"

namespace weft::iscsi {

using wire::TaskManagementFunction;
using wire::TaskManagementResult;

void InitiatorSession::watch_commands() {
    if (options_.command_patience == Duration{} || state_ != State::up) return;
    if (rescue_) {
        if (now_ >= rescue_->patience_ends) try_next_rescue();
        return;
    }
    InitiatorCommand* oldest = nullptr;
    for (InitiatorCommand* command : slots_) {
        if (command == nullptr || command->journey.answered) continue;
        auto& since = command->journey.since;
        // The clock was read at the tick before: what was sent after it may be as young as now.
        if (!since) since = now_;
        if (now_ - *since < options_.command_patience) continue;
        if (oldest == nullptr || command->journey.order < oldest->journey.order) oldest = command;
    }
    if (oldest != nullptr) rescue(*oldest);
}

void InitiatorSession::rescue(InitiatorCommand& command) {
    ++rescues_;
    rescue_ = {.step = Rescue::Step::abort,
               .command = &command,
               .connection = command.journey.connection,
               .unit = command.command.logical_unit,
               .patience_ends = now_ + rescue_patience};
    send_rescue(TaskManagementFunction::abort_task);
}

void InitiatorSession::send_rescue(TaskManagementFunction function) {
    const bool abort = function == TaskManagementFunction::abort_task;
    const auto& command = rescue_->command->command;
    connections_[rescue_->connection]->send(
        wire::TaskManagementRequestPdu{
            .immediate = true,
            .function = function,
            .logical_unit = rescue_->unit,
            .task_tag = static_cast<wire::InitiatorTaskTag>(rescue_tag),
            .referenced_task_tag = abort ? command.task_tag : wire::InitiatorTaskTag::none,
            .numbers = {.command_number = command_number_.value()},
            .referenced_command_number = abort ? command.numbers.command_number : 0},
        {});
    user_.deadline_changed();
}

/// What was tried did not help.
void InitiatorSession::try_next_rescue() {
    if (rescue_->command == nullptr) {
        rescue_.reset();
        return;
    }
    if (rescue_->step == Rescue::Step::abort) {
        rescue_->step = Rescue::Step::reset;
        rescue_->patience_ends = now_ + rescue_patience;
        return send_rescue(TaskManagementFunction::logical_unit_reset);
    }
    auto& journey = rescue_->command->journey;
    journey.answered = true;
    journey.end = {.delivered = Error{.code = Code::timed_out}};
    end_session({.code = Code::timed_out});
}

void InitiatorSession::take_management(const ReceivedPdu& pdu) {
    const auto response = decode<wire::TaskManagementResponsePdu>(pdu.header);
    if (!response) return end_session(response.error());
    if (!rescue_) return;
    const bool abort = rescue_->step == Rescue::Step::abort;
    const bool over = response->result == TaskManagementResult::complete ||
                      (abort && response->result == TaskManagementResult::task_does_not_exist);
    InitiatorCommand* command = rescue_->command;
    if (command == nullptr || !over) return try_next_rescue();
    command->journey.answered = true;
    command->journey.end = {.delivered = Error{.code = Code::timed_out}};
    // After a reset all else that was under way at the unit is gone too: a new session sends it
    // again, in its order.
    if (!abort) return end_session({.code = Code::timed_out});
    rescue_.reset();
    connections_[command->journey.connection]->mover().abandon(*command);
    watch_commands();
}

}  // namespace weft::iscsi
