// SPDX-License-Identifier: Apache-2.0
// The short questions: ready, how large, which units, what was wrong, any defects.
#include "scsi/commands.hpp"
#include "scsi/report_writer.hpp"
#include "scsi/target.hpp"
#include "wire/scsi.hpp"

namespace weft::scsi {

using namespace wire;

void test_unit_ready(LogicalUnit& unit, Task& task) {
    unit.good(task);
}

namespace {

/// What is the matter, if anything, in place of what was: an error is told with its command.
Sense present_sense(LogicalUnit& unit, Task& task) {
    if (!unit.exists()) return illegal(AdditionalSense::logical_unit_not_supported);
    auto& attentions = unit.at(*task.nexus).attentions;
    if (auto first = attentions.first()) {
        attentions.forget(*first);
        return {.key = SenseKey::unit_attention, .additional = *first};
    }
    if (auto sense = unit.erasure_refusal(nullptr)) return *sense;
    if (!unit.state().medium_present)
        return not_ready(AdditionalSense::medium_not_present_tray_open);
    return {};
}

void write_sense(LogicalUnit& unit, Task& task) {
    const auto command = parse<RequestSense>(task);
    ReportWriter report(task.work.memory);
    const auto octets = encode_sense(present_sense(unit, task), command.descriptor_format);
    report.put(ConstBuffer(octets.data(), octets.size()));
    unit.answer(task, report.size(), command.allocation_length);
}

void write_capacity_10(LogicalUnit& unit, Task& task) {
    ReportWriter report(task.work.memory);
    const auto last = unit.block_count() - 1;
    report.put(Capacity10{
        .last_block = static_cast<std::uint32_t>(std::min<std::uint64_t>(last, 0xffffffff)),
        .block_bytes = unit.block_bytes()});
    unit.answer(task, report.size(), report.size());
}

void write_capacity_16(LogicalUnit& unit, Task& task) {
    ReportWriter report(task.work.memory);
    const auto physical = std::max(unit.options().physical_block_bytes, unit.block_bytes());
    report.put(Capacity16{.last_block = unit.block_count() - 1,
                          .block_bytes = unit.block_bytes(),
                          .blocks_per_physical_exponent = static_cast<std::uint8_t>(
                              std::countr_zero(physical / unit.block_bytes())),
                          .provisioning_management = unit.thin(),
                          .unmapped_reads_zero = unit.unmapped_reads_zero()});
    unit.answer(task, report.size(), parse<ReadCapacity16>(task).allocation_length);
}

void write_luns(LogicalUnit& unit, Task& task) {
    const auto command = parse<ReportLuns>(task);
    ReportWriter report(task.work.memory);
    std::vector<std::uint32_t> numbers;
    if (command.select != SelectReport::well_known) numbers = unit.target().numbers();
    report.put(LunListHeader{.list_length = static_cast<std::uint32_t>(numbers.size() * 8)});
    for (auto number : numbers) {
        auto spelled = spell_logical_unit(number);
        WEFT_CHECK(spelled.has_value());
        report.put_number<8>(static_cast<std::uint64_t>(*spelled));
    }
    // Whoever has read the list needs not be told that it changed.
    for (const auto& [number, other] : unit.target().units())
        other->at(*task.nexus).attentions.forget(AdditionalSense::reported_luns_data_has_changed);
    unit.answer(task, report.size(), command.allocation_length);
}

template <class CommandBlock, class Header>
void write_defects(LogicalUnit& unit, Task& task) {
    const auto command = parse<CommandBlock>(task);
    ReportWriter report(task.work.memory);
    report.put(Header{.primary_list = command.primary_list,
                      .grown_list = command.grown_list,
                      .format = command.format});
    unit.answer(task, report.size(), command.allocation_length);
}

}  // namespace

void request_sense(LogicalUnit& unit, Task& task) {
    unit.take_memory(task, parameter_bytes, write_sense);
}

void read_capacity_10(LogicalUnit& unit, Task& task) {
    unit.take_memory(task, parameter_bytes, write_capacity_10);
}

void read_capacity_16(LogicalUnit& unit, Task& task) {
    unit.take_memory(task, parameter_bytes, write_capacity_16);
}

void report_luns(LogicalUnit& unit, Task& task) {
    const auto command = parse<ReportLuns>(task);
    if (command.select > SelectReport::all) return unit.refuse(task, bad_field(2));
    unit.take_memory(task, parameter_bytes, write_luns);
}

void read_defect_data_10(LogicalUnit& unit, Task& task) {
    unit.take_memory(task, parameter_bytes, write_defects<ReadDefectData10, DefectListHeader10>);
}

void read_defect_data_12(LogicalUnit& unit, Task& task) {
    unit.take_memory(task, parameter_bytes, write_defects<ReadDefectData12, DefectListHeader12>);
}

// --- diagnostics and logs: there is nothing to diagnose in a disk made of software

void send_diagnostic(LogicalUnit& unit, Task& task) {
    const auto command = parse<SendDiagnostic>(task);
    if (command.parameter_length != 0) return unit.refuse(task, bad_field(3));
    if (command.self_test && command.self_test_code != 0) return unit.refuse(task, bad_field(1));
    unit.good(task);
}

namespace {

void write_diagnostic_pages(LogicalUnit& unit, Task& task) {
    const auto command = parse<ReceiveDiagnosticResults>(task);
    ReportWriter report(task.work.memory);
    // Page 00h, which lists itself.
    report.put_number<2>(0);
    report.put_number<2>(1);
    report.put_octet(0);
    unit.answer(task, report.size(), command.allocation_length);
}

constexpr std::uint8_t informational_exceptions_log = 0x2f;

void write_log_page(LogicalUnit& unit, Task& task) {
    const auto command = parse<LogSense>(task);
    ReportWriter report(task.work.memory);
    report.put_octet(command.page_code);
    report.put_octet(0);
    if (command.page_code == 0) {
        report.put_number<2>(2);
        report.put_octet(0);
        report.put_octet(informational_exceptions_log);
    } else {
        report.put_number<2>(8);  // one parameter: nothing to report
        report.put_number<2>(0);
        report.put_octet(0x03);
        report.put_octet(4);
        report.put_number<4>(0);
    }
    unit.answer(task, report.size(), command.allocation_length);
}

}  // namespace

void receive_diagnostic_results(LogicalUnit& unit, Task& task) {
    const auto command = parse<ReceiveDiagnosticResults>(task);
    if (command.page_code_valid && command.page_code != 0) return unit.refuse(task, bad_field(2));
    unit.take_memory(task, parameter_bytes, write_diagnostic_pages);
}

void log_sense(LogicalUnit& unit, Task& task) {
    const auto command = parse<LogSense>(task);
    const bool known = command.page_code == 0 || command.page_code == informational_exceptions_log;
    if (!known) return unit.refuse(task, bad_field(2));
    if (command.subpage_code != 0) return unit.refuse(task, bad_field(3));
    if (command.save_parameters) return unit.refuse(task, bad_field(1, 0));
    unit.take_memory(task, parameter_bytes, write_log_page);
}

}  // namespace weft::scsi
