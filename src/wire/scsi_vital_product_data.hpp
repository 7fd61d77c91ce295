// SPDX-License-Identifier: Apache-2.0
// The pages of vital product data (VPD) a disk has: SPC-4 and SBC-4.
//
// Every page begins with `VitalProductPageStart`. Pages 00h (which pages there are) and 80h (a
// serial number) are nothing but a list of octets behind it. The descriptors of page 83h are walked
// by `Designators`.
#pragma once

#include <optional>

#include "wire/scsi_inquiry.hpp"

namespace weft::wire {

enum class VitalProductPage : std::uint8_t {
    supported_pages = 0x00,
    unit_serial_number = 0x80,
    device_identification = 0x83,
    management_network_addresses = 0x85,
    extended_inquiry = 0x86,
    mode_page_policy = 0x87,
    scsi_ports = 0x88,
    third_party_copy = 0x8f,
    block_limits = 0xb0,
    block_device_characteristics = 0xb1,
    logical_block_provisioning = 0xb2,
};

struct VitalProductPageStart {
    PeripheralQualifier qualifier{};
    PeripheralType type{};
    VitalProductPage page{};
    std::uint16_t length = 0;  ///< octets that follow

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<3>("qualifier", h.qualifier), bits<5>("type", h.type));
        v("page", h.page);
        v("length", h.length);
    }
    bool operator==(const VitalProductPageStart&) const = default;
};
static_assert(wire_size<VitalProductPageStart>() == 4);

enum class CodeSet : std::uint8_t { binary = 1, ascii = 2, utf_8 = 3 };
enum class DesignatorAssociation : std::uint8_t { logical_unit = 0, target_port = 1, target = 2 };

enum class DesignatorType : std::uint8_t {
    vendor_specific = 0x0,
    t10_vendor = 0x1,
    eui_64 = 0x2,
    network_address_authority = 0x3,  ///< NAA
    relative_target_port = 0x4,
    target_port_group = 0x5,
    logical_unit_group = 0x6,
    scsi_name = 0x8,  ///< for iSCSI: the target's or the port's name
};

/// The value of `protocol` in a designator or a transport identifier.
inline constexpr std::uint8_t iscsi_protocol_identifier = 5;

/// The start of a designation descriptor of page 83h; the designator follows.
struct DesignatorStart {
    std::uint8_t protocol = 0;
    CodeSet code_set{};
    bool protocol_valid = false;
    DesignatorAssociation association{};
    DesignatorType type{};
    std::uint8_t length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<4>("protocol", h.protocol), bits<4>("code set", h.code_set));
        v.pack(bits<1>("protocol valid", h.protocol_valid), reserved<1>,
               bits<2>("association", h.association), bits<4>("type", h.type), reserved<8>);
        v("length", h.length);
    }
    bool operator==(const DesignatorStart&) const = default;
};
static_assert(wire_size<DesignatorStart>() == 4);

struct Designator {
    DesignatorStart start{};
    ConstBuffer value{};
};

/// Walks the descriptors of page 83h, without the page's start.
class Designators {
public:
    explicit Designators(ConstBuffer descriptors) : rest_(descriptors) {}

    /// The next one, nothing at the end, or an error that repeats for ever.
    Result<std::optional<Designator>> next();

private:
    ConstBuffer rest_{};
};

