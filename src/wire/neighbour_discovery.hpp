// SPDX-License-Identifier: Apache-2.0
// Neighbour discovery (RFC 4861): how nodes of a link find each other's link addresses and their
// routers. Each struct follows an Icmpv6Header; options follow the struct up to the packet's end.
//
// Such packets count only with hop limit 255: no router can have let them in from elsewhere.
#pragma once

#include <optional>

#include "wire/icmpv6.hpp"
#include "wire/ipv6_address.hpp"

namespace weft::wire {

inline constexpr std::uint8_t neighbour_discovery_hop_limit = 255;

struct RouterSolicitation {
    static constexpr void describe(auto& v, auto&) { v.pack(reserved<32>); }
    bool operator==(const RouterSolicitation&) const = default;
};
static_assert(wire_size<RouterSolicitation>() == 4);

struct RouterAdvertisement {
    std::uint8_t hop_limit = 0;  ///< for packets of one's own; 0: not said
    bool managed_addresses = false;
    bool other_configuration = false;
    std::uint16_t lifetime_s = 0;  ///< 0: not a default router
    std::uint32_t reachable_ms = 0;
    std::uint32_t retransmit_ms = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("hop limit", h.hop_limit);
        v.pack(bits<1>("managed addresses", h.managed_addresses),
               bits<1>("other configuration", h.other_configuration), reserved<6>);
        v("lifetime s", h.lifetime_s);
        v("reachable ms", h.reachable_ms);
        v("retransmit ms", h.retransmit_ms);
    }
    bool operator==(const RouterAdvertisement&) const = default;
};
static_assert(wire_size<RouterAdvertisement>() == 12);

struct NeighbourSolicitation {
    Ipv6Address target{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<32>);
        v("target", h.target.octets);
    }
    bool operator==(const NeighbourSolicitation&) const = default;
};
static_assert(wire_size<NeighbourSolicitation>() == 20);

struct NeighbourAdvertisement {
    bool router = false;
    bool solicited = false;
    bool override_cache = false;  ///< replaces a link address already known
    Ipv6Address target{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("router", h.router), bits<1>("solicited", h.solicited),
               bits<1>("override", h.override_cache), reserved<29>);
        v("target", h.target.octets);
    }
    bool operator==(const NeighbourAdvertisement&) const = default;
};
static_assert(wire_size<NeighbourAdvertisement>() == 20);

// --- options

enum class NeighbourOptionType : std::uint8_t {
    source_link_address = 1,
    target_link_address = 2,
    prefix_information = 3,
    redirected_header = 4,
    mtu = 5,
    nonce = 14,
};

/// How every option begins.
struct NeighbourOptionHeader {
    NeighbourOptionType type{};
    std::uint8_t units = 1;  ///< its length in units of 8 octets, these two among them

    static constexpr void describe(auto& v, auto& h) {
        v("type", h.type);
        v("units", h.units);
    }
    bool operator==(const NeighbourOptionHeader&) const = default;
};
static_assert(wire_size<NeighbourOptionHeader>() == 2);

/// Source or target link address.
struct LinkAddressOption {
    NeighbourOptionType type = NeighbourOptionType::source_link_address;
    EthernetAddress address{};

    static constexpr void describe(auto& v, auto& h) {
        v("type", h.type);
        v.pack(fixed<8>("units", 1));
        v("address", h.address.octets);
    }
    bool operator==(const LinkAddressOption&) const = default;
};
static_assert(wire_size<LinkAddressOption>() == 8);

struct MtuOption {
    std::uint32_t mtu = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("type", 5), fixed<8>("units", 1), reserved<16>);
        v("mtu", h.mtu);
    }
    bool operator==(const MtuOption&) const = default;
};
static_assert(wire_size<MtuOption>() == 8);

struct PrefixInformation {
    std::uint8_t prefix_bits = 0;
    bool on_link = false;
    bool autonomous = false;  ///< a node may make its own address from it (RFC 4862)
    std::uint32_t valid_s = 0;
    std::uint32_t preferred_s = 0;
    Ipv6Address prefix{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("type", 3), fixed<8>("units", 4));
        v("prefix bits", h.prefix_bits);
        v.pack(bits<1>("on link", h.on_link), bits<1>("autonomous", h.autonomous), reserved<6>);
        v("valid s", h.valid_s);
        v("preferred s", h.preferred_s);
        v.pack(reserved<32>);
        v("prefix", h.prefix.octets);
    }
    bool operator==(const PrefixInformation&) const = default;
};
static_assert(wire_size<PrefixInformation>() == 32);

/// One option; `octets` are all of it, as the structs above decode it.
struct NeighbourOption {
    NeighbourOptionType type{};
    ConstBuffer octets;
};

/// Walks the options of a message. After an error the whole message must be ignored.
class NeighbourOptions {
public:
    explicit NeighbourOptions(ConstBuffer octets) : rest_(octets) {}

    Result<std::optional<NeighbourOption>> next() {
        if (rest_.empty()) return std::optional<NeighbourOption>{};
        WEFT_TRY(auto header, decode<NeighbourOptionHeader>(rest_));
        std::size_t size = std::size_t{header.units} * 8;
        if (size == 0) return Error{.code = Code::malformed};
        if (size > rest_.size()) return Error{.code = Code::truncated};
        NeighbourOption option{header.type, rest_.first(size)};
        rest_ = rest_.subspan(size);
        return std::optional(option);
    }

private:
    ConstBuffer rest_;
};

}  // namespace weft::wire
