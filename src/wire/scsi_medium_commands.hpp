// SPDX-License-Identifier: Apache-2.0
// The commands about the medium as a whole (SBC-4): start and stop, lock, format, erase, and the
// list of its defects.
#pragma once

#include "wire/scsi_operation.hpp"

namespace weft::wire {

struct StartStopUnit {
    bool immediate = false;
    std::uint8_t power_condition_modifier = 0;
    std::uint8_t power_condition = 0;  ///< not zero: start and load_eject mean nothing
    bool no_flush = false;
    bool load_eject = false;
    bool start = false;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::start_stop_unit>(v);
        v.pack(reserved<7>, bits<1>("immediate", h.immediate), reserved<12>,
               bits<4>("power condition modifier", h.power_condition_modifier),
               bits<4>("power condition", h.power_condition), reserved<1>,
               bits<1>("no flush", h.no_flush), bits<1>("load eject", h.load_eject),
               bits<1>("start", h.start));
        v.nested("control", h.control);
    }
    bool operator==(const StartStopUnit&) const = default;
};
static_assert(wire_size<StartStopUnit>() == 6);

struct PreventAllowMediumRemoval {
    bool prevent = false;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::prevent_allow_medium_removal>(v);
        v.pack(reserved<31>, bits<1>("prevent", h.prevent));
        v.nested("control", h.control);
    }
    bool operator==(const PreventAllowMediumRemoval&) const = default;
};
static_assert(wire_size<PreventAllowMediumRemoval>() == 6);

struct FormatUnit {
    std::uint8_t protection_information = 0;  ///< FMTPINFO
    bool long_list = false;
    bool format_data = false;    ///< a parameter list follows
    bool complete_list = false;  ///< it replaces the grown defects
    std::uint8_t defect_list_format = 0;
    std::uint8_t fast_format = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::format_unit>(v);
        v.pack(bits<2>("protection information", h.protection_information),
               bits<1>("long list", h.long_list), bits<1>("format data", h.format_data),
               bits<1>("complete list", h.complete_list),
               bits<3>("defect list format", h.defect_list_format));
        v.pack(reserved<22>, bits<2>("fast format", h.fast_format));
        v.nested("control", h.control);
    }
    bool operator==(const FormatUnit&) const = default;
};
static_assert(wire_size<FormatUnit>() == 6);

enum class SanitizeAction : std::uint8_t {
    overwrite = 0x01,
    block_erase = 0x02,
    cryptographic_erase = 0x03,
    exit_failure_mode = 0x1f,
};

struct Sanitize {
    bool immediate = false;
    bool zoned_no_reset = false;
    bool allow_unrestricted_exit = false;  ///< AUSE
    SanitizeAction action{};
    std::uint16_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::sanitize>(v);
        v.pack(bits<1>("immediate", h.immediate), bits<1>("zoned no reset", h.zoned_no_reset),
               bits<1>("allow unrestricted exit", h.allow_unrestricted_exit),
               bits<5>("action", h.action));
        v.pack(reserved<40>);
        v("parameter length", h.parameter_length);
        v.nested("control", h.control);
    }
    bool operator==(const Sanitize&) const = default;
};
static_assert(wire_size<Sanitize>() == 10);

/// The start of the parameter list of SANITIZE's overwrite; the pattern follows.
struct SanitizeOverwrite {
    bool invert = false;
    std::uint8_t test = 0;
    std::uint8_t overwrite_count = 0;
    std::uint16_t pattern_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("invert", h.invert), bits<2>("test", h.test),
               bits<5>("overwrite count", h.overwrite_count), reserved<8>);
        v("pattern length", h.pattern_length);
    }
    bool operator==(const SanitizeOverwrite&) const = default;
};
static_assert(wire_size<SanitizeOverwrite>() == 4);

struct ReadDefectData10 {
    bool primary_list = false;
    bool grown_list = false;
    std::uint8_t format = 0;
    std::uint16_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::read_defect_data_10>(v);
        v.pack(reserved<11>, bits<1>("primary list", h.primary_list),
               bits<1>("grown list", h.grown_list), bits<3>("format", h.format), reserved<32>);
        v("allocation length", h.allocation_length);
        v.nested("control", h.control);
    }
    bool operator==(const ReadDefectData10&) const = default;
};
static_assert(wire_size<ReadDefectData10>() == 10);

struct ReadDefectData12 {
    bool primary_list = false;
    bool grown_list = false;
    std::uint8_t format = 0;
    std::uint32_t first_descriptor = 0;
    std::uint32_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::read_defect_data_12>(v);
        v.pack(reserved<3>, bits<1>("primary list", h.primary_list),
               bits<1>("grown list", h.grown_list), bits<3>("format", h.format));
        v("first descriptor", h.first_descriptor);
        v("allocation length", h.allocation_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const ReadDefectData12&) const = default;
};
static_assert(wire_size<ReadDefectData12>() == 12);

/// The start of what READ DEFECT DATA(10) returns; addresses follow.
struct DefectListHeader10 {
    bool primary_list = false;
    bool grown_list = false;
    std::uint8_t format = 0;
    std::uint16_t list_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<11>, bits<1>("primary list", h.primary_list),
               bits<1>("grown list", h.grown_list), bits<3>("format", h.format));
        v("list length", h.list_length);
    }
    bool operator==(const DefectListHeader10&) const = default;
};
static_assert(wire_size<DefectListHeader10>() == 4);

/// The same of READ DEFECT DATA(12).
struct DefectListHeader12 {
    bool primary_list = false;
    bool grown_list = false;
    std::uint8_t format = 0;
    std::uint16_t generation = 0;
    std::uint32_t list_length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<11>, bits<1>("primary list", h.primary_list),
               bits<1>("grown list", h.grown_list), bits<3>("format", h.format));
        v("generation", h.generation);
        v("list length", h.list_length);
    }
    bool operator==(const DefectListHeader12&) const = default;
};
static_assert(wire_size<DefectListHeader12>() == 8);

}  // namespace weft::wire
