// SPDX-License-Identifier: Apache-2.0
// Network addresses as an array's commands carry them: 16 octets of IPv6, an IPv4 address mapped
// into them. Names are resolved by whoever has a world, before.
#pragma once

#include <optional>
#include <string_view>

#include "base/wire_format.hpp"
#include "weft/world.hpp"
#include "wire/array_connection.hpp"

namespace weft::node {

/// "127.0.0.1", "::1", "fe80::1:2". None if it is no number.
std::optional<Octets<16>> network_address_of(std::string_view host);
/// The other way; what is an IPv4 address is written as one.
std::string host_of(const Octets<16>& network_address);

/// Where somebody listens on all addresses there are: none that others could be told.
inline bool is_every_address(std::string_view host) {
    return host.empty() || host == "0.0.0.0" || host == "::" || host == "*";
}

inline Address address_of(const Octets<16>& network_address, std::uint16_t port) {
    return Address::tcp(host_of(network_address), port);
}

/// All zero for what is no number; and the other way.
inline wire::ArrayNetworkEnd network_end_of(const Address& address) {
    return {.address = network_address_of(address.host).value_or(Octets<16>{}),
            .port = address.port};
}
inline Address address_of(const wire::ArrayNetworkEnd& end) {
    return end == wire::ArrayNetworkEnd{} ? Address{} : address_of(end.address, end.port);
}

/// HOST:PORT, as people write it: IPv6 in brackets.
std::string written(const Address& address);

}  // namespace weft::node
