// SPDX-License-Identifier: Apache-2.0
// What all iSCSI PDUs (RFC 7143) share: the opcode, the lengths that frame the PDU, the tags.
//
// A PDU is a basic header of 48 octets, additional headers, an optional header digest, a data
// segment padded to four octets, and an optional data digest. A receiver reads the basic header
// through `BasicHeader` first: it alone says how long the rest is and which PDU it is.
#pragma once

#include "base/wire_format.hpp"
#include "wire/scsi_lun.hpp"

namespace weft::wire {

inline constexpr std::size_t basic_header_size = 48;
inline constexpr std::size_t iscsi_digest_size = 4;
inline constexpr std::size_t iscsi_padding_unit = 4;
inline constexpr std::uint32_t max_data_segment_length = 0xffffff;
inline constexpr std::uint16_t iscsi_port = 3260;
/// Where every PDU has the length of its data, every PDU of an initiator its CmdSN (if it has one)
/// and ExpStatSN, and of a target its three numbers: some are known only when a PDU leaves, and
/// written then whichever PDU it is.
inline constexpr std::size_t data_length_at = 5;
inline constexpr std::size_t command_number_at = 24;
inline constexpr std::size_t expected_status_number_at = 28;
inline constexpr std::size_t target_numbers_at = 24;

/// RFC 7143 section 11.2.1.2. The initiator's are below 0x20, the target's are not.
enum class IscsiOpcode : std::uint8_t {
    nop_out = 0x00,
    scsi_command = 0x01,
    task_management_request = 0x02,
    login_request = 0x03,
    text_request = 0x04,
    data_out = 0x05,
    logout_request = 0x06,
    snack_request = 0x10,
    nop_in = 0x20,
    scsi_response = 0x21,
    task_management_response = 0x22,
    login_response = 0x23,
    text_response = 0x24,
    data_in = 0x25,
    logout_response = 0x26,
    ready_to_transfer = 0x31,
    asynchronous_message = 0x32,
    reject = 0x3f,
};

constexpr bool sent_by_target(IscsiOpcode opcode) {
    return (static_cast<unsigned>(opcode) & 0x20) != 0;
}

/// The initiator's name for a task, unique in its session.
enum class InitiatorTaskTag : std::uint32_t { none = 0xffffffff };
/// The target's name for a transfer it asked for.
enum class TargetTransferTag : std::uint32_t { none = 0xffffffff };

/// RFC 7143 section 11.2.1: what stands in the same place in every PDU. `logical_unit` means
/// something in most of them; Login puts its session identifiers there.
struct BasicHeader {
    bool immediate = false;  ///< not counted by CmdSN, may overtake
    IscsiOpcode opcode{};
    bool final = false;
    std::uint8_t additional_header_words = 0;  ///< units of four octets
    std::uint32_t data_length = 0;             ///< without the padding
    LogicalUnit logical_unit{};
    InitiatorTaskTag task_tag{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<1>, bits<1>("immediate", h.immediate), bits<6>("opcode", h.opcode),
               bits<1>("final", h.final), reserved<23>);
        v("additional header words", h.additional_header_words);
        v.pack(bits<24>("data length", h.data_length));
        v("logical unit", h.logical_unit);
        v("task tag", h.task_tag);
    }
    bool operator==(const BasicHeader&) const = default;

    constexpr std::size_t additional_header_size() const {
        return additional_header_words * std::size_t{4};
    }
    constexpr std::size_t padded_data_size() const {
        return round_up(data_length, iscsi_padding_unit);
    }
};
static_assert(wire_size<BasicHeader>() == 20);

/// The first octet of a PDU an initiator sends: it may ask for immediate delivery.
template <IscsiOpcode opcode>
constexpr void describe_request_opcode(auto& v, auto& immediate) {
    static_assert(!sent_by_target(opcode));
    v.pack(reserved<1>, bits<1>("immediate", immediate),
           fixed<6>("opcode", static_cast<std::uint64_t>(opcode)));
}

/// The first octet of every other PDU.
template <IscsiOpcode opcode>
constexpr void describe_opcode(auto& v) {
    v.pack(reserved<2>, fixed<6>("opcode", static_cast<std::uint64_t>(opcode)));
}

/// The lengths of a PDU with a data segment. Only SCSI Command may have additional headers.
constexpr void describe_data_length(auto& v, auto& data_length) {
    v.pack(fixed<8>("additional header words", 0), bits<24>("data length", data_length));
}

/// The lengths of a PDU that is a basic header and nothing else.
constexpr void describe_no_data(auto& v) {
    v.pack(fixed<8>("additional header words", 0), fixed<24>("data length", 0));
}

/// How every PDU of a target reports where it is: the number of this status (in R2T the next one),
/// and the window of command numbers it takes.
struct TargetNumbers {
    std::uint32_t status_number = 0;            ///< StatSN
    std::uint32_t expected_command_number = 0;  ///< ExpCmdSN
    std::uint32_t max_command_number = 0;       ///< MaxCmdSN

    static constexpr void describe(auto& v, auto& h) {
        v("status number", h.status_number);
        v("expected command number", h.expected_command_number);
        v("max command number", h.max_command_number);
    }
    bool operator==(const TargetNumbers&) const = default;
};

/// The initiator's side of the same.
struct InitiatorNumbers {
    std::uint32_t command_number = 0;          ///< CmdSN
    std::uint32_t expected_status_number = 0;  ///< ExpStatSN

    static constexpr void describe(auto& v, auto& h) {
        v("command number", h.command_number);
        v("expected status number", h.expected_status_number);
    }
    bool operator==(const InitiatorNumbers&) const = default;
};

}  // namespace weft::wire
