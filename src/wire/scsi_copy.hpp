// SPDX-License-Identifier: Apache-2.0
// EXTENDED COPY of the first kind (LID1) and RECEIVE COPY RESULTS (SPC-4): a target copies between
// logical units itself. Only what block to block copies need.
#pragma once

#include "wire/scsi_vital_product_data.hpp"

namespace weft::wire {

enum class ExtendedCopyAction : std::uint8_t { copy_lid1 = 0x00, copy_lid4 = 0x01 };

struct ExtendedCopy {
    ExtendedCopyAction action{};
    std::uint32_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::extended_copy>(v);
        v.pack(reserved<3>, bits<5>("action", h.action));
        v.pack(reserved<64>);
        v("parameter length", h.parameter_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const ExtendedCopy&) const = default;
};
static_assert(wire_size<ExtendedCopy>() == 16);

enum class ReceiveCopyAction : std::uint8_t {
    copy_status = 0x00,
    receive_data = 0x01,
    operating_parameters = 0x03,
    failed_segment_details = 0x04,
};

struct ReceiveCopyResults {
    ReceiveCopyAction action{};
    std::uint8_t list_identifier = 0;
    std::uint32_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::receive_copy_results>(v);
        v.pack(reserved<3>, bits<5>("action", h.action));
        v("list identifier", h.list_identifier);
        v.pack(reserved<56>);
        v("allocation length", h.allocation_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const ReceiveCopyResults&) const = default;
};
static_assert(wire_size<ReceiveCopyResults>() == 16);

/// The start of the parameter list: target descriptors, segment descriptors and inline data follow.
struct CopyListHeader {
    std::uint8_t list_identifier = 0;
    bool strict = false;
    std::uint8_t list_identifier_usage = 0;
    std::uint8_t priority = 0;
    std::uint16_t target_descriptors_length = 0;
    std::uint32_t segment_descriptors_length = 0;
    std::uint32_t inline_data_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("list identifier", h.list_identifier);
        v.pack(reserved<2>, bits<1>("strict", h.strict),
               bits<2>("list identifier usage", h.list_identifier_usage),
               bits<3>("priority", h.priority));
        v("target descriptors length", h.target_descriptors_length);
        v.pack(reserved<32>);
        v("segment descriptors length", h.segment_descriptors_length);
        v("inline data length", h.inline_data_length);
    }
    bool operator==(const CopyListHeader&) const = default;
};
static_assert(wire_size<CopyListHeader>() == 16);

/// The kind of a target descriptor, its first octet. All have 32 octets.
enum class CopyTargetType : std::uint8_t { identification = 0xe4 };

/// Names a logical unit by a designator of its page 83h.
struct CopyTargetByIdentification {
    PeripheralType type{};
    std::uint16_t relative_initiator_port = 0;
    DesignatorStart designator{};
    Octets<20> designator_value{};  ///< as much of it as the designator's length says
    bool pad = false;
    std::uint32_t block_bytes = 0;  ///< 24 bits

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("descriptor type", 0xe4), reserved<3>, bits<5>("type", h.type));
        v("relative initiator port", h.relative_initiator_port);
        v.nested("designator", h.designator);
        v("designator value", h.designator_value);
        v.pack(reserved<5>, bits<1>("pad", h.pad), reserved<2>,
               bits<24>("block bytes", h.block_bytes));
    }
    bool operator==(const CopyTargetByIdentification&) const = default;
};
static_assert(wire_size<CopyTargetByIdentification>() == 32);

/// The kind of a segment descriptor, its first octet.
enum class CopySegmentType : std::uint8_t { block_to_block = 0x02 };

/// Targets are named by their place in the list.
struct CopyBlocksToBlocks {
    bool destination_count = false;  ///< DC: the count is of the destination's blocks
    bool concatenate = false;        ///< CAT
    std::uint16_t source_target = 0;
    std::uint16_t destination_target = 0;
    std::uint16_t block_count = 0;
    std::uint64_t source_block = 0;
    std::uint64_t destination_block = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<8>("descriptor type", 0x02), reserved<6>,
               bits<1>("destination count", h.destination_count),
               bits<1>("concatenate", h.concatenate), fixed<16>("length", 0x18));
        v("source target", h.source_target);
        v("destination target", h.destination_target);
        v.pack(reserved<16>);
        v("block count", h.block_count);
        v("source block", h.source_block);
        v("destination block", h.destination_block);
    }
    bool operator==(const CopyBlocksToBlocks&) const = default;
};
static_assert(wire_size<CopyBlocksToBlocks>() == 28);

/// What RECEIVE COPY RESULTS tells about the limits; the descriptor types it knows follow.
struct CopyOperatingParameters {
    std::uint32_t length_after = 0;
    bool without_list_identifier = false;  ///< SNLID
    std::uint16_t max_target_descriptors = 0;
    std::uint16_t max_segment_descriptors = 0;
    std::uint32_t max_descriptor_list_length = 0;
    std::uint32_t max_segment_length = 0;
    std::uint32_t max_inline_data_length = 0;
    std::uint32_t held_data_limit = 0;
    std::uint32_t max_stream_transfer = 0;
    std::uint16_t total_concurrent_copies = 0;
    std::uint8_t max_concurrent_copies = 0;
    std::uint8_t data_segment_granularity = 0;  ///< these three are exponents of two
    std::uint8_t inline_data_granularity = 0;
    std::uint8_t held_data_granularity = 0;
    std::uint8_t descriptor_types_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("length after", h.length_after);
        v.pack(reserved<7>, bits<1>("without list identifier", h.without_list_identifier),
               reserved<24>);
        v("max target descriptors", h.max_target_descriptors);
        v("max segment descriptors", h.max_segment_descriptors);
        v("max descriptor list length", h.max_descriptor_list_length);
        v("max segment length", h.max_segment_length);
        v("max inline data length", h.max_inline_data_length);
        v("held data limit", h.held_data_limit);
        v("max stream transfer", h.max_stream_transfer);
        v.pack(reserved<16>);
        v("total concurrent copies", h.total_concurrent_copies);
        v("max concurrent copies", h.max_concurrent_copies);
        v("data segment granularity", h.data_segment_granularity);
        v("inline data granularity", h.inline_data_granularity);
        v("held data granularity", h.held_data_granularity);
        v.pack(reserved<24>);
        v("descriptor types length", h.descriptor_types_length);
    }
    bool operator==(const CopyOperatingParameters&) const = default;
};
static_assert(wire_size<CopyOperatingParameters>() == 44);

enum class CopyProgress : std::uint8_t { in_progress = 0, completed = 1, failed = 2 };

/// What RECEIVE COPY RESULTS tells about a copy.
struct CopyStatus {
    bool held_data_discarded = false;
    CopyProgress progress{};
    std::uint16_t segments_processed = 0;
    std::uint8_t transfer_count_units = 0;
    std::uint32_t transfer_count = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<32>("length after", 8));
        v.pack(bits<1>("held data discarded", h.held_data_discarded),
               bits<7>("progress", h.progress));
        v("segments processed", h.segments_processed);
        v("transfer count units", h.transfer_count_units);
        v("transfer count", h.transfer_count);
    }
    bool operator==(const CopyStatus&) const = default;
};
static_assert(wire_size<CopyStatus>() == 12);

}  // namespace weft::wire
