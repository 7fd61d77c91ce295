// SPDX-License-Identifier: Apache-2.0
// What a unit says of itself: its commands, straight from the table, the task management it knows,
// and what time it is.
#include "scsi/commands.hpp"
#include "scsi/report_writer.hpp"
#include "scsi/target.hpp"
#include "wire/scsi_report.hpp"
#include "wire/scsi_timestamp.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

void put_all_commands(LogicalUnit& unit, ReportWriter& report, bool with_timeouts) {
    report.put(AllCommandsHeader{});
    for (const auto& command : all_commands()) {
        if (!unit.offers(command)) continue;
        report.put(CommandDescriptor{.operation = command.operation,
                                     .service_action = static_cast<std::uint16_t>(
                                         command.has_service_action() ? command.service_action : 0),
                                     .has_timeouts = with_timeouts,
                                     .has_service_action = command.has_service_action(),
                                     .command_block_length = command.size});
        if (with_timeouts) report.put(CommandTimeouts{});
    }
    report.put_at(0, AllCommandsHeader{static_cast<std::uint32_t>(report.size() -
                                                                  wire_size<AllCommandsHeader>())});
}

void put_one_command(LogicalUnit& unit, ReportWriter& report, const Command* command,
                     bool with_timeouts) {
    if (command == nullptr || !unit.offers(*command))
        return report.put(OneCommandHeader{.support = CommandSupport::not_supported});
    report.put(OneCommandHeader{.has_timeouts = with_timeouts,
                                .support = CommandSupport::as_standardized,
                                .command_block_length = command->size});
    for (std::size_t i = 0; i < command->size; ++i)
        report.put_octet(command->usage_of(i, unit.options().cache_control));
    if (with_timeouts) report.put(CommandTimeouts{});
}

void write_operation_codes(LogicalUnit& unit, Task& task) {
    const auto asked = parse<ReportSupportedOperationCodes>(task);
    ReportWriter report(task.work.memory);
    if (asked.options == ReportingOptions::all_commands)
        put_all_commands(unit, report, asked.with_timeouts);
    else
        put_one_command(
            unit, report,
            find_command(asked.requested_operation, asked.requested_service_action).command,
            asked.with_timeouts);
    unit.answer(task, report.size(), asked.allocation_length);
}

/// Whether the operation, if it exists, is one of those with service actions.
std::optional<bool> has_service_actions(ScsiOperation operation) {
    for (const auto& command : all_commands())
        if (command.operation == operation) return command.has_service_action();
    return std::nullopt;
}

void write_task_management(LogicalUnit& unit, Task& task) {
    const auto command = parse<ReportSupportedTaskManagementFunctions>(task);
    ReportWriter report(task.work.memory);
    report.put(SupportedTaskManagementFunctions{.abort_task = true,
                                                .abort_task_set = true,
                                                .clear_task_set = true,
                                                .logical_unit_reset = true,
                                                .query_task = true,
                                                .query_task_set = true,
                                                .nexus_reset = true});
    if (command.extended) {
        report.put_at(3, TaskManagementExtension{});
        report.skip(12);
    }
    unit.answer(task, report.size(), command.allocation_length);
}

std::uint64_t milliseconds_since(LogicalUnit& unit, Instant earlier) {
    return static_cast<std::uint64_t>((unit.target().surroundings().now() - earlier) /
                                      std::chrono::milliseconds(1));
}

void write_timestamp(LogicalUnit& unit, Task& task) {
    const auto& clock = unit.state().timestamp;
    ReportWriter report(task.work.memory);
    report.put(TimestampReport{
        .origin = clock.set ? TimestampOrigin::set_by_command : TimestampOrigin::power_on,
        .milliseconds = clock.milliseconds + milliseconds_since(unit, clock.at)});
    unit.answer(task, report.size(), parse<ReportTimestamp>(task).allocation_length);
}

void apply_timestamp(LogicalUnit& unit, Task& task) {
    if (task.offered_out < task.answer.length_out)
        return unit.refuse(task, parameter_length_error());
    const auto setting = decode<TimestampSetting>(task.work.memory);
    WEFT_CHECK(setting.has_value());
    unit.state().timestamp = {setting->milliseconds, unit.target().surroundings().now(), true};
    unit.good(task);
}

void collect_timestamp(LogicalUnit& unit, Task& task) {
    unit.want_data(task, apply_timestamp);
}

}  // namespace

void report_operation_codes(LogicalUnit& unit, Task& task) {
    const auto asked = parse<ReportSupportedOperationCodes>(task);
    const auto has_actions = has_service_actions(asked.requested_operation);
    switch (asked.options) {
        case ReportingOptions::all_commands:
        case ReportingOptions::one_of_either_kind:
            break;
        case ReportingOptions::one_operation:
            if (has_actions.value_or(false)) return unit.refuse(task, bad_field(2));
            break;
        case ReportingOptions::one_service_action:
            if (!has_actions.value_or(true)) return unit.refuse(task, bad_field(2));
            break;
        default:
            return unit.refuse(task, bad_field(2));
    }
    unit.take_memory(task, parameter_bytes, write_operation_codes);
}

void report_task_management(LogicalUnit& unit, Task& task) {
    if (parse<ReportSupportedTaskManagementFunctions>(task).allocation_length < 4)
        return unit.refuse(task, bad_field(6));
    unit.take_memory(task, parameter_bytes, write_task_management);
}

void report_timestamp(LogicalUnit& unit, Task& task) {
    unit.take_memory(task, parameter_bytes, write_timestamp);
}

void set_timestamp(LogicalUnit& unit, Task& task) {
    const auto command = parse<SetTimestamp>(task);
    if (command.parameter_length == 0) return unit.good(task);
    if (command.parameter_length != wire_size<TimestampSetting>())
        return unit.refuse(task, parameter_length_error());
    task.answer.length_out = command.parameter_length;
    unit.take_memory(task, parameter_bytes, collect_timestamp);
}

}  // namespace weft::scsi
