// SPDX-License-Identifier: Apache-2.0
// INQUIRY and the pages of vital product data: what a unit is (SPC-4), what it can do (SBC-3).
#include "scsi/block_command.hpp"
#include "scsi/commands.hpp"
#include "scsi/designators.hpp"
#include "scsi/report_writer.hpp"
#include "scsi/target.hpp"
#include "wire/scsi.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

PeripheralType type_of(const LogicalUnit& unit) {
    if (!unit.exists()) return PeripheralType::unknown;
    return unit.options().has_medium ? PeripheralType::direct_access_block
                                     : PeripheralType::storage_array_controller;
}

void write_standard(LogicalUnit& unit, ReportWriter& report) {
    StandardInquiryData data{
        .qualifier =
            unit.exists() ? PeripheralQualifier::connected : PeripheralQualifier::not_supported,
        .type = type_of(unit),
        .removable = unit.options().removable,
        .hierarchical_addressing = true,
        .additional_length = static_cast<std::uint8_t>(wire_size<StandardInquiryData>() +
                                                       wire_size<StandardInquiryVersions>() - 5),
        .asymmetric_access = AsymmetricAccess::implicit_and_explicit,
        .third_party_copy = unit.options().has_medium,
        .multiple_ports = unit.target().ports().size() > 1,
        .command_queue = true,
        .vendor = left_aligned<8>(unit.options().vendor),
        .product = left_aligned<16>(unit.options().product),
        .revision = left_aligned<4>(unit.options().revision)};
    report.put(data);
    StandardInquiryVersions known{.versions = {VersionDescriptor::sam_5, VersionDescriptor::iscsi,
                                               VersionDescriptor::spc_4, VersionDescriptor::sbc_3}};
    if (!unit.options().has_medium) known.versions[3] = {};
    report.put(known);
}

void write_supported_pages(LogicalUnit& unit, ReportWriter& report);

void write_serial(LogicalUnit& unit, ReportWriter& report) {
    report.put(unit.identity().serial);
}

void write_management_addresses(LogicalUnit&, ReportWriter&) {}

void write_extended(LogicalUnit&, ReportWriter& report) {
    report.put(ExtendedInquiryData{.unit_attention_sense_data = true,
                                   .head_of_queue = true,
                                   .ordered = true,
                                   .simple = true,
                                   .volatile_cache = true,
                                   .max_sense_length = sense_max});
}

void write_policy(LogicalUnit&, ReportWriter& report) {
    report.put(ModePagePolicy{});
}

void write_copy_abilities(LogicalUnit& unit, ReportWriter& report) {
    // Lengths leave out the start itself and make the whole a multiple of four octets.
    report.put(ThirdPartyCopyStart{ThirdPartyCopyType::supported_commands, 8});
    report.put_octet(7);  // what follows, without padding
    report.put_octet(static_cast<std::uint8_t>(ScsiOperation::extended_copy));
    report.put_octet(1);
    report.put_octet(static_cast<std::uint8_t>(ExtendedCopyAction::copy_lid1));
    report.put_octet(static_cast<std::uint8_t>(ScsiOperation::receive_copy_results));
    report.put_octet(2);
    report.put_octet(static_cast<std::uint8_t>(ReceiveCopyAction::copy_status));
    report.put_octet(static_cast<std::uint8_t>(ReceiveCopyAction::operating_parameters));
    report.pad(4);
    report.put(ThirdPartyCopyStart{ThirdPartyCopyType::parameter_data,
                                   static_cast<std::uint16_t>(wire_size<CopyParameterLimits>())});
    report.put(CopyParameterLimits{.max_target_descriptors = copy_targets_max,
                                   .max_segment_descriptors = copy_segments_max,
                                   .max_descriptor_list_length = copy_list_bytes_max});
    report.put(ThirdPartyCopyStart{ThirdPartyCopyType::supported_descriptors, 4});
    report.put_octet(2);
    report.put_octet(static_cast<std::uint8_t>(CopySegmentType::block_to_block));
    report.put_octet(static_cast<std::uint8_t>(CopyTargetType::identification));
    report.pad(4);
    report.put(ThirdPartyCopyStart{ThirdPartyCopyType::general_operations,
                                   static_cast<std::uint16_t>(wire_size<GeneralCopyOperations>())});
    report.put(GeneralCopyOperations{
        .total_concurrent_copies = 1,
        .max_identified_copies = 1,
        .max_segment_length = static_cast<std::uint32_t>(copy_segment_bytes_max),
        .data_segment_granularity =
            static_cast<std::uint8_t>(std::countr_zero(unit.block_bytes()))});
}

