// SPDX-License-Identifier: Apache-2.0
// MPA, which cuts a TCP stream into messages (RFC 5044, RFC 6581): the two frames that open a
// connection, and the arithmetic of the FPDUs that follow.
//
// An FPDU is a length, that many octets (the ULPDU: a DDP segment), zero to three octets of padding
// and a CRC32C, least significant octet first. A receiver may ask for markers: four octets at every
// 512th octet of the stream that point back to the start of the FPDU they stand in.
#pragma once

#include <optional>

#include "base/wire_format.hpp"

namespace weft::wire {

/// What one side asks of the other: the part of figure 8 both frames share, as RFC 6581 extends it.
struct MpaTerms {
    bool markers = false;   ///< "put markers in what you send me"
    bool checksum = false;  ///< one side's wish is enough: both then compute and check CRC32C
    bool rejected = false;  ///< in a reply only: the application does not want the connection
    bool enhanced = false;  ///< the private data begins with EnhancedTerms; revision 2 only
    std::uint8_t unassigned_flags = 0;  ///< zero by the RFC, never checked; Linux echoes them
    std::uint8_t revision = 1;
    std::uint16_t private_data_size = 0;  ///< octets after this header, EnhancedTerms included

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("markers", h.markers), bits<1>("checksum", h.checksum),
               bits<1>("rejected", h.rejected), bits<1>("enhanced", h.enhanced),
               bits<4>("unassigned flags", h.unassigned_flags));
        v("revision", h.revision);
        v("private data size", h.private_data_size);
    }
    bool operator==(const MpaTerms&) const = default;
};
static_assert(wire_size<MpaTerms>() == 4);

/// RFC 5044 section 7.1.1, figure 8: what the side that made the TCP connection sends first.
struct MpaRequest {
    MpaTerms terms;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x4d50412049442052));  // "MPA ID R"
        v.pack(fixed<64>("key", 0x6571204672616d65));  // "eq Frame"
        v.nested("terms", h.terms);
    }
    bool operator==(const MpaRequest&) const = default;
};
static_assert(wire_size<MpaRequest>() == 20);

/// The answer to it.
struct MpaReply {
    MpaTerms terms;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x4d50412049442052));  // "MPA ID R"
        v.pack(fixed<64>("key", 0x6570204672616d65));  // "ep Frame"
        v.nested("terms", h.terms);
    }
    bool operator==(const MpaReply&) const = default;
};
static_assert(wire_size<MpaReply>() == 20);

/// RFC 6581 section 9. The ready_by flags say which empty message the initiator may send to show
/// that it is ready, so that the responder may speak; without peer_to_peer they mean nothing.
struct EnhancedTerms {
    bool peer_to_peer = false;
    bool ready_by_send = false;
    bool ready_by_write = false;
    bool ready_by_read = false;
    std::uint16_t inbound_reads = 0;   ///< RDMA Reads this side serves at a time
    std::uint16_t outbound_reads = 0;  ///< RDMA Reads this side wants to have under way

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("peer to peer", h.peer_to_peer), bits<1>("ready by send", h.ready_by_send),
               bits<14>("inbound reads", h.inbound_reads));
        v.pack(bits<1>("ready by write", h.ready_by_write),
               bits<1>("ready by read", h.ready_by_read),
               bits<14>("outbound reads", h.outbound_reads));
    }
    bool operator==(const EnhancedTerms&) const = default;
};
static_assert(wire_size<EnhancedTerms>() == 4);

/// As a number of reads: "leave it to the application" (RFC 6581 section 9.1).
inline constexpr std::uint16_t reads_not_negotiated = 0x3fff;
inline constexpr std::size_t private_data_limit = 512;

/// What stands behind the header of either frame.
struct MpaPrivateData {
    std::optional<EnhancedTerms> enhanced;
    ConstBuffer application;  ///< lent: part of the octets it was read from
};

/// Reads the private data that `terms` announce from the octets behind the header.
Result<MpaPrivateData> decode_private_data(const MpaTerms& terms, ConstBuffer octets);

/// Completes `terms` for the data: the enhanced flag and the size.
MpaTerms terms_for(MpaTerms terms, const MpaPrivateData& data);
/// Writes what terms_for() announced and returns how many octets that took.
std::size_t encode_private_data(const MpaPrivateData& data, Buffer octets);

/// The first field of an FPDU.
struct FpduLength {
    std::uint16_t ulpdu_size = 0;

    static constexpr void describe(auto& v, auto& h) { v("ulpdu size", h.ulpdu_size); }
    bool operator==(const FpduLength&) const = default;
};
static_assert(wire_size<FpduLength>() == 2);

