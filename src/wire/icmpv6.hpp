// SPDX-License-Identifier: Apache-2.0
// ICMPv6 (RFC 4443): echo, and what routers and hosts report about packets they could not serve.
//
// A message is an Icmpv6Header, then the four or more octets its type asks for (a struct each),
// then data: the echoed octets, or the packet that gave offence. Neighbour discovery, which
// travels as ICMPv6 too, is in neighbour_discovery.hpp.
#pragma once

#include "base/wire_format.hpp"

namespace weft::wire {

enum class Icmpv6Type : std::uint8_t {
    destination_unreachable = 1,
    packet_too_big = 2,
    time_exceeded = 3,
    parameter_problem = 4,
    echo_request = 128,
    echo_reply = 129,
    router_solicitation = 133,
    router_advertisement = 134,
    neighbour_solicitation = 135,
    neighbour_advertisement = 136,
    redirect = 137,
    multicast_listener_report = 143,
};
/// Errors quote a packet and are never answered by another error.
constexpr bool is_error(Icmpv6Type type) {
    return static_cast<std::uint8_t>(type) < 128;
}

struct Icmpv6Header {
    Icmpv6Type type{};
    std::uint8_t code = 0;
    std::uint16_t checksum = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("type", h.type);
        v("code", h.code);
        v("checksum", h.checksum);
    }
    bool operator==(const Icmpv6Header&) const = default;
};
static_assert(wire_size<Icmpv6Header>() == 4);

/// After echo_request and echo_reply; the data follows and comes back as it went.
struct Echo {
    std::uint16_t identifier = 0;
    std::uint16_t sequence = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("identifier", h.identifier);
        v("sequence", h.sequence);
    }
    bool operator==(const Echo&) const = default;
};
static_assert(wire_size<Echo>() == 4);

/// The code of destination_unreachable.
enum class UnreachableCode : std::uint8_t {
    no_route = 0,
    prohibited = 1,
    beyond_scope = 2,
    address = 3,
    port = 4,
    failed_policy = 5,
    rejected_route = 6,
};

/// After destination_unreachable and time_exceeded; the packet in question follows.
struct UnusedWord {
    static constexpr void describe(auto& v, auto&) { v.pack(reserved<32>); }
    bool operator==(const UnusedWord&) const = default;
};
static_assert(wire_size<UnusedWord>() == 4);

/// After packet_too_big; the packet in question follows.
struct PacketTooBig {
    std::uint32_t mtu = 0;  ///< what the next link can carry

    static constexpr void describe(auto& v, auto& h) { v("mtu", h.mtu); }
    bool operator==(const PacketTooBig&) const = default;
};
static_assert(wire_size<PacketTooBig>() == 4);

/// The code of parameter_problem.
enum class ParameterProblemCode : std::uint8_t { header_field = 0, next_header = 1, option = 2 };

/// After parameter_problem; the packet in question follows.
struct ParameterProblem {
    std::uint32_t pointer = 0;  ///< which octet of that packet was not understood

    static constexpr void describe(auto& v, auto& h) { v("pointer", h.pointer); }
    bool operator==(const ParameterProblem&) const = default;
};
static_assert(wire_size<ParameterProblem>() == 4);

}  // namespace weft::wire
