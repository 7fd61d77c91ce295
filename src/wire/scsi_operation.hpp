// SPDX-License-Identifier: Apache-2.0
// The operation codes of SCSI commands a disk may meet (SPC-4, SBC-4), their service actions, and
// how long each command block is.
#pragma once

#include <cstddef>

#include "base/wire_format.hpp"

namespace weft::wire {

/// The first octet of a command block. The upper three bits tell its length.
enum class ScsiOperation : std::uint8_t {
    test_unit_ready = 0x00,
    request_sense = 0x03,
    format_unit = 0x04,
    read_6 = 0x08,
    write_6 = 0x0a,
    inquiry = 0x12,
    mode_select_6 = 0x15,
    reserve_6 = 0x16,
    release_6 = 0x17,
    mode_sense_6 = 0x1a,
    start_stop_unit = 0x1b,
    receive_diagnostic_results = 0x1c,
    send_diagnostic = 0x1d,
    prevent_allow_medium_removal = 0x1e,
    read_capacity_10 = 0x25,
    read_10 = 0x28,
    write_10 = 0x2a,
    seek_10 = 0x2b,
    write_and_verify_10 = 0x2e,
    verify_10 = 0x2f,
    prefetch_10 = 0x34,
    synchronize_cache_10 = 0x35,
    read_defect_data_10 = 0x37,
    write_same_10 = 0x41,
    unmap = 0x42,
    sanitize = 0x48,
    log_select = 0x4c,
    log_sense = 0x4d,
    xor_write_10 = 0x50,         ///< XDWRITE
    xor_parity_write_10 = 0x51,  ///< XPWRITE
    xor_read_10 = 0x52,          ///< XDREAD
    xor_write_read_10 = 0x53,    ///< XDWRITEREAD
    mode_select_10 = 0x55,
    reserve_10 = 0x56,
    release_10 = 0x57,
    mode_sense_10 = 0x5a,
    persistent_reserve_in = 0x5e,
    persistent_reserve_out = 0x5f,
    variable_length = 0x7f,  ///< what it does is in `VariableLengthAction`
    extended_copy = 0x83,
    receive_copy_results = 0x84,
    read_16 = 0x88,
    compare_and_write = 0x89,
    write_16 = 0x8a,
    or_write_16 = 0x8b,
    write_and_verify_16 = 0x8e,
    verify_16 = 0x8f,
    prefetch_16 = 0x90,
    synchronize_cache_16 = 0x91,
    write_same_16 = 0x93,
    write_atomic_16 = 0x9c,
    service_action_in_16 = 0x9e,  ///< what it does is in `ServiceActionIn`
    report_luns = 0xa0,
    maintenance_in = 0xa3,   ///< what it does is in `MaintenanceIn`
    maintenance_out = 0xa4,  ///< what it does is in `MaintenanceOut`
    read_12 = 0xa8,
    write_12 = 0xaa,
    write_and_verify_12 = 0xae,
    verify_12 = 0xaf,
    read_defect_data_12 = 0xb7,
    array_order = 0xd0,  ///< ours, of the vendors' codes: what it does is in `ArrayAction`
};

enum class ServiceActionIn : std::uint8_t { read_capacity_16 = 0x10, get_lba_status = 0x12 };

enum class MaintenanceIn : std::uint8_t {
    report_target_port_groups = 0x0a,
    report_supported_operation_codes = 0x0c,
    report_supported_task_management_functions = 0x0d,
    report_timestamp = 0x0f,
};

enum class MaintenanceOut : std::uint8_t { set_target_port_groups = 0x0a, set_timestamp = 0x0f };

enum class VariableLengthAction : std::uint16_t {
    xor_parity_write_32 = 0x0006,
    xor_write_read_32 = 0x0007,
    read_32 = 0x0009,
    verify_32 = 0x000a,
    write_32 = 0x000b,
    write_and_verify_32 = 0x000c,
    write_same_32 = 0x000d,
};

/// Octets of a command block that starts with this operation code; zero if only the block itself
/// can say (0x7f) or the code belongs to no group.
constexpr std::size_t command_block_size(ScsiOperation operation) {
    switch (static_cast<unsigned>(operation) >> 5) {
        case 0:
            return 6;
        case 1:
        case 2:
            return 10;
        case 4:
            return 16;
        case 5:
            return 12;
        default:
            return 0;
    }
}

/// The last octet of every command block. We use none of it, and a target refuses NACA.
struct ControlOctet {
    bool normal_auto_contingent_allegiance = false;  ///< NACA

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<5>, bits<1>("naca", h.normal_auto_contingent_allegiance), reserved<2>);
    }
    bool operator==(const ControlOctet&) const = default;
};

/// The first octet, where the operation code is known.
template <ScsiOperation operation>
constexpr void describe_operation(auto& v) {
    v.pack(fixed<8>("operation", static_cast<std::uint64_t>(operation)));
}

/// The second octet of a command whose lower five bits are a known service action.
constexpr void describe_service_action(auto& v, auto action) {
    v.pack(reserved<3>, fixed<5>("service action", static_cast<std::uint64_t>(action)));
}

}  // namespace weft::wire
