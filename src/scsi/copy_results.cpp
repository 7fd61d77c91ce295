// SPDX-License-Identifier: Apache-2.0
// RECEIVE COPY RESULTS: what became of a copy, and what copies there can be.
#include "scsi/commands.hpp"
#include "scsi/report_writer.hpp"
#include "wire/scsi_copy.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

void write_results(LogicalUnit& unit, Task& task) {
    const auto command = parse<ReceiveCopyResults>(task);
    ReportWriter report(task.work.memory);
    if (command.action == ReceiveCopyAction::copy_status) {
        const auto status =
            unit.state().copies.take(*task.nexus, command.list_identifier, unit.commands_seen());
        if (!status) return unit.refuse(task, bad_field(2));
        report.put(*status);
        return unit.answer(task, report.size(), command.allocation_length);
    }
    constexpr std::uint8_t types = 2;
    report.put(CopyOperatingParameters{
        .length_after =
            static_cast<std::uint32_t>(wire_size<CopyOperatingParameters>() + types - 4),
        .without_list_identifier = true,
        .max_target_descriptors = copy_targets_max,
        .max_segment_descriptors = copy_segments_max,
        .max_descriptor_list_length = copy_list_bytes_max,
        .max_segment_length = static_cast<std::uint32_t>(copy_segment_bytes_max),
        .total_concurrent_copies = 1,
        .max_concurrent_copies = 1,
        .data_segment_granularity = static_cast<std::uint8_t>(std::countr_zero(unit.block_bytes())),
        .descriptor_types_length = types});
    report.put_octet(static_cast<std::uint8_t>(CopySegmentType::block_to_block));
    report.put_octet(static_cast<std::uint8_t>(CopyTargetType::identification));
    unit.answer(task, report.size(), command.allocation_length);
}

}  // namespace

void receive_copy_results(LogicalUnit& unit, Task& task) {
    unit.take_memory(task, parameter_bytes, write_results);
}

}  // namespace weft::scsi
