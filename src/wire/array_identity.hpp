// SPDX-License-Identifier: Apache-2.0
// Who is who in an array. Every order and every superblock names its cluster, volume and box, and
// how new the sender's knowledge is: an order that went astray, or comes from yesterday's
// controller, is refused by these and by nothing else.
#pragma once

#include <string>

#include "base/wire_format.hpp"

namespace weft::wire {

/// A name nobody else has: 16 octets drawn at random.
template <class Tag>
struct ArrayIdentity {
    Octets<16> octets{};

    static constexpr void describe(auto& v, auto& h) { v("octets", h.octets); }
    auto operator<=>(const ArrayIdentity&) const = default;
};

/// As people and names of files and records have it: two digits for each octet.
template <class Tag>
std::string to_digits(const ArrayIdentity<Tag>& identity) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (auto octet : identity.octets) {
        text += digits[octet >> 4];
        text += digits[octet & 15];
    }
    return text;
}

using ClusterIdentity = ArrayIdentity<struct ClusterTag>;
using VolumeIdentity = ArrayIdentity<struct VolumeTag>;
using BoxIdentity = ArrayIdentity<struct BoxTag>;
/// Of one attachment of a host, over all its sessions: with a command's number it names a request.
using HostIdentity = ArrayIdentity<struct HostTag>;

/// Counts the changes of a volume's membership and layout.
enum class Generation : std::uint64_t {};
/// Counts the controllers a cluster has had.
enum class Epoch : std::uint64_t {};
/// Names a transaction for ever: the epoch it was begun in, then a count. Later ones are higher.
enum class TransactionNumber : std::uint64_t {};
/// A host's session with its controller.
enum class HostSession : std::uint64_t {};

/// What every command to a box begins with.
struct ArrayAddress {
    ClusterIdentity cluster{};
    VolumeIdentity volume{};  ///< all zero where the command is about the box as a whole
    BoxIdentity box{};
    Generation generation{};
    Epoch epoch{};

    static constexpr void describe(auto& v, auto& h) {
        v.nested("cluster", h.cluster);
        v.nested("volume", h.volume);
        v.nested("box", h.box);
        v("generation", h.generation);
        v("epoch", h.epoch);
    }
    bool operator==(const ArrayAddress&) const = default;
};
static_assert(wire_size<ArrayAddress>() == 64);

}  // namespace weft::wire
