// SPDX-License-Identifier: Apache-2.0
// Sense data: why a command ended with CHECK CONDITION (SPC-4).
//
// There are two formats, and the control mode page decides which a target uses: fixed (18 octets)
// and descriptor (8 octets and a list). Both begin with a response code that tells which it is.
#pragma once

#include <optional>

#include "base/wire_format.hpp"

namespace weft::wire {

enum class SenseResponse : std::uint8_t {
    fixed_current = 0x70,
    fixed_deferred = 0x71,  ///< of an earlier command
    descriptor_current = 0x72,
    descriptor_deferred = 0x73,
};

/// What kind of trouble, coarsely.
enum class SenseKey : std::uint8_t {
    no_sense = 0x0,
    recovered_error = 0x1,
    not_ready = 0x2,
    medium_error = 0x3,
    hardware_error = 0x4,
    illegal_request = 0x5,
    unit_attention = 0x6,
    data_protect = 0x7,
    blank_check = 0x8,
    vendor_specific = 0x9,
    copy_aborted = 0xa,
    aborted_command = 0xb,
    volume_overflow = 0xd,
    miscompare = 0xe,
    completed = 0xf,
};

/// What it was exactly: the code (ASC) in the upper octet, its qualifier (ASCQ) in the lower. Only
/// those a disk target sends or our initiator tells apart; SPC-4 has hundreds.
enum class AdditionalSense : std::uint16_t {
    none = 0x0000,
    becoming_ready = 0x0401,
    initializing_command_required = 0x0402,
    format_in_progress = 0x0404,
    target_port_in_transition = 0x040a,
    target_port_in_standby = 0x040b,
    target_port_unavailable = 0x040c,
    sanitize_in_progress = 0x041b,
    unreachable_copy_target = 0x0804,
    write_error = 0x0c00,
    unexpected_unsolicited_data = 0x0c0c,
    not_enough_unsolicited_data = 0x0c0d,
    copy_target_not_reachable = 0x0d02,
    invalid_field_in_command_information_unit = 0x0e03,
    unrecovered_read_error = 0x1100,
    failed_retransmission_request = 0x1113,
    parameter_list_length_error = 0x1a00,
    miscompare_during_verify = 0x1d00,
    invalid_operation_code = 0x2000,
    block_address_out_of_range = 0x2100,
    invalid_field_in_command_block = 0x2400,
    logical_unit_not_supported = 0x2500,
    invalid_field_in_parameter_list = 0x2600,
    parameter_not_supported = 0x2601,
    parameter_value_invalid = 0x2602,
    invalid_release_of_persistent_reservation = 0x2604,
    too_many_target_descriptors = 0x2606,
    unsupported_target_descriptor = 0x2607,
    too_many_segment_descriptors = 0x2608,
    unsupported_segment_descriptor = 0x2609,
    inline_data_length_exceeded = 0x260b,
    write_protected = 0x2700,
    software_write_protected = 0x2702,
    space_allocation_failed = 0x2707,
    medium_may_have_changed = 0x2800,
    power_on_or_reset_occurred = 0x2900,
    power_on_occurred = 0x2901,
    bus_device_reset_occurred = 0x2903,
    nexus_loss_occurred = 0x2907,
    mode_parameters_changed = 0x2a01,
    reservations_preempted = 0x2a03,
    reservations_released = 0x2a04,
    registrations_preempted = 0x2a05,
    asymmetric_access_state_changed = 0x2a06,
    capacity_data_has_changed = 0x2a09,
    command_sequence_error = 0x2c00,
    commands_cleared_by_another_initiator = 0x2f00,
    medium_format_corrupted = 0x3100,
    sanitize_command_failed = 0x3103,
    saving_parameters_not_supported = 0x3900,
    medium_not_present = 0x3a00,
    medium_not_present_tray_closed = 0x3a01,
    medium_not_present_tray_open = 0x3a02,
    inquiry_data_has_changed = 0x3f03,
    reported_luns_data_has_changed = 0x3f0e,
    internal_target_failure = 0x4400,
    protocol_service_crc_error = 0x4705,
    commands_cleared_by_iscsi_event = 0x477f,
    command_phase_error = 0x4a00,
    data_phase_error = 0x4b00,
    medium_removal_prevented = 0x5302,
    insufficient_resources = 0x5503,
    insufficient_registration_resources = 0x5504,
};

/// The format a piece of sense data is in; anything else is malformed.
Result<SenseResponse> sense_response(ConstBuffer sense);

/// The three octets of "sense key specific" information for an illegal request: which octet of the
/// command block or the parameter list was wrong. For "not ready" the pointer counts progress.
struct SenseKeySpecific {
    bool valid = false;
    bool in_command_block = false;  ///< otherwise in the parameter list
    bool bit_valid = false;
    std::uint8_t bit = 0;
    std::uint16_t pointer = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("valid", h.valid), bits<1>("in command block", h.in_command_block),
               reserved<2>, bits<1>("bit valid", h.bit_valid), bits<3>("bit", h.bit));
        v("pointer", h.pointer);
    }
    bool operator==(const SenseKeySpecific&) const = default;
};
static_assert(wire_size<SenseKeySpecific>() == 3);

