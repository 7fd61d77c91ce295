// SPDX-License-Identifier: Apache-2.0
// What a box keeps of its volume on its own disk, and what a controller keeps in its store. Every
// superblock says all there is to know of the volume, so that it can be put together from the boxes
// alone. Two copies, written in turn: one of them is whole whenever the power goes.
#pragma once

#include "wire/array_identity.hpp"

namespace weft::wire {

enum class ArrayMemberState : std::uint8_t {
    none = 0,        ///< no box has this place
    current = 1,     ///< has everything
    absent = 2,      ///< lost, or out of reach: what it has is not to be believed
    rebuilding = 3,  ///< current below `rebuilt_stripes`
};

struct ArrayMember {
    BoxIdentity box{};
    ArrayMemberState state{};
    std::uint64_t rebuilt_stripes = 0;
    bool failed = false;  ///< of one that is absent: not taken back before somebody says so
    Generation since{};   ///< that it knew of when it last became whole: below, its disk is old

    static constexpr void describe(auto& v, auto& h) {
        v.nested("box", h.box);
        v("state", h.state);
        v.pack(reserved<7>, bits<48>("since", h.since), bits<1>("failed", h.failed));
        v("rebuilt stripes", h.rebuilt_stripes);
    }
    bool operator==(const ArrayMember&) const = default;
};
static_assert(wire_size<ArrayMember>() == 32);

enum class ArrayConsistency : std::uint8_t {
    none = 0,     ///< as the paper: what is staged is lost with the power
    journal = 1,  ///< what was prepared outlives it
};

/// How blocks of a row come together where its parity is computed.
enum class ArrayTopology : std::uint8_t {
    star = 0,         ///< one box fetches them all
    binary_tree = 1,  ///< boxes fetch in pairs, round by round
};

/// A volume: the same for all its boxes.
struct ArrayVolume {
    VolumeIdentity volume{};
    Octets<64> name{};  ///< UTF-8, zeroes behind it
    Generation generation{};
    std::uint8_t level = 0;
    std::uint8_t boxes = 0;
    ArrayConsistency consistency{};
    ArrayTopology topology{};
    std::uint32_t chunk_bytes = 0;
    std::uint64_t stripes = 0;
    std::array<ArrayMember, 18> members{};

    static constexpr void describe(auto& v, auto& h) {
        v.nested("volume", h.volume);
        v("name", h.name);
        v("generation", h.generation);
        v("level", h.level);
        v("boxes", h.boxes);
        v("consistency", h.consistency);
        v("topology", h.topology);
        v("chunk bytes", h.chunk_bytes);
        v("stripes", h.stripes);
        for (auto& member : h.members) v.nested("member", member);
    }
    bool operator==(const ArrayVolume&) const = default;
};
static_assert(wire_size<ArrayVolume>() == 16 + 64 + 24 + 18 * 32);

inline constexpr std::size_t superblock_size = 4096;

/// Zeroes follow up to the last four octets, which are a CRC32C over all before them.
struct ArraySuperblock {
    std::uint64_t written = 0;  ///< counts up: the higher of two copies is the newer
    ClusterIdentity cluster{};
    BoxIdentity box{};
    std::uint8_t place = 0;    ///< of the box in the volume
    std::uint8_t columns = 0;  ///< whose versions lie among the data; 0: made before there were
    Epoch epoch{};             ///< the highest that was obeyed; no lower one is
    std::uint64_t data_offset = 0;  ///< where home 0 is on the disk
    std::uint64_t data_length = 0;
    std::uint64_t journal_offset = 0;
    std::uint64_t journal_length = 0;
    ArrayVolume volume{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'42'6f'78'31));  // "WeftBox1"
        v("written", h.written);
        v.nested("cluster", h.cluster);
        v.nested("box", h.box);
        v("place", h.place);
        v("columns", h.columns);
        v.pack(reserved<48>);
        v("epoch", h.epoch);
        v("data offset", h.data_offset);
        v("data length", h.data_length);
        v("journal offset", h.journal_offset);
        v("journal length", h.journal_length);
        v.nested("volume", h.volume);
    }
    bool operator==(const ArraySuperblock&) const = default;
};
static_assert(wire_size<ArraySuperblock>() == 96 + wire_size<ArrayVolume>());
static_assert(wire_size<ArraySuperblock>() <= superblock_size - 4);

