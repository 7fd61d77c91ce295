// SPDX-License-Identifier: Apache-2.0
// The iSCSI PDUs that serve no command: pings, a target's news, and refusals
// (RFC 7143 sections 11.9 and 11.17 to 11.19).
#pragma once

#include "wire/iscsi_header.hpp"

namespace weft::wire {

/// Section 11.18. With a task tag it is a ping and its data comes back in a NOP-In; with a transfer
/// tag it answers a target's ping; with neither it only carries ExpStatSN.
struct NopOutPdu {
    bool immediate = false;
    std::uint32_t data_length = 0;
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};
    TargetTransferTag transfer_tag{};
    InitiatorNumbers numbers{};

    static constexpr void describe(auto& v, auto& h) {
        describe_request_opcode<IscsiOpcode::nop_out>(v, h.immediate);
        v.pack(fixed<1>("final", 1), reserved<23>);
        describe_data_length(v, h.data_length);
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
        v("transfer tag", h.transfer_tag);
        v.nested("numbers", h.numbers);
        v.pack(reserved<64>);
        v.pack(reserved<64>);
    }
    bool operator==(const NopOutPdu&) const = default;
};
static_assert(wire_size<NopOutPdu>() == basic_header_size);

/// Section 11.19. With a task tag it answers a NOP-Out; with a transfer tag it is a ping; with
/// neither it only carries a new command window, and its status number is the next one.
struct NopInPdu {
    std::uint32_t data_length = 0;
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};
    TargetTransferTag transfer_tag{};
    TargetNumbers numbers{};

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::nop_in>(v);
        v.pack(fixed<1>("final", 1), reserved<23>);
        describe_data_length(v, h.data_length);
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
        v("transfer tag", h.transfer_tag);
        v.nested("numbers", h.numbers);
        v.pack(reserved<64>);
        v.pack(reserved<32>);
    }
    bool operator==(const NopInPdu&) const = default;
};
static_assert(wire_size<NopInPdu>() == basic_header_size);

/// Section 11.9.1. What the three parameters mean depends on it.
enum class AsynchronousEvent : std::uint8_t {
    scsi_event = 0,                  ///< sense data follows
    logout_requested = 1,            ///< parameter 3: within so many seconds
    connection_will_be_dropped = 2,  ///< parameters: connection, Time2Wait, Time2Retain
    session_will_be_dropped = 3,     ///< parameters 2 and 3: Time2Wait, Time2Retain
    negotiation_requested = 4,       ///< parameter 3: within so many seconds
    tasks_terminated = 5,            ///< of this logical unit; needs TaskReporting=FastAbort
    vendor_specific = 255,
};

/// Section 11.9.
struct AsynchronousMessagePdu {
    std::uint32_t data_length = 0;
    LogicalUnit logical_unit{};
    TargetNumbers numbers{};
    AsynchronousEvent event{};
    std::uint8_t vendor_code = 0;
    std::uint16_t parameter1 = 0;
    std::uint16_t parameter2 = 0;
    std::uint16_t parameter3 = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::asynchronous_message>(v);
        v.pack(fixed<1>("final", 1), reserved<23>);
        describe_data_length(v, h.data_length);
        v("logical unit", h.logical_unit);
        v.pack(fixed<32>("task tag", 0xffffffff));
        v.pack(reserved<32>);
        v.nested("numbers", h.numbers);
        v("event", h.event);
        v("vendor code", h.vendor_code);
        v("parameter1", h.parameter1);
        v("parameter2", h.parameter2);
        v("parameter3", h.parameter3);
        v.pack(reserved<32>);
    }
    bool operator==(const AsynchronousMessagePdu&) const = default;
};
static_assert(wire_size<AsynchronousMessagePdu>() == basic_header_size);

enum class RejectReason : std::uint8_t {
    data_digest_error = 0x02,
    snack_reject = 0x03,
    protocol_error = 0x04,
    command_not_supported = 0x05,
    too_many_immediate_commands = 0x06,
    task_in_progress = 0x07,
    invalid_data_acknowledgement = 0x08,
    invalid_pdu_field = 0x09,
    long_operation_reject = 0x0a,  ///< no transfer tag to be had
    negotiation_reset = 0x0b,      ///< of RFC 3720; must not be sent
    waiting_for_logout = 0x0c,
};

/// Section 11.17. Its data segment is the header it refuses.
struct RejectPdu {
    RejectReason reason{};
    std::uint32_t data_length = 0;
    TargetNumbers numbers{};
    std::uint32_t data_number = 0;  ///< DataSN or R2TSN; only if a SNACK is refused

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::reject>(v);
        v.pack(fixed<1>("final", 1), reserved<7>);
        v("reason", h.reason);
        v.pack(reserved<8>);
        describe_data_length(v, h.data_length);
        v.pack(reserved<64>);
        v.pack(fixed<32>("task tag", 0xffffffff));
        v.pack(reserved<32>);
        v.nested("numbers", h.numbers);
        v("data number", h.data_number);
        v.pack(reserved<64>);
    }
    bool operator==(const RejectPdu&) const = default;
};
static_assert(wire_size<RejectPdu>() == basic_header_size);

}  // namespace weft::wire
