// SPDX-License-Identifier: Apache-2.0
// What follows an iSCSI basic header and has no fixed length: additional headers (RFC 7143 section
// 11.2.2) and the data segment that carries sense data (sections 11.4.7 and 11.9.4).
#pragma once

#include <optional>

#include "wire/iscsi_header.hpp"

namespace weft::wire {

enum class AdditionalHeaderType : std::uint8_t {
    extended_command_block = 1,
    bidirectional_read_length = 2,
};

/// Octets of a command block that the basic header holds; an additional header takes the others.
inline constexpr std::size_t command_block_in_header = 16;
/// SPC-4: a variable length command block has up to 260 octets.
inline constexpr std::size_t max_command_block = 260;

/// The start of every additional header. Its length counts what follows the type, without padding.
struct AdditionalHeaderStart {
    std::uint16_t length = 0;
    AdditionalHeaderType type{};

    static constexpr void describe(auto& v, auto& h) {
        v("length", h.length);
        v.pack(reserved<2>, bits<6>("type", h.type));
    }
    bool operator==(const AdditionalHeaderStart&) const = default;
};
static_assert(wire_size<AdditionalHeaderStart>() == 3);

/// Section 11.2.2.4: how much the read half of a command that also writes expects.
struct BidirectionalReadLength {
    std::uint32_t expected_transfer_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<16>("length", 5));
        v.pack(reserved<2>, fixed<6>("type", 2), reserved<8>);
        v("expected transfer length", h.expected_transfer_length);
    }
    bool operator==(const BidirectionalReadLength&) const = default;
};
static_assert(wire_size<BidirectionalReadLength>() == 8);

struct AdditionalHeader {
    AdditionalHeaderType type{};
    ConstBuffer whole{};     ///< from its length field to its last octet, without padding
    ConstBuffer specific{};  ///< what follows the type: a reserved octet, then the value
};

/// Takes the additional headers of one PDU apart, in order.
class AdditionalHeaders {
public:
    explicit AdditionalHeaders(ConstBuffer octets) : rest_(octets) {}

    /// The next one, nothing at the end, or an error that repeats for ever.
    Result<std::optional<AdditionalHeader>> next();

private:
    ConstBuffer rest_{};
};

/// The octets of a command block beyond the 16th. Refuses another type and an empty one.
Result<ConstBuffer> extended_command_block(const AdditionalHeader& header);

/// Octets an additional header for this command block takes with its padding; zero if none is
/// needed.
constexpr std::size_t extended_command_block_size(std::size_t command_block) {
    if (command_block <= command_block_in_header) return 0;
    return round_up(4 + command_block - command_block_in_header, iscsi_padding_unit);
}

/// Writes that header, padding included, and returns its size. `spillover` is what lies beyond the
/// 16th octet and must not be empty; a command block above the maximum or a short buffer is
/// refused.
Result<std::size_t> write_extended_command_block(ConstBuffer spillover, Buffer to);

/// The data segment of a SCSI Response or an Asynchronous Message.
struct SenseSegment {
    ConstBuffer sense{};
    ConstBuffer rest{};  ///< response data, or the event's
};

/// An empty segment has no sense. Refuses a length that leads beyond the end.
Result<SenseSegment> split_sense_segment(ConstBuffer data_segment);

/// Writes the length and the sense data; returns how many octets that took.
Result<std::size_t> write_sense_segment(ConstBuffer sense, Buffer to);

}  // namespace weft::wire