inline constexpr std::size_t fpdu_checksum_size = 4;
/// Any larger, and the pointer of a marker could not reach the FPDU's start.
inline constexpr std::size_t ulpdu_limit = 64'768;
/// However small TCP's segments become, a ULPDU of this size must be allowed (section 4.5).
inline constexpr std::size_t ulpdu_limit_floor = 128;

constexpr std::size_t fpdu_padding(std::size_t ulpdu_size) {
    return round_up(wire_size<FpduLength>() + ulpdu_size, 4) - wire_size<FpduLength>() - ulpdu_size;
}
/// Padding and checksum.
constexpr std::size_t fpdu_trailer_size(std::size_t ulpdu_size) {
    return fpdu_padding(ulpdu_size) + fpdu_checksum_size;
}
/// The whole FPDU, markers left out.
constexpr std::size_t fpdu_size(std::size_t ulpdu_size) {
    return wire_size<FpduLength>() + ulpdu_size + fpdu_trailer_size(ulpdu_size);
}

enum class Markers : std::uint8_t { absent, present };

/// The largest ULPDU whose FPDU fits one TCP segment (MULPDU, section 4.5).
constexpr std::size_t largest_ulpdu(std::size_t segment_size, Markers markers) {
    std::size_t overhead = wire_size<FpduLength>() + fpdu_checksum_size + segment_size % 4;
    if (markers == Markers::present) overhead += 4 * ((segment_size + 511) / 512);
    if (segment_size < overhead + ulpdu_limit_floor) return ulpdu_limit_floor;
    return segment_size - overhead > ulpdu_limit ? ulpdu_limit : segment_size - overhead;
}

/// Writes padding and checksum behind a ULPDU.
void encode_fpdu_trailer(std::size_t ulpdu_size, std::uint32_t checksum, Buffer octets);
/// The checksum in the last four octets of an FPDU or of its trailer.
std::uint32_t fpdu_checksum(ConstBuffer octets);
/// Computes the checksum of an FPDU, markers and all, and writes it in its last four octets.
void seal_fpdu(Buffer octets);
bool fpdu_is_intact(ConstBuffer octets);

/// Section 4.2, figure 3.
struct Marker {
    std::uint16_t fpdu_pointer =
        0;  ///< octets from the FPDU's length to this marker; 0: it follows

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<16>);
        v("fpdu pointer", h.fpdu_pointer);
    }
    bool operator==(const Marker&) const = default;
};
static_assert(wire_size<Marker>() == 4);

inline constexpr std::uint64_t marker_interval = 512;
inline constexpr std::uint64_t octets_between_markers = marker_interval - wire_size<Marker>();

// Two ways to count the octets one side has sent since its MPA frame: with the markers and without.
// The first octet of either count is number 0, and the stream begins with a marker.

/// Where in the marked stream octet `plain` of the unmarked one stands.
constexpr std::uint64_t marked_position(std::uint64_t plain) {
    return plain / octets_between_markers * marker_interval + wire_size<Marker>() +
           plain % octets_between_markers;
}
/// How many octets of the unmarked stream come before position `marked` of the marked one.
constexpr std::uint64_t plain_position(std::uint64_t marked) {
    auto inside = marked % marker_interval;
    return marked / marker_interval * octets_between_markers +
           (inside < wire_size<Marker>() ? 0 : inside - wire_size<Marker>());
}
/// Octets from `marked` to the first octet of the next marker; 0: it begins here.
constexpr std::uint64_t until_marker(std::uint64_t marked) {
    return (marker_interval - marked % marker_interval) % marker_interval;
}
/// The size an FPDU of `size` octets has in the marked stream if it begins at `marked`. A marker
/// that falls exactly behind an FPDU belongs to the next one, which then begins with it.
constexpr std::uint64_t marked_size(std::uint64_t marked, std::uint64_t size) {
    return marked_position(plain_position(marked) + size - 1) + 1 - marked;
}

/// Copies an FPDU that begins at `marked` and puts the markers in; returns marked_size(). The
/// checksum covers the markers, so it must be computed afterwards.
std::size_t insert_markers(ConstBuffer fpdu, std::uint64_t marked, Buffer octets);

/// Undoes it for one whole FPDU, also in place; returns the unmarked size. Refuses markers that
/// disagree with where the FPDU begins (the error that a Terminate calls MpaError::framing).
Result<std::size_t> remove_markers(ConstBuffer fpdu, std::uint64_t marked, Buffer octets);

}  // namespace weft::wire
