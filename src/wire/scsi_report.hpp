// SPDX-License-Identifier: Apache-2.0
// The reports of a target about itself: its logical units, and the commands and task management
// functions it knows (SPC-4).
#pragma once

#include "wire/scsi_lun.hpp"
#include "wire/scsi_operation.hpp"

namespace weft::wire {

enum class SelectReport : std::uint8_t {
    addressable = 0x00,  ///< without the well known ones
    well_known = 0x01,
    all = 0x02,
};

struct ReportLuns {
    SelectReport select{};
    std::uint32_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::report_luns>(v);
        v.pack(reserved<8>, bits<8>("select", h.select), reserved<24>);
        v("allocation length", h.allocation_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const ReportLuns&) const = default;
};
static_assert(wire_size<ReportLuns>() == 12);

/// Logical units of eight octets each follow.
struct LunListHeader {
    std::uint32_t list_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("list length", h.list_length);
        v.pack(reserved<32>);
    }
    bool operator==(const LunListHeader&) const = default;
};
static_assert(wire_size<LunListHeader>() == 8);

enum class ReportingOptions : std::uint8_t {
    all_commands = 0,
    one_operation = 1,       ///< that has no service actions
    one_service_action = 2,  ///< of an operation that has them
    one_of_either_kind = 3,
};

struct ReportSupportedOperationCodes {
    bool with_timeouts = false;  ///< RCTD
    ReportingOptions options{};
    ScsiOperation requested_operation{};
    std::uint16_t requested_service_action = 0;
    std::uint32_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::maintenance_in>(v);
        describe_service_action(v, MaintenanceIn::report_supported_operation_codes);
        v.pack(bits<1>("with timeouts", h.with_timeouts), reserved<4>,
               bits<3>("options", h.options));
        v("requested operation", h.requested_operation);
        v("requested service action", h.requested_service_action);
        v("allocation length", h.allocation_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const ReportSupportedOperationCodes&) const = default;
};
static_assert(wire_size<ReportSupportedOperationCodes>() == 12);

/// The start of the report of all commands.
struct AllCommandsHeader {
    std::uint32_t length_after = 0;

    static constexpr void describe(auto& v, auto& h) { v("length after", h.length_after); }
    bool operator==(const AllCommandsHeader&) const = default;
};
static_assert(wire_size<AllCommandsHeader>() == 4);

/// One command in it; a CommandTimeouts follows if `has_timeouts`.
struct CommandDescriptor {
    ScsiOperation operation{};
    std::uint16_t service_action = 0;
    bool has_timeouts = false;
    bool has_service_action = false;
    std::uint16_t command_block_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("operation", h.operation);
        v.pack(reserved<8>);
        v("service action", h.service_action);
        v.pack(reserved<14>, bits<1>("has timeouts", h.has_timeouts),
               bits<1>("has service action", h.has_service_action));
        v("command block length", h.command_block_length);
    }
    bool operator==(const CommandDescriptor&) const = default;
};
static_assert(wire_size<CommandDescriptor>() == 8);

/// In seconds; zero is "not said".
struct CommandTimeouts {
    std::uint8_t command_specific = 0;
    std::uint32_t nominal_seconds = 0;
    std::uint32_t recommended_seconds = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<16>("length", 10), reserved<8>);
        v("command specific", h.command_specific);
        v("nominal seconds", h.nominal_seconds);
        v("recommended seconds", h.recommended_seconds);
    }
    bool operator==(const CommandTimeouts&) const = default;
};
static_assert(wire_size<CommandTimeouts>() == 12);

enum class CommandSupport : std::uint8_t {
    unknown_now = 0,
    not_supported = 1,
    as_standardized = 3,
    vendor_specific = 5,
};

/// The start of the report of one command: a usage map of its length follows (each bit of the
/// command block that counts is set, its first octet is the operation code), then timeouts.
struct OneCommandHeader {
    bool has_timeouts = false;
    CommandSupport support{};
    std::uint16_t command_block_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<8>, bits<1>("has timeouts", h.has_timeouts), reserved<4>,
               bits<3>("support", h.support));
        v("command block length", h.command_block_length);
    }
    bool operator==(const OneCommandHeader&) const = default;
};
static_assert(wire_size<OneCommandHeader>() == 4);

struct ReportSupportedTaskManagementFunctions {
    bool extended = false;  ///< REPD: sixteen octets in place of four
    std::uint32_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::maintenance_in>(v);
        describe_service_action(v, MaintenanceIn::report_supported_task_management_functions);
        v.pack(bits<1>("extended", h.extended), reserved<31>);
        v("allocation length", h.allocation_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const ReportSupportedTaskManagementFunctions&) const = default;
};
static_assert(wire_size<ReportSupportedTaskManagementFunctions>() == 12);

struct SupportedTaskManagementFunctions {
    bool abort_task = false;
    bool abort_task_set = false;
    bool clear_auto_contingent_allegiance = false;
    bool clear_task_set = false;
    bool logical_unit_reset = false;
    bool query_task = false;
    bool query_asynchronous_event = false;
    bool query_task_set = false;
    bool nexus_reset = false;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("abort task", h.abort_task), bits<1>("abort task set", h.abort_task_set),
               bits<1>("clear aca", h.clear_auto_contingent_allegiance),
               bits<1>("clear task set", h.clear_task_set),
               bits<1>("logical unit reset", h.logical_unit_reset),
               bits<1>("query task", h.query_task), reserved<2>);
        v.pack(reserved<5>, bits<1>("query asynchronous event", h.query_asynchronous_event),
               bits<1>("query task set", h.query_task_set), bits<1>("nexus reset", h.nexus_reset),
               reserved<16>);
    }
    bool operator==(const SupportedTaskManagementFunctions&) const = default;
};
static_assert(wire_size<SupportedTaskManagementFunctions>() == 4);

/// The last octet of the above, if the long form was asked for: twelve octets about timeouts
/// follow, all zero where none are told.
struct TaskManagementExtension {
    static constexpr void describe(auto& v, auto&) { v.pack(fixed<8>("length after", 12)); }
    bool operator==(const TaskManagementExtension&) const = default;
};

}  // namespace weft::wire
