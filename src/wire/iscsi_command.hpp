// SPDX-License-Identifier: Apache-2.0
// The iSCSI PDUs of a SCSI command and its data (RFC 7143 sections 11.3, 11.4, 11.7, 11.8, 11.16).
//
// A read is a command, Data-In PDUs and a status; a write is a command, data (in the command
// itself, unsolicited, or asked for by R2T) and a status. The last Data-In of a good read may carry
// the status; over iSER it never does.
#pragma once

#include "wire/iscsi_header.hpp"
#include "wire/scsi_status.hpp"

namespace weft::wire {

/// Section 11.3.
struct ScsiCommandPdu {
    bool immediate = false;
    bool final = false;  ///< no unsolicited Data-Out follows
    bool read = false;
    bool write = false;
    TaskAttribute attribute{};
    std::uint8_t priority = 0;  ///< RFC 7144, 0 unless iSCSIProtocolLevel 2 was agreed on
    std::uint8_t additional_header_words = 0;
    std::uint32_t data_length = 0;
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};
    std::uint32_t expected_transfer_length = 0;  ///< of the write, if it is both read and write
    InitiatorNumbers numbers{};
    Octets<16> command_block{};  ///< the first 16 octets; the rest in an additional header

    static constexpr void describe(auto& v, auto& h) {
        describe_request_opcode<IscsiOpcode::scsi_command>(v, h.immediate);
        v.pack(bits<1>("final", h.final), bits<1>("read", h.read), bits<1>("write", h.write),
               reserved<2>, bits<3>("attribute", h.attribute), bits<4>("priority", h.priority),
               reserved<12>);
        v("additional header words", h.additional_header_words);
        v.pack(bits<24>("data length", h.data_length));
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
        v("expected transfer length", h.expected_transfer_length);
        v.nested("numbers", h.numbers);
        v("command block", h.command_block);
    }
    bool operator==(const ScsiCommandPdu&) const = default;
};
static_assert(wire_size<ScsiCommandPdu>() == basic_header_size);

/// Whether the target carried the command out at all; only then does the SCSI status count.
enum class ServiceResponse : std::uint8_t { completed_at_target = 0x00, target_failure = 0x01 };

/// What differs between the length the initiator expected and the one the command block meant.
enum class Residual : std::uint8_t {
    none = 0,
    underflow = 1,  ///< less was moved than expected
    overflow = 2,   ///< there was more than expected
};

/// Section 11.4. Its data segment, if any, is two octets of length, sense data, response data.
struct ScsiResponsePdu {
    Residual read_residual{};  ///< of the read half of a bidirectional command
    Residual residual{};
    ServiceResponse response{};
    ScsiStatus status{};
    std::uint32_t data_length = 0;
    std::uint16_t status_qualifier = 0;  ///< RFC 7144, 0 unless iSCSIProtocolLevel 2 was agreed on
    InitiatorTaskTag task_tag{};
    std::uint32_t snack_tag = 0;
    TargetNumbers numbers{};
    std::uint32_t expected_data_number = 0;  ///< how many Data-In PDUs were sent
    std::uint32_t read_residual_count = 0;
    std::uint32_t residual_count = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::scsi_response>(v);
        v.pack(fixed<1>("final", 1), reserved<2>, bits<2>("read residual", h.read_residual),
               bits<2>("residual", h.residual), reserved<1>);
        v("response", h.response);
        v("status", h.status);
        describe_data_length(v, h.data_length);
        v("status qualifier", h.status_qualifier);
        v.pack(reserved<48>);
        v("task tag", h.task_tag);
        v("snack tag", h.snack_tag);
        v.nested("numbers", h.numbers);
        v("expected data number", h.expected_data_number);
        v("read residual count", h.read_residual_count);
        v("residual count", h.residual_count);
    }
    bool operator==(const ScsiResponsePdu&) const = default;
};
static_assert(wire_size<ScsiResponsePdu>() == basic_header_size);

