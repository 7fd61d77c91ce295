// SPDX-License-Identifier: Apache-2.0
#include "scsi/designators.hpp"

#include "scsi/target.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

std::string padded_name(std::string name) {
    // A name ends with a null and fills whole words of four octets.
    name.push_back('\0');
    name.resize(round_up(name.size(), 4), '\0');
    return name;
}

std::string port_name(LogicalUnit& unit, std::uint16_t group) {
    constexpr char digits[] = "0123456789abcdef";
    std::string tag = "0x0000";
    for (std::size_t i = 0; i < 4; ++i) tag[5 - i] = digits[group >> (4 * i) & 15];
    return padded_name(unit.target().name() + ",t," + tag);
}

void put_designator(ReportWriter& report, DesignatorStart start, ConstBuffer value) {
    start.length = static_cast<std::uint8_t>(std::min<std::size_t>(value.size(), 255));
    report.put(start);
    report.put(value.first(start.length));
}

DesignatorStart of_port(CodeSet code_set, DesignatorType type) {
    return {.protocol = iscsi_protocol_identifier,
            .code_set = code_set,
            .protocol_valid = true,
            .association = DesignatorAssociation::target_port,
            .type = type};
}

std::array<std::byte, 8> network_address(LogicalUnit& unit) {
    std::array<std::byte, 8> octets{};
    store_big_endian<8>(unit.identity().network_address, octets.data());
    return octets;
}

std::string t10_name(LogicalUnit& unit) {
    auto vendor = left_aligned<8>(unit.options().vendor);
    return std::string(vendor.begin(), vendor.end()) + unit.identity().serial;
}

std::array<std::byte, 4> in_four_octets(std::uint16_t number) {
    std::array<std::byte, 4> octets{};
    store_big_endian<4>(number, octets.data());
    return octets;
}

}  // namespace

void write_designators(LogicalUnit& unit, Nexus& nexus, ReportWriter& report) {
    put_designator(report,
                   {.code_set = CodeSet::binary, .type = DesignatorType::network_address_authority},
                   network_address(unit));
    put_designator(report, {.code_set = CodeSet::ascii, .type = DesignatorType::t10_vendor},
                   bytes_of(t10_name(unit)));
    put_designator(report, of_port(CodeSet::binary, DesignatorType::relative_target_port),
                   in_four_octets(nexus.name().relative_port));
    put_designator(report, of_port(CodeSet::binary, DesignatorType::target_port_group),
                   in_four_octets(nexus.name().portal_group));
    put_designator(report, of_port(CodeSet::utf_8, DesignatorType::scsi_name),
                   bytes_of(port_name(unit, nexus.name().portal_group)));
    auto target = of_port(CodeSet::utf_8, DesignatorType::scsi_name);
    target.association = DesignatorAssociation::target;
    put_designator(report, target, bytes_of(padded_name(unit.target().name())));
}

void write_ports(LogicalUnit& unit, ReportWriter& report) {
    for (const auto& port : unit.target().ports()) {
        const auto name = port_name(unit, port.group);
        const auto length = std::min<std::size_t>(name.size(), 255) + wire_size<DesignatorStart>();
        report.put(ScsiPortDesignation{.relative_port = port.relative,
                                       .descriptors_length = static_cast<std::uint16_t>(length)});
        put_designator(report, of_port(CodeSet::utf_8, DesignatorType::scsi_name), bytes_of(name));
    }
}

bool is_named_by(LogicalUnit& unit, const CopyTargetByIdentification& descriptor) {
    const auto& start = descriptor.designator;
    const auto length = std::min<std::size_t>(start.length, descriptor.designator_value.size());
    const auto value = std::as_bytes(std::span(descriptor.designator_value)).first(length);
    if (start.association != DesignatorAssociation::logical_unit) return false;
    if (start.type == DesignatorType::network_address_authority)
        return std::ranges::equal(value, network_address(unit));
    if (start.type != DesignatorType::t10_vendor) return false;
    const auto name = t10_name(unit);
    // Longer ones than fit come cut.
    const auto own = bytes_of(name);
    return std::ranges::equal(value, own.first(std::min(own.size(), value.size()))) &&
           (own.size() == start.length || value.size() == descriptor.designator_value.size());
}

}  // namespace weft::scsi
