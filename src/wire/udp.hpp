// SPDX-License-Identifier: Apache-2.0
// UDP (RFC 768), as IPv6 has it: the checksum is not optional (RFC 8200, section 8.1).
#pragma once

#include "base/wire_format.hpp"
#include "wire/checksum.hpp"
#include "wire/port.hpp"

namespace weft::wire {

struct UdpHeader {
    Port source{};
    Port destination{};
    std::uint16_t length = 0;  ///< of header and data
    std::uint16_t checksum = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("source", h.source);
        v("destination", h.destination);
        v("length", h.length);
        v("checksum", h.checksum);
    }
    bool operator==(const UdpHeader&) const = default;
};
static_assert(wire_size<UdpHeader>() == 8);

struct UdpDatagram {
    UdpHeader header;
    ConstBuffer octets;  ///< header and data: what the checksum covers
    ConstBuffer data;
};

/// Cuts a datagram out of what a packet carries. Octets beyond its length are not part of it.
inline Result<UdpDatagram> split_udp_datagram(ConstBuffer octets) {
    WEFT_TRY(auto header, decode<UdpHeader>(octets));
    if (header.length < wire_size<UdpHeader>() || header.checksum == 0)
        return Error{.code = Code::malformed};
    if (header.length > octets.size()) return Error{.code = Code::truncated};
    octets = octets.first(header.length);
    return UdpDatagram{header, octets, octets.subspan(wire_size<UdpHeader>())};
}

/// What a sender writes: zero would mean "none", so its other form is used.
inline std::uint16_t udp_checksum_field(const InternetChecksum& checksum) {
    return checksum.value() == 0 ? 0xffff : checksum.value();
}

}  // namespace weft::wire
