// SPDX-License-Identifier: Apache-2.0
// RESERVE and RELEASE of SPC-2, and the persistent reservations that took their place. Who has
// registered is served by the old commands as if they did nothing (CRH), as SPC-4 wants.
#include <vector>

#include "base/bytes.hpp"
#include "scsi/commands.hpp"
#include "scsi/report_writer.hpp"
#include "scsi/reservation_store.hpp"
#include "scsi/target.hpp"
#include "scsi/transport_identifier.hpp"
#include "wire/scsi_primary_commands.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

bool is_third_party(const Task& task) {
    const auto operation = task.work.command->operation;
    return (operation == ScsiOperation::reserve_10 && parse<Reserve10>(task).third_party) ||
           (operation == ScsiOperation::release_10 && parse<Release10>(task).third_party);
}

bool reserved_by_other(LogicalUnit& unit, const Task& task) {
    const auto* holder = unit.state().reserved_by;
    return holder != nullptr && holder != task.nexus;
}

}  // namespace

void reserve(LogicalUnit& unit, Task& task) {
    if (is_third_party(task)) return unit.refuse(task, bad_field(1, 4));
    const auto& persistent = unit.state().reservations;
    if (!persistent.empty() || unit.state().saving_reservations) {
        const auto& name = task.nexus->name();
        const bool allowed = persistent.of(name) != nullptr || persistent.holds(name);
        return unit.end(task, allowed ? ScsiStatus::good : ScsiStatus::reservation_conflict);
    }
    if (reserved_by_other(unit, task)) return unit.end(task, ScsiStatus::reservation_conflict);
    unit.state().reserved_by = task.nexus;
    unit.good(task);
}

void release(LogicalUnit& unit, Task& task) {
    if (is_third_party(task)) return unit.refuse(task, bad_field(1, 4));
    auto& state = unit.state();
    if (!state.reservations.empty() && state.reservations.of(task.nexus->name()) == nullptr)
        return unit.end(task, ScsiStatus::reservation_conflict);
    // Not his: nothing happens, and that is not an error.
    if (state.reserved_by == task.nexus) state.reserved_by = nullptr;
    unit.good(task);
}

// --- PERSISTENT RESERVE IN

namespace {

void put_keys(const Reservations& reservations, ReportWriter& report) {
    const auto& all = reservations.registrations();
    report.put(
        ReserveInHeader{reservations.generation(), static_cast<std::uint32_t>(all.size() * 8)});
    for (const auto& one : all) report.put_number<8>(static_cast<std::uint64_t>(one.key));
}

void put_reservation(const Reservations& reservations, ReportWriter& report) {
    const auto length = reservations.reserved() ? wire_size<ReservationDescriptor>() : 0;
    report.put(ReserveInHeader{reservations.generation(), static_cast<std::uint32_t>(length)});
    if (reservations.reserved())
        report.put(
            ReservationDescriptor{.key = reservations.holder_key(), .type = reservations.type()});
}

void put_capabilities(LogicalUnit& unit, ReportWriter& report) {
    report.put(ReservationCapabilities{
        .compatible_reservation_handling = true,
        .all_target_ports = true,
        .persist_through_power_loss = unit.options().reservations != nullptr,
        .type_mask_valid = true,
        .power_loss_persistence_active = unit.state().reservations.persists(),
        .write_exclusive_all_registrants = true,
        .exclusive_access_registrants_only = true,
        .write_exclusive_registrants_only = true,
        .exclusive_access = true,
        .write_exclusive = true,
        .exclusive_access_all_registrants = true});
}

void put_full_status(const Reservations& reservations, ReportWriter& report) {
    report.put(ReserveInHeader{reservations.generation(), 0});
    for (const auto& one : reservations.registrations()) {
        const auto identifier = transport_identifier(one.name);
        const bool holder = reservations.holds(one.name);
        report.put(FullStatusDescriptor{
            .key = one.key,
            .all_target_ports = one.all_target_ports,
            .holder = holder,
            .type = holder ? reservations.type() : ReservationType::none,
            .relative_target_port =
                one.all_target_ports ? std::uint16_t{0} : one.name.relative_port,
            .transport_identifier_length = static_cast<std::uint32_t>(identifier.size())});
        report.put(ConstBuffer(identifier));
    }
    report.put_at(0, ReserveInHeader{
                         reservations.generation(),
                         static_cast<std::uint32_t>(report.size() - wire_size<ReserveInHeader>())});
}

void write_reserve_in(LogicalUnit& unit, Task& task) {
    const auto command = parse<PersistentReserveIn>(task);
    const auto& reservations = unit.state().reservations;
    ReportWriter report(task.work.memory);
    switch (command.action) {
        case ReserveInAction::read_keys:
            put_keys(reservations, report);
            break;
        case ReserveInAction::read_reservation:
            put_reservation(reservations, report);
            break;
        case ReserveInAction::report_capabilities:
            put_capabilities(unit, report);
            break;
        case ReserveInAction::read_full_status:
            put_full_status(reservations, report);
            break;
    }
    unit.answer(task, report.size(), command.allocation_length);
}

}  // namespace

void persistent_reserve_in(LogicalUnit& unit, Task& task) {
    if (reserved_by_other(unit, task)) return unit.end(task, ScsiStatus::reservation_conflict);
    unit.take_memory(task, long_report_bytes, write_reserve_in);
}

// --- PERSISTENT RESERVE OUT

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