/// Section 11.7: data of a write.
struct DataOutPdu {
    bool final = false;  ///< ends the unsolicited burst, or the answer to one R2T
    std::uint32_t data_length = 0;
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};
    TargetTransferTag transfer_tag{};  ///< none: unsolicited
    std::uint32_t expected_status_number = 0;
    std::uint32_t data_number = 0;
    std::uint32_t buffer_offset = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::data_out>(v);
        v.pack(bits<1>("final", h.final), reserved<23>);
        describe_data_length(v, h.data_length);
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
        v("transfer tag", h.transfer_tag);
        v.pack(reserved<32>);
        v("expected status number", h.expected_status_number);
        v.pack(reserved<32>);
        v("data number", h.data_number);
        v("buffer offset", h.buffer_offset);
        v.pack(reserved<32>);
    }
    bool operator==(const DataOutPdu&) const = default;
};
static_assert(wire_size<DataOutPdu>() == basic_header_size);

/// Section 11.7: data of a read. Status, its number and the residual count only if `has_status`.
struct DataInPdu {
    bool final = false;
    bool acknowledge = false;  ///< the target wants a DataACK SNACK
    Residual residual{};
    bool has_status = false;
    ScsiStatus status{};
    std::uint32_t data_length = 0;
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};
    TargetTransferTag transfer_tag{};
    TargetNumbers numbers{};
    std::uint32_t data_number = 0;
    std::uint32_t buffer_offset = 0;
    std::uint32_t residual_count = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::data_in>(v);
        v.pack(bits<1>("final", h.final), bits<1>("acknowledge", h.acknowledge), reserved<3>,
               bits<2>("residual", h.residual), bits<1>("has status", h.has_status), reserved<8>);
        v("status", h.status);
        describe_data_length(v, h.data_length);
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
        v("transfer tag", h.transfer_tag);
        v.nested("numbers", h.numbers);
        v("data number", h.data_number);
        v("buffer offset", h.buffer_offset);
        v("residual count", h.residual_count);
    }
    bool operator==(const DataInPdu&) const = default;
};
static_assert(wire_size<DataInPdu>() == basic_header_size);

/// Section 11.8: the target asks for a part of a write's data.
struct ReadyToTransferPdu {
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};
    TargetTransferTag transfer_tag{};
    TargetNumbers numbers{};
    std::uint32_t ready_number = 0;  ///< R2TSN
    std::uint32_t buffer_offset = 0;
    std::uint32_t desired_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::ready_to_transfer>(v);
        v.pack(fixed<1>("final", 1), reserved<23>);
        describe_no_data(v);
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
        v("transfer tag", h.transfer_tag);
        v.nested("numbers", h.numbers);
        v("ready number", h.ready_number);
        v("buffer offset", h.buffer_offset);
        v("desired length", h.desired_length);
    }
    bool operator==(const ReadyToTransferPdu&) const = default;
};
static_assert(wire_size<ReadyToTransferPdu>() == basic_header_size);

/// What an initiator wants sent again, or acknowledges.
enum class SnackType : std::uint8_t {
    data_or_ready_to_transfer = 0,
    status = 1,
    data_acknowledgement = 2,
    resegmented_data = 3,  ///< "R-Data": the segment size changed meanwhile
};

/// Section 11.16. Zero in both run fields means all that is not acknowledged.
struct SnackRequestPdu {
    SnackType type{};
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};
    std::uint32_t transfer_or_snack_tag = 0;
    std::uint32_t expected_status_number = 0;
    std::uint32_t first_of_run = 0;
    std::uint32_t run_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        describe_opcode<IscsiOpcode::snack_request>(v);
        v.pack(fixed<1>("final", 1), reserved<3>, bits<4>("type", h.type), reserved<16>);
        describe_no_data(v);
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
        v("transfer or snack tag", h.transfer_or_snack_tag);
        v.pack(reserved<32>);
        v("expected status number", h.expected_status_number);
        v.pack(reserved<64>);
        v("first of run", h.first_of_run);
        v("run length", h.run_length);
    }
    bool operator==(const SnackRequestPdu&) const = default;
};
static_assert(wire_size<SnackRequestPdu>() == basic_header_size);

}  // namespace weft::wire
