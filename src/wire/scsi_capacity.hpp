// SPDX-License-Identifier: Apache-2.0
// How large a disk is, and which of its blocks have space behind them (SBC-4): READ CAPACITY,
// GET LBA STATUS and UNMAP, with their data.
#pragma once

#include "wire/scsi_operation.hpp"

namespace weft::wire {

struct ReadCapacity10 {
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::read_capacity_10>(v);
        v.pack(reserved<64>);
        v.nested("control", h.control);
    }
    bool operator==(const ReadCapacity10&) const = default;
};
static_assert(wire_size<ReadCapacity10>() == 10);

/// A last block of 0xffffffff means: too large for this form, ask with the 16 octet one.
struct Capacity10 {
    std::uint32_t last_block = 0;
    std::uint32_t block_bytes = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("last block", h.last_block);
        v("block bytes", h.block_bytes);
    }
    bool operator==(const Capacity10&) const = default;
};
static_assert(wire_size<Capacity10>() == 8);

struct ReadCapacity16 {
    std::uint32_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::service_action_in_16>(v);
        describe_service_action(v, ServiceActionIn::read_capacity_16);
        v.pack(reserved<64>);
        v("allocation length", h.allocation_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const ReadCapacity16&) const = default;
};
static_assert(wire_size<ReadCapacity16>() == 16);

struct Capacity16 {
    std::uint64_t last_block = 0;
    std::uint32_t block_bytes = 0;
    std::uint8_t protection_type = 0;  ///< P_TYPE: the type less one
    bool protection_enabled = false;
    std::uint8_t protection_interval_exponent = 0;
    std::uint8_t blocks_per_physical_exponent = 0;
    bool provisioning_management = false;  ///< LBPME: blocks may be unmapped
    bool unmapped_reads_zero = false;      ///< LBPRZ
    std::uint16_t lowest_aligned_block = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("last block", h.last_block);
        v("block bytes", h.block_bytes);
        v.pack(reserved<4>, bits<3>("protection type", h.protection_type),
               bits<1>("protection enabled", h.protection_enabled));
        v.pack(bits<4>("protection interval exponent", h.protection_interval_exponent),
               bits<4>("blocks per physical exponent", h.blocks_per_physical_exponent));
        v.pack(bits<1>("provisioning management", h.provisioning_management),
               bits<1>("unmapped reads zero", h.unmapped_reads_zero),
               bits<14>("lowest aligned block", h.lowest_aligned_block));
        v.pack(reserved<64>);
        v.pack(reserved<64>);
    }
    bool operator==(const Capacity16&) const = default;
};
static_assert(wire_size<Capacity16>() == 32);

struct GetLbaStatus {
    std::uint64_t first_block = 0;
    std::uint32_t allocation_length = 0;
    std::uint8_t report_type = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::service_action_in_16>(v);
        describe_service_action(v, ServiceActionIn::get_lba_status);
        v("first block", h.first_block);
        v("allocation length", h.allocation_length);
        v("report type", h.report_type);
        v.nested("control", h.control);
    }
    bool operator==(const GetLbaStatus&) const = default;
};
static_assert(wire_size<GetLbaStatus>() == 16);

/// What GET LBA STATUS returns: this, and a descriptor for each run of blocks.
struct LbaStatusHeader {
    std::uint32_t length_after = 0;  ///< octets that follow this field

    static constexpr void describe(auto& v, auto& h) {
        v("length after", h.length_after);
        v.pack(reserved<32>);
    }
    bool operator==(const LbaStatusHeader&) const = default;
};
static_assert(wire_size<LbaStatusHeader>() == 8);

enum class Provisioning : std::uint8_t { mapped = 0, deallocated = 1, anchored = 2 };

struct LbaStatusDescriptor {
    std::uint64_t first_block = 0;
    std::uint32_t block_count = 0;
    Provisioning provisioning{};

    static constexpr void describe(auto& v, auto& h) {
        v("first block", h.first_block);
        v("block count", h.block_count);
        v.pack(reserved<4>, bits<4>("provisioning", h.provisioning), reserved<24>);
    }
    bool operator==(const LbaStatusDescriptor&) const = default;
};
static_assert(wire_size<LbaStatusDescriptor>() == 16);

struct Unmap {
    bool anchor = false;
    std::uint8_t group_number = 0;
    std::uint16_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::unmap>(v);
        v.pack(reserved<7>, bits<1>("anchor", h.anchor), reserved<32>, reserved<3>,
               bits<5>("group number", h.group_number));
        v("parameter length", h.parameter_length);
        v.nested("control", h.control);
    }
    bool operator==(const Unmap&) const = default;
};
static_assert(wire_size<Unmap>() == 10);

/// The start of UNMAP's parameter list; descriptors follow.
struct UnmapListHeader {
    std::uint16_t length_after = 0;  ///< octets that follow this field
    std::uint16_t descriptors_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("length after", h.length_after);
        v("descriptors length", h.descriptors_length);
        v.pack(reserved<32>);
    }
    bool operator==(const UnmapListHeader&) const = default;
};
static_assert(wire_size<UnmapListHeader>() == 8);

struct UnmapDescriptor {
    std::uint64_t first_block = 0;
    std::uint32_t block_count = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("first block", h.first_block);
        v("block count", h.block_count);
        v.pack(reserved<32>);
    }
    bool operator==(const UnmapDescriptor&) const = default;
};
static_assert(wire_size<UnmapDescriptor>() == 16);

}  // namespace weft::wire
