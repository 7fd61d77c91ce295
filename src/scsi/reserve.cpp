// SPDX-License-Identifier: Apache-2.0
// RESERVE and RELEASE of SPC-2, and PERSISTENT RESERVE IN, which tells of what took their place.
// Who has registered is served by the old commands as if they did nothing (CRH), as SPC-4 wants.
#include "scsi/commands.hpp"
#include "scsi/report_writer.hpp"
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

}  // namespace weft::scsi
