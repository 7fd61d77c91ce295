// SPDX-License-Identifier: Apache-2.0
// MODE SENSE and MODE SELECT: the settings of a logical unit, in pages (SPC-4, SBC-4). The data is
// a header, block descriptors, and pages one after another.
#pragma once

#include <optional>

#include "wire/scsi_operation.hpp"

namespace weft::wire {

enum class ModePageCode : std::uint8_t {
    read_write_error_recovery = 0x01,
    disconnect_reconnect = 0x02,
    caching = 0x08,
    control = 0x0a,
    informational_exceptions = 0x1c,
    all_pages = 0x3f,
};

/// Which values MODE SENSE is to return.
enum class ModePageControl : std::uint8_t {
    current = 0,
    changeable = 1,  ///< a mask of the bits MODE SELECT may set
    defaults = 2,
    saved = 3,
};

struct ModeSense6 {
    bool no_block_descriptors = false;  ///< DBD
    ModePageControl page_control{};
    ModePageCode page{};
    std::uint8_t subpage = 0;
    std::uint8_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::mode_sense_6>(v);
        v.pack(reserved<4>, bits<1>("no block descriptors", h.no_block_descriptors), reserved<3>,
               bits<2>("page control", h.page_control), bits<6>("page", h.page));
        v("subpage", h.subpage);
        v("allocation length", h.allocation_length);
        v.nested("control", h.control);
    }
    bool operator==(const ModeSense6&) const = default;
};
static_assert(wire_size<ModeSense6>() == 6);

struct ModeSense10 {
    bool long_addresses_accepted = false;  ///< LLBAA: long block descriptors may come
    bool no_block_descriptors = false;
    ModePageControl page_control{};
    ModePageCode page{};
    std::uint8_t subpage = 0;
    std::uint16_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::mode_sense_10>(v);
        v.pack(reserved<3>, bits<1>("long addresses accepted", h.long_addresses_accepted),
               bits<1>("no block descriptors", h.no_block_descriptors), reserved<3>,
               bits<2>("page control", h.page_control), bits<6>("page", h.page));
        v("subpage", h.subpage);
        v.pack(reserved<24>);
        v("allocation length", h.allocation_length);
        v.nested("control", h.control);
    }
    bool operator==(const ModeSense10&) const = default;
};
static_assert(wire_size<ModeSense10>() == 10);

struct ModeSelect6 {
    bool page_format = false;  ///< PF: pages as described here, and not a vendor's
    bool save_pages = false;
    std::uint8_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::mode_select_6>(v);
        v.pack(reserved<3>, bits<1>("page format", h.page_format), reserved<3>,
               bits<1>("save pages", h.save_pages), reserved<16>,
               bits<8>("parameter length", h.parameter_length));
        v.nested("control", h.control);
    }
    bool operator==(const ModeSelect6&) const = default;
};
static_assert(wire_size<ModeSelect6>() == 6);

struct ModeSelect10 {
    bool page_format = false;
    bool save_pages = false;
    std::uint16_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::mode_select_10>(v);
        v.pack(reserved<3>, bits<1>("page format", h.page_format), reserved<3>,
               bits<1>("save pages", h.save_pages), reserved<40>);
        v("parameter length", h.parameter_length);
        v.nested("control", h.control);
    }
    bool operator==(const ModeSelect10&) const = default;
};
static_assert(wire_size<ModeSelect10>() == 10);

/// What a disk says in the device-specific octet of the header.
struct ModeDeviceParameter {
    bool write_protected = false;
    bool cache_control = false;  ///< DPOFUA: honours DPO and FUA

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("write protected", h.write_protected), reserved<2>,
               bits<1>("cache control", h.cache_control), reserved<4>);
    }
    bool operator==(const ModeDeviceParameter&) const = default;
};

/// The data length counts what follows it; it is reserved in MODE SELECT.
struct ModeHeader6 {
    std::uint8_t data_length = 0;
    std::uint8_t medium_type = 0;
    ModeDeviceParameter device{};
    std::uint8_t block_descriptors_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("data length", h.data_length);
        v("medium type", h.medium_type);
        v.nested("device", h.device);
        v("block descriptors length", h.block_descriptors_length);
    }
    bool operator==(const ModeHeader6&) const = default;
};
static_assert(wire_size<ModeHeader6>() == 4);

struct ModeHeader10 {
    std::uint16_t data_length = 0;
    std::uint8_t medium_type = 0;
    ModeDeviceParameter device{};
    bool long_block_descriptors = false;
    std::uint16_t block_descriptors_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("data length", h.data_length);
        v("medium type", h.medium_type);
        v.nested("device", h.device);
        v.pack(reserved<7>, bits<1>("long block descriptors", h.long_block_descriptors),
               reserved<8>);
        v("block descriptors length", h.block_descriptors_length);
    }
    bool operator==(const ModeHeader10&) const = default;
};
static_assert(wire_size<ModeHeader10>() == 8);

struct ShortBlockDescriptor {
    std::uint32_t block_count = 0;  ///< 0xffffffff: more than fits
    std::uint32_t block_bytes = 0;  ///< 24 bits

    static constexpr void describe(auto& v, auto& h) {
        v("block count", h.block_count);
        v.pack(reserved<8>, bits<24>("block bytes", h.block_bytes));
    }
    bool operator==(const ShortBlockDescriptor&) const = default;
};
static_assert(wire_size<ShortBlockDescriptor>() == 8);

struct LongBlockDescriptor {
    std::uint64_t block_count = 0;
    std::uint32_t block_bytes = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("block count", h.block_count);
        v.pack(reserved<32>);
        v("block bytes", h.block_bytes);
    }
    bool operator==(const LongBlockDescriptor&) const = default;
};
static_assert(wire_size<LongBlockDescriptor>() == 16);

struct ModePage {
    ModePageCode code{};
    std::uint8_t subpage = 0;
    bool savable = false;
    ConstBuffer whole{};  ///< ready for decode<CachingPage> and the like
};

/// Walks the pages that follow header and block descriptors.
class ModePages {
public:
    explicit ModePages(ConstBuffer pages) : rest_(pages) {}

    /// The next one, nothing at the end, or an error that repeats for ever.
    Result<std::optional<ModePage>> next();

private:
    ConstBuffer rest_{};
};

}  // namespace weft::wire
