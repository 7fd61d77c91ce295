// SPDX-License-Identifier: Apache-2.0
// Terminate, RDMAP's last word before a connection is given up (RFC 5040 section 4.8): who found
// the fault, what it was, and the headers of the segment it was found in.
//
// Linux's siw declares the control word as C bit fields and so, on little-endian machines, sends
// and expects the nibbles of its first octet swapped and the three flags at the other end of the
// third. Both layouts are read here; the standard one is written. siw drops the connection on
// either.
#pragma once

#include <optional>

#include "wire/rdmap.hpp"

namespace weft::wire {

enum class TerminateLayer : std::uint8_t { rdmap = 0, ddp = 1, mpa = 2 };

// The error types of each layer, and the error codes of each type that has any.

enum class RdmapErrorType : std::uint8_t {
    local_catastrophic = 0,
    remote_protection = 1,
    remote_operation = 2,
};
enum class DdpErrorType : std::uint8_t {
    local_catastrophic = 0,
    tagged_buffer = 1,
    untagged_buffer = 2,
};

/// RFC 5040 section 4.8, figure 9.
enum class RemoteProtectionError : std::uint8_t {
    invalid_steering_tag = 0x00,
    out_of_bounds = 0x01,
    access_rights = 0x02,
    wrong_stream = 0x03,  ///< the steering tag is not for this connection
    offset_wraps = 0x04,
    cannot_invalidate = 0x09,
    unspecified = 0xff,
};
enum class RemoteOperationError : std::uint8_t {
    invalid_version = 0x05,
    unexpected_opcode = 0x06,
    catastrophic_for_stream = 0x07,
    catastrophic = 0x08,
    cannot_invalidate = 0x09,
    unspecified = 0xff,
};
/// RFC 5041 section 7.2.
enum class TaggedBufferError : std::uint8_t {
    invalid_steering_tag = 0x00,
    out_of_bounds = 0x01,
    wrong_stream = 0x02,
    offset_wraps = 0x03,
    invalid_version = 0x04,
};
enum class UntaggedBufferError : std::uint8_t {
    invalid_queue = 0x01,
    no_buffer = 0x02,
    message_number_out_of_range = 0x03,
    invalid_message_offset = 0x04,
    message_too_long = 0x05,
    invalid_version = 0x06,
};
/// RFC 5044 section 8; the last three RFC 6581 section 8.
enum class MpaError : std::uint8_t {
    connection_lost = 0x01,
    checksum = 0x02,
    framing = 0x03,  ///< markers and lengths disagree on where an FPDU begins
    invalid_startup_frame = 0x04,
    local_catastrophic = 0x05,
    insufficient_inbound_reads = 0x06,
    no_matching_ready_message = 0x07,
};

/// RFC 5040 section 4.8, figure 8.
struct TerminateControl {
    TerminateLayer layer{};
    std::uint8_t error_type = 0;
    std::uint8_t error_code = 0;
    bool segment_size_valid = false;
    bool segment_header_included = false;
    bool read_request_included = false;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<4>("layer", h.layer), bits<4>("error type", h.error_type),
               bits<8>("error code", h.error_code),
               bits<1>("segment size valid", h.segment_size_valid),
               bits<1>("segment header included", h.segment_header_included),
               bits<1>("read request included", h.read_request_included), reserved<13>);
    }
    bool operator==(const TerminateControl&) const = default;
};
static_assert(wire_size<TerminateControl>() == 4);

/// The same word as siw on a little-endian machine has it.
struct SiwTerminateControl {
    TerminateControl control;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<4>("error type", h.control.error_type), bits<4>("layer", h.control.layer),
               bits<8>("error code", h.control.error_code), reserved<5>,
               bits<1>("read request included", h.control.read_request_included),
               bits<1>("segment header included", h.control.segment_header_included),
               bits<1>("segment size valid", h.control.segment_size_valid), reserved<8>);
    }
    bool operator==(const SiwTerminateControl&) const = default;
};
static_assert(wire_size<SiwTerminateControl>() == 4);

/// The layer and error type follow from the code's own type.
constexpr TerminateControl terminate_for(TerminateLayer layer, auto type, auto code) {
    return {.layer = layer,
            .error_type = static_cast<std::uint8_t>(type),
            .error_code = static_cast<std::uint8_t>(code)};
}
constexpr TerminateControl terminate_for(RemoteProtectionError code) {
    return terminate_for(TerminateLayer::rdmap, RdmapErrorType::remote_protection, code);
}
constexpr TerminateControl terminate_for(RemoteOperationError code) {
    return terminate_for(TerminateLayer::rdmap, RdmapErrorType::remote_operation, code);
}
constexpr TerminateControl terminate_for(TaggedBufferError code) {
    return terminate_for(TerminateLayer::ddp, DdpErrorType::tagged_buffer, code);
}
constexpr TerminateControl terminate_for(UntaggedBufferError code) {
    return terminate_for(TerminateLayer::ddp, DdpErrorType::untagged_buffer, code);
}
constexpr TerminateControl terminate_for(MpaError code) {
    return terminate_for(TerminateLayer::mpa, 0, code);
}

/// Whether RFC 5040, 5041, 5044 or 6581 gives this layer, type and code a meaning.
bool has_meaning(const TerminateControl& control);

/// All that stands behind the segment header of a Terminate.
struct Terminate {
    TerminateControl control;
    /// Valid if the control says so: the size of the segment at fault. siw counts its payload only.
    std::uint16_t segment_size = 0;
    /// The 14 or 18 octets of its header, lent: raw, because the fault may be that they cannot be
    /// decoded. Empty unless the control says they are included.
    ConstBuffer segment_header;
    ReadRequest read_request;  ///< if the control says it is included
};

inline constexpr std::size_t terminate_limit =
    wire_size<TerminateControl>() + 2 + segment_header_limit + wire_size<ReadRequest>();

enum class TerminateLayout : std::uint8_t { standard, siw };

/// Which layout a Terminate has. Its flags tell; if none is set, the standard reading is taken
/// unless it has no meaning and siw's has. A few words mean something in both ("20 06" is MPA's
/// insufficient_inbound_reads or, from siw, unexpected_opcode): ask only if the peer is unknown.
TerminateLayout guess_terminate_layout(ConstBuffer octets);

Result<Terminate> decode_terminate(ConstBuffer octets, TerminateLayout layout);
/// Writes the standard layout; returns how many octets it took, at most terminate_limit.
std::size_t encode_terminate(const Terminate& terminate, Buffer octets);

}  // namespace weft::wire
