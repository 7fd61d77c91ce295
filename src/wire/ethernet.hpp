// SPDX-License-Identifier: Apache-2.0
// Ethernet frames: who, from whom, and what is inside. Padding and check sequence are the link's.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/wire_format.hpp"

namespace weft::wire {

struct EthernetAddress {
    Octets<6> octets{};

    /// "5a:4a:8a:f5:1f:0c", and back.
    std::string text() const;
    static Result<EthernetAddress> from_text(std::string_view text);

    constexpr bool is_multicast() const { return (octets[0] & 1) != 0; }
    constexpr auto operator<=>(const EthernetAddress&) const = default;
};
inline constexpr EthernetAddress ethernet_broadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

enum class EtherType : std::uint16_t { ipv4 = 0x0800, arp = 0x0806, vlan = 0x8100, ipv6 = 0x86dd };

struct EthernetHeader {
    EthernetAddress destination{};
    EthernetAddress source{};
    EtherType type{};

    static constexpr void describe(auto& v, auto& h) {
        v("destination", h.destination.octets);
        v("source", h.source.octets);
        v("type", h.type);
    }
    bool operator==(const EthernetHeader&) const = default;
};
static_assert(wire_size<EthernetHeader>() == 14);

}  // namespace weft::wire
