// SPDX-License-Identifier: Apache-2.0
// How the ends of a connection for third-party transfers come to trust each other. There is no
// login on it: whoever connects and whoever accepts show that they know a secret the controller
// gave to both, and never say it.
//
//     active to passive   greeting   who, to whom, a fresh number      MPA request's private data
//     passive to active   welcome    its own fresh number, its proof   MPA reply's private data
//     active to passive   proof      its proof                         the first Send
//     passive to active   ready      nothing more                      the first Send back
//
// A proof is HMAC-SHA256, under the secret, of the greeting, the welcome without its proof, and one
// octet that tells the two proofs apart: neither can be replayed, and neither serves as the other.
#pragma once

#include "wire/array_identity.hpp"

namespace weft::wire {

enum class ArrayRole : std::uint8_t { box = 1, host = 2, controller = 3 };

struct ArrayConnectionEnd {
    ArrayRole role{};
    BoxIdentity identity{};  ///< of a host its session, in the last eight octets

    static constexpr void describe(auto& v, auto& h) {
        v("role", h.role);
        v.pack(reserved<24>);
        v.nested("identity", h.identity);
    }
    bool operator==(const ArrayConnectionEnd&) const = default;
};

/// A host's session as the identity of a connection's end, and of a party of an order.
constexpr BoxIdentity identity_of(HostSession session) {
    BoxIdentity identity;
    for (std::size_t i = 0; i < 8; ++i)
        identity.octets[15 - i] =
            static_cast<std::uint8_t>(static_cast<std::uint64_t>(session) >> 8 * i);
    return identity;
}
constexpr ArrayConnectionEnd box_end(const BoxIdentity& box) {
    return {.role = ArrayRole::box, .identity = box};
}
constexpr ArrayConnectionEnd host_end(HostSession session) {
    return {.role = ArrayRole::host, .identity = identity_of(session)};
}

struct ArrayGreeting {
    ClusterIdentity cluster{};
    Epoch epoch{};
    ArrayConnectionEnd from{}, to{};
    Octets<32> fresh{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'47'72'74'31));  // "WeftGrt1"
        v.nested("cluster", h.cluster);
        v("epoch", h.epoch);
        v.nested("from", h.from);
        v.nested("to", h.to);
        v("fresh", h.fresh);
    }
    bool operator==(const ArrayGreeting&) const = default;
};
static_assert(wire_size<ArrayGreeting>() == 104);

struct ArrayWelcome {
    Epoch epoch{};
    Octets<32> fresh{};
    Octets<32> proof{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'57'6c'63'31));  // "WeftWlc1"
        v("epoch", h.epoch);
        v("fresh", h.fresh);
        v("proof", h.proof);
    }
    bool operator==(const ArrayWelcome&) const = default;
};
static_assert(wire_size<ArrayWelcome>() == 80);

struct ArrayProof {
    Octets<32> proof{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'50'72'66'31));  // "WeftPrf1"
        v("proof", h.proof);
    }
    bool operator==(const ArrayProof&) const = default;
};
static_assert(wire_size<ArrayProof>() == 40);

/// The proof was good, and memory is open from now on. What came sooner would find it closed.
struct ArrayReady {
    static constexpr void describe(auto& v, auto&) {
        v.pack(fixed<64>("key", 0x57'65'66'74'52'64'79'31));  // "WeftRdy1"
    }
    bool operator==(const ArrayReady&) const = default;
};
static_assert(wire_size<ArrayReady>() == 8);

/// Where a party is reached in one of the networks it is in.
struct ArrayNetworkEnd {
    Octets<16> address{};  ///< IPv6; an IPv4 address mapped into it
    std::uint16_t port = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("address", h.address);
        v("port", h.port);
        v.pack(reserved<48>);
    }
    bool operator==(const ArrayNetworkEnd&) const = default;
};

inline constexpr std::size_t array_networks_max = 4;

/// Of meet_boxes' list, behind an ArrayAddress and a count. A box in several networks has one for
/// each, the preferred first.
struct ArrayPeer {
    BoxIdentity box{};
    std::uint8_t place = 0;  ///< in the volume
    std::uint16_t port = 0;
    Octets<16> address{};  ///< IPv6; an IPv4 address mapped into it
    Octets<32> secret{};   ///< of the pair of boxes

    static constexpr void describe(auto& v, auto& h) {
        v.nested("box", h.box);
        v("place", h.place);
        v.pack(reserved<8>);
        v("port", h.port);
        v("address", h.address);
        v("secret", h.secret);
    }
    bool operator==(const ArrayPeer&) const = default;
};
static_assert(wire_size<ArrayPeer>() == 68);

struct ArrayPeerList {
    ArrayAddress address{};
    std::uint8_t count = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.nested("address", h.address);
        v("count", h.count);
        v.pack(reserved<56>);
    }
    bool operator==(const ArrayPeerList&) const = default;
};
static_assert(wire_size<ArrayPeerList>() == 72);

/// The parameter list of admit_host, and of dismiss_host, where only the session counts.
struct ArrayHostAdmission {
    ArrayAddress address{};
    HostSession host{};
    std::uint16_t port = 0;
    Octets<16> network_address{};  ///< all zero: where the command comes from
    Octets<32> secret{};

    static constexpr void describe(auto& v, auto& h) {
        v.nested("address", h.address);
        v("host", h.host);
        v("port", h.port);
        v.pack(reserved<48>);
        v("network address", h.network_address);
        v("secret", h.secret);
    }
    bool operator==(const ArrayHostAdmission&) const = default;
};
static_assert(wire_size<ArrayHostAdmission>() == 128);

}  // namespace weft::wire