/// Page 86h, after its start: what the device can do beyond the standard data.
struct ExtendedInquiryData {
    std::uint8_t activate_microcode = 0;
    std::uint8_t supported_protection_types = 0;  ///< SPT
    bool check_guard = false;
    bool check_application_tag = false;
    bool check_reference_tag = false;
    bool unit_attention_sense_data = false;  ///< UASK_SUP
    bool grouping = false;
    bool command_priority = false;
    bool head_of_queue = false;
    bool ordered = false;
    bool simple = false;
    bool write_uncorrectable = false;
    bool correction_disable = false;
    bool nonvolatile_cache = false;
    bool volatile_cache = false;
    bool luns_changed_told_once = false;  ///< LUICLR: on one logical unit, not on each
    std::uint16_t extended_self_test_minutes = 0;
    std::uint8_t max_sense_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<2>("activate microcode", h.activate_microcode),
               bits<3>("supported protection types", h.supported_protection_types),
               bits<1>("check guard", h.check_guard),
               bits<1>("check application tag", h.check_application_tag),
               bits<1>("check reference tag", h.check_reference_tag));
        v.pack(reserved<2>, bits<1>("unit attention sense data", h.unit_attention_sense_data),
               bits<1>("grouping", h.grouping), bits<1>("command priority", h.command_priority),
               bits<1>("head of queue", h.head_of_queue), bits<1>("ordered", h.ordered),
               bits<1>("simple", h.simple));
        v.pack(reserved<4>, bits<1>("write uncorrectable", h.write_uncorrectable),
               bits<1>("correction disable", h.correction_disable),
               bits<1>("nonvolatile cache", h.nonvolatile_cache),
               bits<1>("volatile cache", h.volatile_cache));
        v.pack(reserved<7>, bits<1>("luns changed told once", h.luns_changed_told_once),
               reserved<16>);
        v("extended self test minutes", h.extended_self_test_minutes);
        v.pack(reserved<8>);
        v("max sense length", h.max_sense_length);
        for (int unused = 0; unused < 6; ++unused) v.pack(reserved<64>);
        v.pack(reserved<16>);
    }
    bool operator==(const ExtendedInquiryData&) const = default;
};
static_assert(wire_size<ExtendedInquiryData>() == 60);

/// One page in page 87h: who shares its settings.
struct ModePagePolicy {
    std::uint8_t page_code = 0x3f;  ///< 3Fh with subpage FFh: all of them
    std::uint8_t subpage_code = 0xff;
    bool multiple_logical_units = false;  ///< MLUS
    std::uint8_t policy = 0;              ///< 0: shared by all initiators

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<2>, bits<6>("page code", h.page_code));
        v("subpage code", h.subpage_code);
        v.pack(bits<1>("multiple logical units", h.multiple_logical_units), reserved<5>,
               bits<2>("policy", h.policy), reserved<8>);
    }
    bool operator==(const ModePagePolicy&) const = default;
};
static_assert(wire_size<ModePagePolicy>() == 4);

/// One port in page 88h, for a target that does not say who is connected to it; the port's
/// designators follow.
struct ScsiPortDesignation {
    std::uint16_t relative_port = 0;
    std::uint16_t descriptors_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<16>);
        v("relative port", h.relative_port);
        v.pack(reserved<16>, fixed<16>("initiator transport identifier length", 0));
        v.pack(reserved<16>);
        v("descriptors length", h.descriptors_length);
    }
    bool operator==(const ScsiPortDesignation&) const = default;
};
static_assert(wire_size<ScsiPortDesignation>() == 12);

/// Page B0h, after its start: how much one command may ask for. Zero is "not said".
struct BlockLimits {
    bool write_same_nonzero = false;  ///< WSNZ: WRITE SAME of zero blocks is refused
    std::uint8_t max_compare_and_write = 0;
    std::uint16_t optimal_transfer_granularity = 0;
    std::uint32_t max_transfer = 0;
    std::uint32_t optimal_transfer = 0;
    std::uint32_t max_prefetch = 0;
    std::uint32_t max_unmap_blocks = 0;
    std::uint32_t max_unmap_descriptors = 0;
    std::uint32_t optimal_unmap_granularity = 0;
    bool unmap_alignment_valid = false;
    std::uint32_t unmap_alignment = 0;  ///< 31 bits
    std::uint64_t max_write_same = 0;
    std::uint32_t max_atomic_transfer = 0;
    std::uint32_t atomic_alignment = 0;
    std::uint32_t atomic_granularity = 0;
    std::uint32_t max_atomic_transfer_with_boundary = 0;
    std::uint32_t max_atomic_boundary = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<7>, bits<1>("write same nonzero", h.write_same_nonzero));
        v("max compare and write", h.max_compare_and_write);
        v("optimal transfer granularity", h.optimal_transfer_granularity);
        v("max transfer", h.max_transfer);
        v("optimal transfer", h.optimal_transfer);
        v("max prefetch", h.max_prefetch);
        v("max unmap blocks", h.max_unmap_blocks);
        v("max unmap descriptors", h.max_unmap_descriptors);
        v("optimal unmap granularity", h.optimal_unmap_granularity);
        v.pack(bits<1>("unmap alignment valid", h.unmap_alignment_valid),
               bits<31>("unmap alignment", h.unmap_alignment));
        v("max write same", h.max_write_same);
        v("max atomic transfer", h.max_atomic_transfer);
        v("atomic alignment", h.atomic_alignment);
        v("atomic granularity", h.atomic_granularity);
        v("max atomic transfer with boundary", h.max_atomic_transfer_with_boundary);
        v("max atomic boundary", h.max_atomic_boundary);
    }
    bool operator==(const BlockLimits&) const = default;
};
static_assert(wire_size<BlockLimits>() == 60);

