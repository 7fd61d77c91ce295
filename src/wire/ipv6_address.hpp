// SPDX-License-Identifier: Apache-2.0
// IPv6 addresses (RFC 4291): a type of their own, their canonical text (RFC 5952), and the
// addresses that follow from others by rule, which neighbour discovery is built on.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "wire/ethernet.hpp"

namespace weft::wire {

struct Ipv6Address {
    Octets<16> octets{};

    /// The canonical text: "fd00:a::2". Equal addresses have equal texts.
    std::string text() const;
    /// Any text RFC 4291 allows, without brackets, prefix length or zone.
    static Result<Ipv6Address> from_text(std::string_view text);

    /// fe80:: and the interface identifier made from the link's address (RFC 4291 appendix A).
    static Ipv6Address link_local(const EthernetAddress& link);
    /// The group that a neighbour solicitation for this address is sent to.
    Ipv6Address solicited_node() const;
    /// Where Ethernet carries a multicast address (RFC 2464, section 7).
    EthernetAddress multicast_link() const;

    bool is_unspecified() const { return *this == Ipv6Address{}; }
    bool is_loopback() const;
    bool is_multicast() const { return octets[0] == 0xff; }
    bool is_link_local() const { return octets[0] == 0xfe && (octets[1] & 0xc0) == 0x80; }
    /// True if the first `bits` (0 to 128) are those of `other`.
    bool shares_prefix(const Ipv6Address& other, unsigned bits) const;

    constexpr auto operator<=>(const Ipv6Address&) const = default;
};

inline constexpr Ipv6Address all_nodes{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
inline constexpr Ipv6Address all_routers{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};

}  // namespace weft::wire