struct FixedSense {
    bool information_valid = false;
    SenseResponse response = SenseResponse::fixed_current;
    bool filemark = false;
    bool end_of_medium = false;
    bool incorrect_length = false;
    bool sense_data_overflow = false;
    SenseKey key{};
    std::uint32_t information = 0;  ///< e.g. where a comparison failed
    std::uint8_t additional_length = 10;
    std::uint32_t command_specific_information = 0;
    AdditionalSense additional{};
    std::uint8_t field_replaceable_unit = 0;
    SenseKeySpecific specific{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("information valid", h.information_valid), bits<7>("response", h.response),
               reserved<8>);
        v.pack(bits<1>("filemark", h.filemark), bits<1>("end of medium", h.end_of_medium),
               bits<1>("incorrect length", h.incorrect_length),
               bits<1>("sense data overflow", h.sense_data_overflow), bits<4>("key", h.key));
        v("information", h.information);
        v("additional length", h.additional_length);
        v("command specific information", h.command_specific_information);
        v("additional", h.additional);
        v("field replaceable unit", h.field_replaceable_unit);
        v.nested("specific", h.specific);
    }
    bool operator==(const FixedSense&) const = default;
};
static_assert(wire_size<FixedSense>() == 18);

/// Descriptors follow.
struct DescriptorSense {
    SenseResponse response = SenseResponse::descriptor_current;
    SenseKey key{};
    AdditionalSense additional{};
    bool sense_data_overflow = false;
    std::uint8_t additional_length = 0;  ///< octets of descriptors

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<1>, bits<7>("response", h.response), reserved<4>, bits<4>("key", h.key));
        v("additional", h.additional);
        v.pack(bits<1>("sense data overflow", h.sense_data_overflow), reserved<23>);
        v("additional length", h.additional_length);
    }
    bool operator==(const DescriptorSense&) const = default;
};
static_assert(wire_size<DescriptorSense>() == 8);

enum class SenseDescriptorType : std::uint8_t {
    information = 0x00,
    command_specific_information = 0x01,
    sense_key_specific = 0x02,
    field_replaceable_unit = 0x03,
    block_commands = 0x05,
};

struct SenseInformation {
    bool valid = true;
    std::uint64_t number = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("type", 0), fixed<8>("length", 10), bits<1>("valid", h.valid),
               reserved<15>);
        v("number", h.number);
    }
    bool operator==(const SenseInformation&) const = default;
};
static_assert(wire_size<SenseInformation>() == 12);

struct SenseCommandSpecific {
    std::uint64_t number = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("type", 1), fixed<8>("length", 10), reserved<16>);
        v("number", h.number);
    }
    bool operator==(const SenseCommandSpecific&) const = default;
};
static_assert(wire_size<SenseCommandSpecific>() == 12);

struct SenseKeySpecificDescriptor {
    SenseKeySpecific specific{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("type", 2), fixed<8>("length", 6), reserved<16>);
        v.nested("specific", h.specific);
        v.pack(reserved<8>);
    }
    bool operator==(const SenseKeySpecificDescriptor&) const = default;
};
static_assert(wire_size<SenseKeySpecificDescriptor>() == 8);

struct SenseDescriptor {
    SenseDescriptorType type{};
    ConstBuffer whole{};  ///< ready for decode<SenseInformation> and the like
};

/// Walks the descriptors behind a DescriptorSense, as far as its additional length reaches.
class SenseDescriptors {
public:
    static Result<SenseDescriptors> of(ConstBuffer sense);

    /// The next one, nothing at the end, or an error that repeats for ever.
    Result<std::optional<SenseDescriptor>> next();

private:
    explicit SenseDescriptors(ConstBuffer descriptors) : rest_(descriptors) {}
    ConstBuffer rest_{};
};

/// What both formats tell, for those who only want to know what happened.
struct SenseSummary {
    SenseKey key{};
    AdditionalSense additional{};
    bool deferred = false;
    std::optional<std::uint64_t> information{};

    bool operator==(const SenseSummary&) const = default;
};

/// Takes sense data of either format, cut short or not, as long as key and code are in it.
Result<SenseSummary> summarize_sense(ConstBuffer sense);

}  // namespace weft::wire
