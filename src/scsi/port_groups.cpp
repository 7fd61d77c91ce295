// SPDX-License-Identifier: Apache-2.0
// Target port groups (ALUA): REPORT and SET TARGET PORT GROUPS, and what a state forbids. All ports
// lead to the same memory, so all are active and optimized until an initiator wants it otherwise.
#include <algorithm>
#include <vector>

#include "scsi/commands.hpp"
#include "scsi/report_writer.hpp"
#include "scsi/target.hpp"
#include "wire/scsi_port_groups.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

constexpr std::size_t list_header_bytes = 4;

std::vector<std::uint16_t> groups_of(Target& target) {
    std::vector<std::uint16_t> groups;
    for (const auto& port : target.ports())
        if (std::ranges::find(groups, port.group) == groups.end()) groups.push_back(port.group);
    return groups;
}

GroupState state_of(LogicalUnit& unit, std::uint16_t group) {
    for (const auto& one : unit.state().groups)
        if (one.group == group) return one;
    return {.group = group};
}

void write_groups(LogicalUnit& unit, Task& task) {
    const auto command = parse<ReportTargetPortGroups>(task);
    ReportWriter report(task.work.memory);
    report.put(TargetPortGroupsHeader{});
    if (command.data_format == 1) report.put(TargetPortGroupsExtension{});
    for (auto group : groups_of(unit.target())) {
        std::vector<std::uint16_t> ports;
        for (const auto& port : unit.target().ports())
            if (port.group == group) ports.push_back(port.relative);
        const auto state = state_of(unit, group);
        report.put(TargetPortGroup{
            .state = state.state,
            .unavailable_supported = true,
            .standby_supported = true,
            .active_not_optimized_supported = true,
            .active_optimized_supported = true,
            .group = group,
            .reason = state.set ? AccessStateReason::set_explicitly : AccessStateReason::none,
            .port_count = static_cast<std::uint8_t>(ports.size())});
        for (auto port : ports) report.put(TargetPort{port});
    }
    report.put_at(0, TargetPortGroupsHeader{static_cast<std::uint32_t>(
                         report.size() - wire_size<TargetPortGroupsHeader>())});
    unit.answer(task, report.size(), command.allocation_length);
}

bool is_settable(AccessState state) {
    return state == AccessState::active_optimized || state == AccessState::active_not_optimized ||
           state == AccessState::standby || state == AccessState::unavailable;
}

void apply_groups(LogicalUnit& unit, Task& task) {
    if (task.offered_out < task.answer.length_out)
        return unit.refuse(task, parameter_length_error());
    const auto list = task.work.memory.first(static_cast<std::size_t>(task.answer.length_out));
    const auto groups = groups_of(unit.target());
    std::vector<GroupState> wanted;
    for (std::size_t at = list_header_bytes; at < list.size();
         at += wire_size<SetTargetPortGroup>()) {
        const auto one = decode<SetTargetPortGroup>(list.subspan(at));
        if (!one) return unit.refuse(task, parameter_length_error());
        if (!is_settable(one->state) || std::ranges::find(groups, one->group) == groups.end())
            return unit.refuse(task, bad_parameter(static_cast<std::uint16_t>(at)));
        wanted.push_back({one->group, one->state, true});
    }
    auto& states = unit.state().groups;
    for (const auto& one : wanted) {
        std::erase_if(states, [&](const GroupState& old) { return old.group == one.group; });
        states.push_back(one);
    }
    unit.tell_others(task.nexus, AdditionalSense::asymmetric_access_state_changed);
    unit.good(task);
}

void collect_groups(LogicalUnit& unit, Task& task) {
    unit.want_data(task, apply_groups);
}

}  // namespace

void report_port_groups(LogicalUnit& unit, Task& task) {
    if (parse<ReportTargetPortGroups>(task).data_format > 1)
        return unit.refuse(task, bad_field(1, 7));
    unit.take_memory(task, parameter_bytes, write_groups);
}

void set_port_groups(LogicalUnit& unit, Task& task) {
    const auto command = parse<SetTargetPortGroups>(task);
    if (command.parameter_length == 0) return unit.good(task);
    if (command.parameter_length >
        list_header_bytes + port_groups_max * wire_size<SetTargetPortGroup>())
        return unit.refuse(task, parameter_length_error());
    task.answer.length_out = command.parameter_length;
    unit.take_memory(task, parameter_bytes, collect_groups);
}

std::optional<Sense> access_refusal(LogicalUnit& unit, Nexus& nexus) {
    if (unit.state().groups.empty()) return std::nullopt;
    switch (state_of(unit, nexus.name().portal_group).state) {
        case AccessState::standby:
            return not_ready(AdditionalSense::target_port_in_standby);
        case AccessState::unavailable:
            return not_ready(AdditionalSense::target_port_unavailable);
        default:
            return std::nullopt;
    }
}

}  // namespace weft::scsi
