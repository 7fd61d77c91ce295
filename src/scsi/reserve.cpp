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
    if (!persistent.empty()) {
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

/// What is to outlive the target is on stable storage before the initiator hears of it.
void save_and_answer(LogicalUnit& unit, Task& task, bool was_stored) {
    auto* store = unit.options().reservations;
    const bool changed = was_stored || unit.state().reservations.persists();
    if (store == nullptr || !changed) return unit.good(task);
    unit.wait(task, Waiting::store, saved);
    const auto octets = unit.state().reservations.stored();
    store->save(unit.identity().serial, octets, [&unit, &task](Result<void> outcome) {
        task.work.outcome = outcome;
        unit.resume(task);
    });
}

void perform(LogicalUnit& unit, Task& task) {
    const auto command = parse<PersistentReserveOut>(task);
    if (task.offered_out < task.answer.length_out)
        return unit.refuse(task, parameter_length_error());
    auto& reservations = unit.state().reservations;
    const bool was_stored = reservations.persists();
    const auto& who = task.nexus->name();
    Reservations::Notices notices;
    ReserveOutcome outcome{};
    if (command.action == ReserveOutAction::register_and_move) {
        const auto list = task.work.memory.first(static_cast<std::size_t>(task.answer.length_out));
        auto parameters = decode<RegisterAndMoveParameters>(list);
        if (!parameters) return unit.refuse(task, parameter_length_error());
        auto name = named_by(list.subspan(wire_size<RegisterAndMoveParameters>()));
        if (!name) return unit.refuse(task, bad_parameter(24));
        if (parameters->persist_through_power_loss && unit.options().reservations == nullptr)
            return unit.refuse(task, bad_parameter(17));
        name->relative_port = parameters->relative_target_port;
        name->portal_group = who.portal_group;
        for (const auto& port : unit.target().ports())
            if (port.relative == parameters->relative_target_port) name->portal_group = port.group;
        outcome = reservations.move(*parameters, who, *name);
    } else {
        auto parameters = decode<ReserveOutParameters>(task.work.memory);
        WEFT_CHECK(parameters.has_value());
        if (parameters->persist_through_power_loss && unit.options().reservations == nullptr)
            return unit.refuse(task, bad_parameter(20));
        outcome = reservations.perform(command.action, command.type, *parameters, who, notices);
    }
    if (outcome != ReserveOutcome::done) return answer_outcome(unit, task, outcome);
    carry_out(unit, task, notices);
    save_and_answer(unit, task, was_stored);
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