/// Page B1h, after its start.
struct BlockDeviceCharacteristics {
    std::uint16_t rotation_rate = 0;  ///< per minute; 1 says: it does not rotate
    std::uint8_t product_type = 0;
    std::uint8_t write_after_block_erase = 0;
    std::uint8_t write_after_cryptographic_erase = 0;
    std::uint8_t form_factor = 0;
    std::uint8_t zoned = 0;
    bool background_operation_control = false;
    bool force_unit_access_behaves = false;   ///< FUAB: as SBC-3 says
    bool verify_byte_check_unmapped = false;  ///< VBULS

    static constexpr void describe(auto& v, auto& h) {
        v("rotation rate", h.rotation_rate);
        v("product type", h.product_type);
        v.pack(bits<2>("write after block erase", h.write_after_block_erase),
               bits<2>("write after cryptographic erase", h.write_after_cryptographic_erase),
               bits<4>("form factor", h.form_factor));
        v.pack(reserved<2>, bits<2>("zoned", h.zoned), reserved<1>,
               bits<1>("background operation control", h.background_operation_control),
               bits<1>("force unit access behaves", h.force_unit_access_behaves),
               bits<1>("verify byte check unmapped", h.verify_byte_check_unmapped));
        for (int unused = 0; unused < 6; ++unused) v.pack(reserved<64>);
        v.pack(reserved<56>);
    }
    bool operator==(const BlockDeviceCharacteristics&) const = default;
};
static_assert(wire_size<BlockDeviceCharacteristics>() == 60);

enum class ProvisioningType : std::uint8_t { full_or_unknown = 0, resource = 1, thin = 2 };

/// Page B2h, after its start; a designator of the group follows if `group_descriptor`.
struct LogicalBlockProvisioning {
    std::uint8_t threshold_exponent = 0;
    bool unmap = false;           ///< LBPU: knows UNMAP
    bool write_same_16 = false;   ///< LBPWS: WRITE SAME(16) may unmap
    bool write_same_10 = false;   ///< LBPWS10
    std::uint8_t reads_zero = 0;  ///< LBPRZ: 1 if an unmapped block reads as zeroes
    bool anchor_supported = false;
    bool group_descriptor = false;  ///< DP
    std::uint8_t minimum_percentage = 0;
    ProvisioningType type{};
    std::uint8_t threshold_percentage = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("threshold exponent", h.threshold_exponent);
        v.pack(bits<1>("unmap", h.unmap), bits<1>("write same 16", h.write_same_16),
               bits<1>("write same 10", h.write_same_10), bits<3>("reads zero", h.reads_zero),
               bits<1>("anchor supported", h.anchor_supported),
               bits<1>("group descriptor", h.group_descriptor));
        v.pack(bits<5>("minimum percentage", h.minimum_percentage), bits<3>("type", h.type));
        v("threshold percentage", h.threshold_percentage);
    }
    bool operator==(const LogicalBlockProvisioning&) const = default;
};
static_assert(wire_size<LogicalBlockProvisioning>() == 4);

}  // namespace weft::wire
