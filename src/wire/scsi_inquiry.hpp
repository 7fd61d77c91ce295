// SPDX-License-Identifier: Apache-2.0
// INQUIRY: what a logical unit is (SPC-4). Its pages of vital product data are in
// scsi_vital_product_data.hpp.
#pragma once

#include <string_view>

#include "wire/scsi_operation.hpp"

namespace weft::wire {

struct Inquiry {
    bool vital_product_data = false;  ///< EVPD: the page named, otherwise the standard data
    std::uint8_t page_code = 0;
    std::uint16_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::inquiry>(v);
        v.pack(reserved<7>, bits<1>("vital product data", h.vital_product_data));
        v("page code", h.page_code);
        v("allocation length", h.allocation_length);
        v.nested("control", h.control);
    }
    bool operator==(const Inquiry&) const = default;
};
static_assert(wire_size<Inquiry>() == 6);

/// Whether there is a device behind the logical unit number asked.
enum class PeripheralQualifier : std::uint8_t {
    connected = 0,
    not_connected = 1,  ///< could be, is not
    not_supported = 3,  ///< no such logical unit
};

enum class PeripheralType : std::uint8_t {
    direct_access_block = 0x00,
    storage_array_controller = 0x0c,
    well_known_logical_unit = 0x1e,
    unknown = 0x1f,
};

/// TPGS: who may change the state of target port groups.
enum class AsymmetricAccess : std::uint8_t {
    none = 0,
    implicit_only = 1,
    explicit_only = 2,
    implicit_and_explicit = 3,
};

/// A text in a field of fixed size, on the left and filled with spaces, as SPC-4 wants.
template <std::size_t Count>
constexpr Octets<Count> left_aligned(std::string_view text) {
    Octets<Count> octets{};
    for (std::size_t i = 0; i < Count; ++i)
        octets[i] = i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{' '};
    return octets;
}

/// Which standard a device claims to keep, in one of the eight places for it.
enum class VersionDescriptor : std::uint16_t {
    none = 0x0000,
    sam_5 = 0x00a0,
    spc_4 = 0x0460,
    sbc_3 = 0x04c0,
    iscsi = 0x0960,  ///< plus iSCSIProtocolLevel (RFC 7144 section 4.2)
};

/// The first 36 octets, which everyone sends.
struct StandardInquiryData {
    PeripheralQualifier qualifier{};
    PeripheralType type{};
    bool removable = false;
    std::uint8_t version = 6;  ///< 5 for SPC-3, 6 for SPC-4
    bool normal_auto_contingent_allegiance = false;
    bool hierarchical_addressing = false;  ///< of REPORT LUNS: as in SAM-5, so always set
    std::uint8_t additional_length = 31;   ///< octets after this field, versions included
    bool embedded_controller = false;      ///< SCCS: a storage array is inside
    bool access_controls_coordinator = false;
    AsymmetricAccess asymmetric_access{};
    bool third_party_copy = false;  ///< knows EXTENDED COPY
    bool protection = false;
    bool multiple_ports = false;
    bool command_queue = false;
    Octets<8> vendor{};
    Octets<16> product{};
    Octets<4> revision{};

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<3>("qualifier", h.qualifier), bits<5>("type", h.type),
               bits<1>("removable", h.removable), reserved<7>);
        v("version", h.version);
        v.pack(reserved<2>, bits<1>("naca", h.normal_auto_contingent_allegiance),
               bits<1>("hierarchical addressing", h.hierarchical_addressing),
               fixed<4>("response format", 2));
        v("additional length", h.additional_length);
        v.pack(bits<1>("embedded controller", h.embedded_controller),
               bits<1>("access controls coordinator", h.access_controls_coordinator),
               bits<2>("asymmetric access", h.asymmetric_access),
               bits<1>("third party copy", h.third_party_copy), reserved<2>,
               bits<1>("protection", h.protection));
        v.pack(reserved<3>, bits<1>("multiple ports", h.multiple_ports), reserved<10>,
               bits<1>("command queue", h.command_queue), reserved<1>);
        v("vendor", h.vendor);
        v("product", h.product);
        v("revision", h.revision);
    }
    bool operator==(const StandardInquiryData&) const = default;
};
static_assert(wire_size<StandardInquiryData>() == 36);

/// The 38 octets that may follow: they end with the standards the device claims to keep.
struct StandardInquiryVersions {
    Octets<20> vendor_specific{};
    std::array<VersionDescriptor, 8> versions{};

    static constexpr void describe(auto& v, auto& h) {
        v("vendor specific", h.vendor_specific);
        v.pack(reserved<16>);
        for (auto& version : h.versions) v("version", version);
    }
    bool operator==(const StandardInquiryVersions&) const = default;
};
static_assert(wire_size<StandardInquiryVersions>() == 38);

}  // namespace weft::wire
