// SPDX-License-Identifier: Apache-2.0
// What a box says of itself (the answer to describe_box), and what it keeps of itself besides its
// parts: a small file of its own, which names the parts.
#pragma once

#include "wire/array_superblock.hpp"

namespace weft::wire {

/// Behind it, for each part: its superblock (not the image with the checksum), then one steering
/// tag for every window of the part, whose low octet is for the transaction to choose. Then the
/// parts that are left out, then where the box listens, an ArrayNetworkEnd for each network.
struct ArrayBoxDescription {
    BoxIdentity box{};
    ClusterIdentity cluster{};  ///< all zero: nobody's yet
    Epoch epoch{};              ///< the highest that was obeyed
    std::uint64_t boot = 0;     ///< drawn whenever its process begins: never 0 or 1
    Octets<64> name{};
    std::uint64_t size = 0;  ///< what its parts may take together
    std::uint64_t free = 0;
    std::uint32_t window_limit = 0;  ///< octets of one
    std::uint16_t windows = 0;       ///< of each part
    std::uint16_t parts = 0;
    std::uint16_t left_out = 0;
    std::uint8_t networks = 0;  ///< that it knows of by their addresses; older boxes say none

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'44'73'63'33));  // "WeftDsc3"
        v.nested("box", h.box);
        v.nested("cluster", h.cluster);
        v("epoch", h.epoch);
        v("boot", h.boot);
        v("name", h.name);
        v("size", h.size);
        v("free", h.free);
        v("window limit", h.window_limit);
        v("windows", h.windows);
        v("parts", h.parts);
        v("left out", h.left_out);
        v("networks", h.networks);
        v.pack(reserved<40>);
    }
    bool operator==(const ArrayBoxDescription&) const = default;
};
static_assert(wire_size<ArrayBoxDescription>() == 152);

/// A part that a box has and cannot serve. If it is damaged a new one may take its place; else it
/// could not be read, may be whole, and stays until a person gives it up.
struct ArrayLeftOutPart {
    VolumeIdentity volume{};
    std::uint64_t size = 0;
    bool damaged = false;

    static constexpr void describe(auto& v, auto& h) {
        v.nested("volume", h.volume);
        v("size", h.size);
        v.pack(reserved<63>, bits<1>("damaged", h.damaged));
    }
    bool operator==(const ArrayLeftOutPart&) const = default;
};
static_assert(wire_size<ArrayLeftOutPart>() == 32);

/// The file a box knows itself by. Its parts follow, then a CRC32C over all before it.
struct ArrayBoxFile {
    BoxIdentity box{};
    ClusterIdentity cluster{};
    Epoch epoch{};
    Octets<64> name{};
    std::uint16_t parts = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'49'64'65'31));  // "WeftIde1"
        v.nested("box", h.box);
        v.nested("cluster", h.cluster);
        v("epoch", h.epoch);
        v("name", h.name);
        v("parts", h.parts);
        v.pack(reserved<48>);
    }
    bool operator==(const ArrayBoxFile&) const = default;
};
static_assert(wire_size<ArrayBoxFile>() == 120);

/// A part in that file. One that is begun is not there yet, or no more: its disk may be removed.
struct ArrayBoxPart {
    VolumeIdentity volume{};
    std::uint64_t size = 0;    ///< of its disk
    std::uint32_t number = 0;  ///< of its disk: those with lower ones were damaged and replaced
    bool begun = false;

    static constexpr void describe(auto& v, auto& h) {
        v.nested("volume", h.volume);
        v("size", h.size);
        v.pack(reserved<32>, bits<31>("number", h.number), bits<1>("begun", h.begun));
    }
    bool operator==(const ArrayBoxPart&) const = default;
};
static_assert(wire_size<ArrayBoxPart>() == 32);

}  // namespace weft::wire
