// SPDX-License-Identifier: Apache-2.0
// Page 8Fh of vital product data: what a copy manager can do (SPC-4). Descriptors of any length
// follow the page's start, each padded to a multiple of four octets.
#pragma once

#include "wire/scsi_vital_product_data.hpp"

namespace weft::wire {

enum class ThirdPartyCopyType : std::uint16_t {
    supported_commands = 0x0001,  ///< operation codes with lists of service actions
    parameter_data = 0x0004,
    supported_descriptors = 0x0008,  ///< of targets and segments
    general_operations = 0x8001,
};

struct ThirdPartyCopyStart {
    ThirdPartyCopyType type{};
    std::uint16_t length = 0;  ///< octets that follow, a multiple of four less these

    static constexpr void describe(auto& v, auto& h) {
        v("type", h.type);
        v("length", h.length);
    }
    bool operator==(const ThirdPartyCopyStart&) const = default;
};
static_assert(wire_size<ThirdPartyCopyStart>() == 4);

struct CopyParameterLimits {
    std::uint16_t max_target_descriptors = 0;
    std::uint16_t max_segment_descriptors = 0;
    std::uint32_t max_descriptor_list_length = 0;
    std::uint32_t max_inline_data_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<32>);
        v("max target descriptors", h.max_target_descriptors);
        v("max segment descriptors", h.max_segment_descriptors);
        v("max descriptor list length", h.max_descriptor_list_length);
        v("max inline data length", h.max_inline_data_length);
        v.pack(reserved<64>);
        v.pack(reserved<32>);
    }
    bool operator==(const CopyParameterLimits&) const = default;
};
static_assert(wire_size<CopyParameterLimits>() == 28);

struct GeneralCopyOperations {
    std::uint32_t total_concurrent_copies = 0;
    std::uint32_t max_identified_copies = 0;
    std::uint32_t max_segment_length = 0;
    std::uint8_t data_segment_granularity = 0;  ///< exponents of two
    std::uint8_t inline_data_granularity = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("total concurrent copies", h.total_concurrent_copies);
        v("max identified copies", h.max_identified_copies);
        v("max segment length", h.max_segment_length);
        v("data segment granularity", h.data_segment_granularity);
        v("inline data granularity", h.inline_data_granularity);
        v.pack(reserved<16>);
        v.pack(reserved<64>);
        v.pack(reserved<64>);
    }
    bool operator==(const GeneralCopyOperations&) const = default;
};
static_assert(wire_size<GeneralCopyOperations>() == 32);

}  // namespace weft::wire