void write_limits(LogicalUnit& unit, ReportWriter& report) {
    const auto traits = unit.traits();
    const auto block = unit.block_bytes();
    const auto longest = static_cast<std::uint32_t>(unit.transfer_blocks());
    const auto preferred = std::max<std::uint32_t>(1, traits.preferred_block / block);
    BlockLimits limits{.max_compare_and_write = static_cast<std::uint8_t>(
                           std::min(longest, compare_and_write_blocks_max)),
                       .optimal_transfer_granularity =
                           static_cast<std::uint16_t>(std::min<std::uint32_t>(preferred, 0xffff)),
                       .max_transfer = longest,
                       .optimal_transfer = std::min(longest, (1u << 20) / block),
                       .max_write_same = write_same_blocks_max,
                       .max_atomic_transfer = longest};
    if (const auto atoms = atomic_blocks(unit); atoms > 1) {
        limits.atomic_alignment = limits.atomic_granularity = atoms;
        limits.max_atomic_transfer -= longest % atoms;
    }
    if (unit.thin()) {
        limits.max_unmap_blocks = 0xffffffff;
        limits.max_unmap_descriptors = unmap_descriptors_max;
        limits.optimal_unmap_granularity = preferred;
    }
    report.put(limits);
}

void write_characteristics(LogicalUnit& unit, ReportWriter& report) {
    // Erased blocks read as zeroes, without an error: "1" says so.
    const std::uint8_t erased_reads = unit.thin() ? 1 : 0;
    report.put(BlockDeviceCharacteristics{
        .rotation_rate = static_cast<std::uint16_t>(unit.traits().rotational ? 7200 : 1),
        .write_after_block_erase = erased_reads,
        .write_after_cryptographic_erase = erased_reads,
        .force_unit_access_behaves = true});
}

void write_provisioning(LogicalUnit& unit, ReportWriter& report) {
    const bool thin = unit.thin();
    report.put(LogicalBlockProvisioning{
        .unmap = thin,
        .write_same_16 = thin,
        .write_same_10 = thin,
        .reads_zero = static_cast<std::uint8_t>(unit.unmapped_reads_zero() ? 1 : 0),
        .type = thin ? ProvisioningType::thin : ProvisioningType::full_or_unknown});
}

struct Page {
    VitalProductPage code;
    void (*write)(LogicalUnit& unit, ReportWriter& report);
};
// In ascending order: so initiators want them listed.
constexpr Page pages[] = {
    {VitalProductPage::supported_pages, write_supported_pages},
    {VitalProductPage::unit_serial_number, write_serial},
    {VitalProductPage::device_identification, nullptr},  // depends on the port
    {VitalProductPage::management_network_addresses, write_management_addresses},
    {VitalProductPage::extended_inquiry, write_extended},
    {VitalProductPage::mode_page_policy, write_policy},
    {VitalProductPage::scsi_ports, write_ports},
    {VitalProductPage::third_party_copy, write_copy_abilities},
    {VitalProductPage::block_limits, write_limits},
    {VitalProductPage::block_device_characteristics, write_characteristics},
    {VitalProductPage::logical_block_provisioning, write_provisioning},
};

/// From this one on they are about disks.
bool has_page(const LogicalUnit& unit, const Page& page) {
    return unit.options().has_medium || page.code < VitalProductPage::third_party_copy;
}

void write_supported_pages(LogicalUnit& unit, ReportWriter& report) {
    for (const auto& page : pages)
        if (has_page(unit, page)) report.put_octet(static_cast<std::uint8_t>(page.code));
}

const Page* find_page(const LogicalUnit& unit, std::uint8_t code) {
    for (const auto& page : pages)
        if (static_cast<std::uint8_t>(page.code) == code && has_page(unit, page)) return &page;
    return nullptr;
}

void write_answer(LogicalUnit& unit, Task& task) {
    const auto command = parse<Inquiry>(task);
    ReportWriter report(task.work.memory);
    if (!command.vital_product_data) {
        write_standard(unit, report);
        return unit.answer(task, report.size(), command.allocation_length);
    }
    const auto* page = find_page(unit, command.page_code);
    VitalProductPageStart start{.type = type_of(unit), .page = page->code};
    report.put(start);
    if (page->code == VitalProductPage::device_identification)
        write_designators(unit, *task.nexus, report);
    else
        page->write(unit, report);
    start.length = static_cast<std::uint16_t>(report.size() - wire_size<VitalProductPageStart>());
    report.put_at(0, start);
    unit.answer(task, report.size(), command.allocation_length);
}

}  // namespace

void inquiry(LogicalUnit& unit, Task& task) {
    const auto command = parse<Inquiry>(task);
    if (!command.vital_product_data && command.page_code != 0)
        return unit.refuse(task, bad_field(2));
    if (command.vital_product_data &&
        (!unit.exists() || find_page(unit, command.page_code) == nullptr))
        return unit.refuse(task, bad_field(2));
    unit.take_memory(task, parameter_bytes, write_answer);
}

}  // namespace weft::scsi