/// What a record of the controller's store is about. A record is this head, its body, a CRC32C.
enum class ArrayRecordKind : std::uint8_t {
    cluster = 1,
    volume = 2,
    box = 3,
    spare = 4,
    host = 5,
    rebuild = 6,
    dirty = 7,  ///< of no fixed length: array_dirty.hpp
    event = 8,
    executed = 9,  ///< of no fixed length, too: a volume's identity, and an ArrayExecutedNote each
};

struct ArrayRecordHead {
    ArrayRecordKind kind{};
    std::uint32_t body_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<24>("key", 0x57'41'52), bits<8>("kind", h.kind));  // "WAR"
        v("body length", h.body_length);
    }
    bool operator==(const ArrayRecordHead&) const = default;
};
static_assert(wire_size<ArrayRecordHead>() == 8);

struct ArrayClusterRecord {
    ClusterIdentity cluster{};
    Epoch epoch{};            ///< of the controller in office
    Octets<16> controller{};  ///< its identity

    static constexpr void describe(auto& v, auto& h) {
        v.nested("cluster", h.cluster);
        v("epoch", h.epoch);
        v("controller", h.controller);
    }
    bool operator==(const ArrayClusterRecord&) const = default;
};

struct ArrayBoxRecord {
    BoxIdentity box{};
    Octets<64> name{};
    Octets<64> address{};  ///< as the operator wrote it, HOST:PORT
    std::uint64_t size = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.nested("box", h.box);
        v("name", h.name);
        v("address", h.address);
        v("size", h.size);
    }
    bool operator==(const ArrayBoxRecord&) const = default;
};

struct ArraySpareRecord {
    BoxIdentity box{};

    static constexpr void describe(auto& v, auto& h) { v.nested("box", h.box); }
    bool operator==(const ArraySpareRecord&) const = default;
};

struct ArrayHostRecord {
    Octets<64> name{};
    HostSession session{};
    VolumeIdentity volume{};

    static constexpr void describe(auto& v, auto& h) {
        v("name", h.name);
        v("session", h.session);
        v.nested("volume", h.volume);
    }
    bool operator==(const ArrayHostRecord&) const = default;
};

/// How far a rebuilding has come; never ahead of what is on the box's disk.
struct ArrayRebuildRecord {
    VolumeIdentity volume{};
    std::uint8_t place = 0;
    bool paused = false;
    std::uint64_t stripes = 0;
    std::uint64_t octets_per_second = 0;  ///< the limit; 0: none

    static constexpr void describe(auto& v, auto& h) {
        v.nested("volume", h.volume);
        v("place", h.place);
        v.pack(reserved<7>, bits<1>("paused", h.paused), reserved<48>);
        v("stripes", h.stripes);
        v("octets per second", h.octets_per_second);
    }
    bool operator==(const ArrayRebuildRecord&) const = default;
};

/// Something that has happened, for who is in office next.
struct ArrayEventRecord {
    std::uint64_t number = 0;  ///< counts up, over all controllers
    std::uint64_t when = 0;    ///< nanoseconds since 1970, UTC
    Octets<64> volume{};       ///< its name; empty: about none in particular
    Octets<64> box{};
    Octets<256> what{};  ///< a sentence

    static constexpr void describe(auto& v, auto& h) {
        v("number", h.number);
        v("when", h.when);
        v("volume", h.volume);
        v("box", h.box);
        v("what", h.what);
    }
    bool operator==(const ArrayEventRecord&) const = default;
};

}  // namespace weft::wire
