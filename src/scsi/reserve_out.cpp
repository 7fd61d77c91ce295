// SPDX-License-Identifier: Apache-2.0
// PERSISTENT RESERVE OUT: a change is made to a copy, kept where it is to outlive the target, and
// only then holds. Those that come meanwhile wait, one behind the other.
#include "scsi/commands.hpp"
#include "scsi/reservation_store.hpp"
#include "scsi/target.hpp"
#include "scsi/transport_identifier.hpp"
#include "wire/scsi_primary_commands.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

void answer_outcome(LogicalUnit& unit, Task& task, ReserveOutcome outcome) {
    switch (outcome) {
        case ReserveOutcome::done:
            return unit.good(task);
        case ReserveOutcome::conflict:
            return unit.end(task, ScsiStatus::reservation_conflict);
        case ReserveOutcome::invalid_field:
            return unit.refuse(task, bad_field(2));
        case ReserveOutcome::invalid_parameter:
            return unit.refuse(task, bad_parameter(20));
        case ReserveOutcome::invalid_release:
            return unit.refuse(task,
                               illegal(AdditionalSense::invalid_release_of_persistent_reservation));
        case ReserveOutcome::no_room:
            return unit.refuse(task, illegal(AdditionalSense::insufficient_registration_resources));
    }
}

void saved(LogicalUnit& unit, Task& task) {
    if (task.work.outcome) return unit.good(task);
    unit.refuse(task, illegal(AdditionalSense::insufficient_registration_resources));
}

/// Others hear what happened only now that it has; their tasks end, but for this one.
void carry_out(LogicalUnit& unit, const Task& task, const Reservations::Notices& notices) {
    Target::Pause pause(unit.target());
    auto for_each_meant = [&](auto act) {
        for (const auto& notice : notices)
            for (auto& nexus : unit.target().nexuses())
                if (nexus->name() == notice.who) act(notice, *nexus);
    };
    for_each_meant([&](const Notice& notice, Nexus& nexus) {
        if (notice.what != AdditionalSense::none) unit.tell(nexus, notice.what);
    });
    for_each_meant([&](const Notice& notice, Nexus& nexus) {
        if (!notice.abort_tasks || &nexus == task.nexus) return;
        if (unit.has_tasks(nexus))
            unit.tell(nexus, AdditionalSense::commands_cleared_by_another_initiator);
        unit.abort_tasks(LogicalUnit::Whose::of_nexus, &nexus);
    });
}

void apply(LogicalUnit& unit, const Task& task, Reservations&& changed,
           const Reservations::Notices& notices) {
    unit.state().reservations = std::move(changed);
    carry_out(unit, task, notices);
}

/// What is to outlive the target is on stable storage before it holds, and before anybody hears of
/// it: where it cannot be kept, nothing has happened. Once it is kept it holds, though the task may
/// have been aborted meanwhile.
void save_and_apply(LogicalUnit& unit, Task& task, Reservations&& changed,
                    Reservations::Notices&& notices) {
    auto& state = unit.state();
    state.saving_reservations = true;
    unit.wait(task, Waiting::store, saved);
    const auto octets = changed.stored();
    unit.options().reservations->save(
        unit.identity().serial, octets,
        [&unit, &task, changed = std::move(changed),
         notices = std::move(notices)](Result<void> outcome) mutable {
            Target::Pause pause(unit.target());
            auto& now = unit.state();
            now.saving_reservations = false;
            if (outcome) apply(unit, task, std::move(changed), notices);
            task.work.outcome = outcome;
            unit.resume(task);
            while (!now.saving_reservations && !now.waiting_reservers.empty())
                unit.resume(now.waiting_reservers.pop_front());
        });
}

/// The change, made to a copy.
struct Change {
    Reservations reservations;
    Reservations::Notices notices{};
    ReserveOutcome outcome{};
};

/// REGISTER AND MOVE; or what is wrong with its parameters.
std::optional<Sense> move(LogicalUnit& unit, const Task& task, Change& change) {
    const auto& who = task.nexus->name();
    const auto list = task.work.memory.first(static_cast<std::size_t>(task.answer.length_out));
    auto parameters = decode<RegisterAndMoveParameters>(list);
    if (!parameters) return parameter_length_error();
    auto name = named_by(list.subspan(wire_size<RegisterAndMoveParameters>()));
    if (!name) return bad_parameter(24);
    if (parameters->persist_through_power_loss && unit.options().reservations == nullptr)
        return bad_parameter(17);
    name->relative_port = parameters->relative_target_port;
    name->portal_group = who.portal_group;
    for (const auto& port : unit.target().ports())
        if (port.relative == parameters->relative_target_port) name->portal_group = port.group;
    change.outcome = change.reservations.move(*parameters, who, *name);
    return std::nullopt;
}

/// All others.
std::optional<Sense> act(LogicalUnit& unit, const Task& task, Change& change) {
    const auto command = parse<PersistentReserveOut>(task);
    auto parameters = decode<ReserveOutParameters>(task.work.memory);
    WEFT_CHECK(parameters.has_value());
    if (parameters->persist_through_power_loss && unit.options().reservations == nullptr)
        return bad_parameter(20);
    change.outcome = change.reservations.perform(command.action, command.type, *parameters,
                                                 task.nexus->name(), change.notices);
    return std::nullopt;
}

void perform(LogicalUnit& unit, Task& task) {
    if (task.offered_out < task.answer.length_out)
        return unit.refuse(task, parameter_length_error());
    auto& state = unit.state();
    if (state.reserved_by != nullptr) return unit.end(task, ScsiStatus::reservation_conflict);
    if (state.saving_reservations) {
        unit.wait(task, Waiting::reservers, perform);
        return state.waiting_reservers.push_back(task);
    }
    Change change{.reservations = state.reservations};
    const bool is_move =
        parse<PersistentReserveOut>(task).action == ReserveOutAction::register_and_move;
    const auto wrong = is_move ? move(unit, task, change) : act(unit, task, change);
    if (wrong) return unit.refuse(task, *wrong);
    if (change.outcome != ReserveOutcome::done) return answer_outcome(unit, task, change.outcome);
    const bool kept = state.reservations.persists() || change.reservations.persists();
    if (kept && unit.options().reservations != nullptr)
        return save_and_apply(unit, task, std::move(change.reservations),
                              std::move(change.notices));
    apply(unit, task, std::move(change.reservations), change.notices);
    unit.good(task);
}

void collect_parameters(LogicalUnit& unit, Task& task) {
    unit.want_data(task, perform);
}

}  // namespace

void persistent_reserve_out(LogicalUnit& unit, Task& task) {
    const auto command = parse<PersistentReserveOut>(task);
    if (unit.state().reserved_by != nullptr)
        return unit.end(task, ScsiStatus::reservation_conflict);
    const bool is_move = command.action == ReserveOutAction::register_and_move;
    const auto least =
        is_move ? wire_size<RegisterAndMoveParameters>() : wire_size<ReserveOutParameters>();
    const bool names_type = command.action != ReserveOutAction::register_key &&
                            command.action != ReserveOutAction::register_and_ignore_existing_key &&
                            command.action != ReserveOutAction::clear;
    if (names_type && command.scope != logical_unit_scope)
        return unit.refuse(task, bad_field(2, 7));
    if (command.parameter_length < least || command.parameter_length > parameter_bytes ||
        (!is_move && command.parameter_length != least))
        return unit.refuse(task, parameter_length_error());
    task.answer.length_out = command.parameter_length;
    unit.take_memory(task, parameter_bytes, collect_parameters);
}

}  // namespace weft::scsi
