// SPDX-License-Identifier: Apache-2.0
// IPv6 (RFC 8200): the header, the extension headers that may follow it, and the pseudo-header
// that the checksums of the layers above cover.
//
// A receiver of packets needs one answer: what is inside, and where does it begin?
// find_upper_layer() gives it and looks at a bounded number of headers on the way.
#pragma once

#include <optional>

#include "wire/checksum.hpp"
#include "wire/ipv6_address.hpp"

namespace weft::wire {

/// What follows a header.
enum class NextHeader : std::uint8_t {
    hop_by_hop = 0,
    tcp = 6,
    udp = 17,
    routing = 43,
    fragment = 44,
    encapsulating_security = 50,
    authentication = 51,
    icmpv6 = 58,
    none = 59,
    destination_options = 60,
};

/// Every link carries packets of this size, so nobody is told of a smaller one.
inline constexpr std::size_t ipv6_minimum_mtu = 1280;

struct Ipv6Header {
    std::uint8_t traffic_class = 0;
    std::uint32_t flow_label = 0;  ///< 20 bits
    std::uint16_t payload_length = 0;
    NextHeader next_header{};
    std::uint8_t hop_limit = 64;
    Ipv6Address source{};
    Ipv6Address destination{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<4>("version", 6), bits<8>("traffic class", h.traffic_class),
               bits<20>("flow label", h.flow_label));
        v("payload length", h.payload_length);
        v("next header", h.next_header);
        v("hop limit", h.hop_limit);
        v("source", h.source.octets);
        v("destination", h.destination.octets);
    }
    bool operator==(const Ipv6Header&) const = default;
};
static_assert(wire_size<Ipv6Header>() == 40);

/// How hop-by-hop options, destination options and routing headers begin.
struct ExtensionHeader {
    NextHeader next_header{};
    std::uint8_t extra_units = 0;  ///< its length in units of 8 octets, the first not counted

    constexpr std::size_t size() const { return 8 * (std::size_t{extra_units} + 1); }

    static constexpr void describe(auto& v, auto& h) {
        v("next header", h.next_header);
        v("extra units", h.extra_units);
    }
    bool operator==(const ExtensionHeader&) const = default;
};
static_assert(wire_size<ExtensionHeader>() == 2);

struct FragmentHeader {
    NextHeader next_header{};
    std::uint16_t offset_units = 0;  ///< where it belongs, in units of 8 octets
    bool more = false;
    std::uint32_t identification = 0;

    constexpr std::size_t offset() const { return std::size_t{offset_units} * 8; }
    /// The whole packet, in spite of the header.
    constexpr bool is_whole() const { return offset_units == 0 && !more; }

    static constexpr void describe(auto& v, auto& h) {
        v("next header", h.next_header);
        v.pack(reserved<8>);
        v.pack(bits<13>("offset units", h.offset_units), reserved<2>, bits<1>("more", h.more));
        v("identification", h.identification);
    }
    bool operator==(const FragmentHeader&) const = default;
};
static_assert(wire_size<FragmentHeader>() == 8);

/// RFC 8200, section 8.1: what the checksums of TCP, UDP and ICMPv6 cover besides their own.
struct PseudoHeader {
    Ipv6Address source{};
    Ipv6Address destination{};
    std::uint32_t upper_layer_length = 0;
    NextHeader next_header{};

    static constexpr void describe(auto& v, auto& h) {
        v("source", h.source.octets);
        v("destination", h.destination.octets);
        v("upper layer length", h.upper_layer_length);
        v.pack(reserved<24>);
        v("next header", h.next_header);
    }
    bool operator==(const PseudoHeader&) const = default;
};
static_assert(wire_size<PseudoHeader>() == 40);

/// A checksum that has the pseudo-header behind it; add the upper layer's octets.
inline InternetChecksum checksum_over(const PseudoHeader& pseudo) {
    InternetChecksum checksum;
    checksum.add(encoded(pseudo));
    return checksum;
}

/// What a packet carries, past its extension headers.
struct UpperLayer {
    NextHeader protocol{};
    ConstBuffer octets;
    /// The packet is one fragment of several: `octets` are a part, to be put together first.
    std::optional<FragmentHeader> fragment;
};

inline constexpr int extension_headers_max = 8;

/// `octets` follow the IPv6 header, cut to its payload length; `first` is its next header.
/// Hop-by-hop options anywhere but in front are malformed; so are too many headers.
inline Result<UpperLayer> find_upper_layer(NextHeader first, ConstBuffer octets) {
    auto next = first;
    for (int count = 0; count < extension_headers_max; ++count) {
        if (next == NextHeader::fragment) {
            WEFT_TRY(auto fragment, decode<FragmentHeader>(octets));
            next = fragment.next_header;
            octets = octets.subspan(wire_size<FragmentHeader>());
            if (!fragment.is_whole()) return UpperLayer{next, octets, fragment};
        } else if (next == NextHeader::hop_by_hop || next == NextHeader::routing ||
                   next == NextHeader::destination_options) {
            if (next == NextHeader::hop_by_hop && count > 0) return Error{.code = Code::malformed};
            WEFT_TRY(auto extension, decode<ExtensionHeader>(octets));
            if (extension.size() > octets.size()) return Error{.code = Code::truncated};
            next = extension.next_header;
            octets = octets.subspan(extension.size());
        } else {
            return UpperLayer{next, octets, std::nullopt};
        }
    }
    return Error{.code = Code::malformed};
}

}  // namespace weft::wire
