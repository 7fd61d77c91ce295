// SPDX-License-Identifier: Apache-2.0
// What a target does on request of an initiator besides SCSI commands: answer pings, manage tasks,
// talk in text, and say goodbye.
#include <algorithm>

#include "iscsi/connection_terms.hpp"
#include "iscsi/target_connection.hpp"
#include "iscsi/target_management.hpp"
#include "iscsi/target_send.hpp"
#include "wire/iscsi_login.hpp"

namespace weft::iscsi {

using Function = wire::TaskManagementFunction;
using Outcome = wire::TaskManagementResult;

void TargetConnection::request(const ReceivedPdu& pdu) {
    if (stage_ == Stage::leaving) return refused(pdu, wire::RejectReason::waiting_for_logout);
    if (stage_ != Stage::full_feature) return;
    switch (pdu.basic.opcode) {
        case wire::IscsiOpcode::nop_out:
            return ping(pdu);
        case wire::IscsiOpcode::task_management_request:
            return manage(pdu);
        case wire::IscsiOpcode::text_request:
            return text(pdu);
        case wire::IscsiOpcode::logout_request:
            return logout(pdu);
        default:
            return refused(pdu, wire::RejectReason::command_not_supported);
    }
}

void TargetConnection::ping(const ReceivedPdu& pdu) {
    auto ping = decode<wire::NopOutPdu>(pdu.header);
    if (!ping) return refused(pdu, wire::RejectReason::protocol_error);
    if (ping->task_tag == wire::InitiatorTaskTag::none)
        return;  // an answer, or only a sign of life
    auto echo = pdu.data.first(std::min<std::size_t>(pdu.data.size(), mover_->control_data_max()));
    send(wire::NopInPdu{.logical_unit = ping->logical_unit,
                        .task_tag = ping->task_tag,
                        .transfer_tag = wire::TargetTransferTag::none},
         echo, StatusCount::counts);
}

// ------------------------------------------------------------------------------ task management

void TargetConnection::Management::done(Outcome outcome) {
    if (connection != nullptr) return connection->managed(*this, outcome);
    delete this;  // its connection is gone, and let it go
}

void TargetConnection::manage(const ReceivedPdu& pdu) {
    auto request = decode<wire::TaskManagementRequestPdu>(pdu.header);
    if (!request || session_->target() == nullptr)
        return refused(pdu, wire::RejectReason::protocol_error);
    if (session_->managements >= managements_max)
        return refused(pdu, wire::RejectReason::too_many_immediate_commands);
    ++session_->managements;
    ++node_.statistics().managements;
    managements_.push_back(std::make_unique<Management>(*this, request->task_tag));
    auto& management = *managements_.back();
    management.function = request->function;
    management.nexus = session_->nexus();
    management.logical_unit = request->logical_unit;
    withdraw_what_waits(*request);
    if (auto result = answer_without_unit(management, *request))
        return managed(management, *result);
    session_->scsi_target().manage(management);
}

/// What has a smaller number and has not begun must not begin, nor answer, after the function has
/// (section 11.5.1): its unit does not know of it yet.
void TargetConnection::withdraw_what_waits(const wire::TaskManagementRequestPdu& request) {
    const auto number = request.numbers.command_number;
    switch (request.function) {
        case Function::abort_task_set:
        case Function::clear_task_set:
        case Function::logical_unit_reset:
            return session_->withdraw_before(number, request.logical_unit);
        case Function::target_warm_reset:
        case Function::target_cold_reset:
        case Function::nexus_reset:
            return session_->withdraw_before(number, std::nullopt);
        default:
            return;
    }
}

/// The result, where iSCSI alone can tell; otherwise the management is ready for the target.
std::optional<Outcome> TargetConnection::answer_without_unit(
    Management& management, const wire::TaskManagementRequestPdu& request) {
    const bool new_functions = request.function >= Function::query_task;
    if (new_functions && terms_.protocol_level < 2) return Outcome::function_not_supported;
    if (request.function == Function::task_reassign) return Outcome::reassignment_not_supported;
    if (request.function != Function::abort_task && request.function != Function::query_task)
        return std::nullopt;
    auto* task = session_->find_task(request.referenced_task_tag);
    if (task && task->TargetMoverTask::logical_unit != request.logical_unit)
        return Outcome::task_does_not_exist;
    if (task != nullptr && task->executing()) {
        management.task = task;
        return std::nullopt;
    }
    if (request.function == Function::query_task) return Outcome::complete;
    // Its answer is on its way, before ours: to the initiator it is over.
    if (task != nullptr && task->answering()) return Outcome::task_does_not_exist;
    if (task != nullptr) {
        session_->withdraw(*task);
        return Outcome::complete;
    }
    // Not here yet, perhaps: if it comes later it shall find its number used up (section 11.5.5).
    const auto before = SequenceNumber32(request.referenced_command_number) <
                        SequenceNumber32(request.numbers.command_number);
    if (before && session_->void_number(request.referenced_command_number))
        return Outcome::complete;
    return Outcome::task_does_not_exist;
}

void TargetConnection::managed(Management& management, Outcome result) {
    send(wire::TaskManagementResponsePdu{.result = result, .task_tag = management.tag}, {},
         StatusCount::counts);
    const bool cold = management.function == Function::target_cold_reset;
    end_management(management);
    if (!cold || result != Outcome::complete) return;
    // A cold reset ends every session of the target, this one too once the answer has gone.
    auto* target = session_->target();
    for (auto& session : node_.sessions()) {
        if (session->target() != target) continue;
        for (auto* connection : std::vector(session->connections())) connection->close_when_sent();
    }
}

void TargetConnection::end_management(Management& management) {
    --session_->managements;
    std::erase_if(managements_, [&](auto& each) { return each.get() == &management; });
}

// --------------------------------------------------------------------------------- text, logout

void TargetConnection::text(const ReceivedPdu& pdu) {
    auto request = decode<wire::TextRequestPdu>(pdu.header);
    if (!request) return refused(pdu, wire::RejectReason::protocol_error);
    auto most = std::min<std::size_t>(mover_->control_data_max(), login_segment_max);
    auto answer = text_->take(*request, pdu.data, most);
    if (!answer) return refused(pdu, wire::RejectReason::protocol_error);
    send(answer->pdu, answer->data, StatusCount::counts);
    if (terms_ == text_->terms()) return;
    terms_ = text_->terms();  // another segment length was declared
    mover_->change_send_segment_max(target_connection_terms(terms_).send_segment_max);
}

void TargetConnection::logout(const ReceivedPdu& pdu) {
    auto request = decode<wire::LogoutRequestPdu>(pdu.header);
    if (!request) return refused(pdu, wire::RejectReason::protocol_error);
    // The response says that all is over (section 11.15): it waits for that.
    auto respond = [this, tag = request->task_tag](wire::LogoutResult result) {
        send(
            wire::LogoutResponsePdu{
                .result = result,
                .task_tag = tag,
                .wait_seconds = static_cast<std::uint16_t>(terms_.time_to_wait),
                .retain_seconds = static_cast<std::uint16_t>(terms_.time_to_retain)},
            {}, StatusCount::counts);
    };
    switch (request->reason) {
        case wire::LogoutReason::close_session:
            for (auto* each : session_->connections()) each->begin_leaving();
            return session_->end_tasks(nullptr, *this, [this, respond] {
                respond(wire::LogoutResult::closed);
                for (auto* each : std::vector(session_->connections())) each->close_when_sent();
            });
        case wire::LogoutReason::close_connection: {
            const auto id = request->connection_id;
            auto* other = session_->find(id);
            if (other == nullptr) return respond(wire::LogoutResult::connection_not_found);
            if (session_->ends_tasks(other))
                return refused(pdu, wire::RejectReason::task_in_progress);
            other->begin_leaving();
            return session_->end_tasks(other, *this, [this, respond, id] {
                respond(wire::LogoutResult::closed);
                if (auto* leaving = session_->find(id)) leaving->close_when_sent();
            });
        }
        case wire::LogoutReason::remove_connection_for_recovery:
            return respond(wire::LogoutResult::recovery_not_supported);
    }
    refused(pdu, wire::RejectReason::invalid_pdu_field);
}

/// The connection is gone: its session learns, and what was asked for on it is nobody's.
void TargetConnection::leave_session() {
    for (auto& management : managements_) {
        management->connection = nullptr;
        --session_->managements;
        management.release();  // it ends itself when it is done
    }
    managements_.clear();
    if (auto* session = std::exchange(session_, nullptr)) session->leave(*this);
}

}  // namespace weft::iscsi
