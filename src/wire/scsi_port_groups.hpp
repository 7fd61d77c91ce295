// SPDX-License-Identifier: Apache-2.0
// Target port groups: which ways to a logical unit are good (SPC-4;
// known as ALUA, asymmetric logical unit access).
#pragma once

#include "wire/scsi_operation.hpp"

namespace weft::wire {

struct ReportTargetPortGroups {
    std::uint8_t data_format = 0;  ///< 0: no header, 1: TargetPortGroupsExtension
    std::uint32_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::maintenance_in>(v);
        v.pack(bits<3>("data format", h.data_format),
               fixed<5>("service action",
                        static_cast<std::uint64_t>(MaintenanceIn::report_target_port_groups)),
               reserved<32>);
        v("allocation length", h.allocation_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const ReportTargetPortGroups&) const = default;
};
static_assert(wire_size<ReportTargetPortGroups>() == 12);

struct SetTargetPortGroups {
    std::uint32_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::maintenance_out>(v);
        describe_service_action(v, MaintenanceOut::set_target_port_groups);
        v.pack(reserved<32>);
        v("parameter length", h.parameter_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const SetTargetPortGroups&) const = default;
};
static_assert(wire_size<SetTargetPortGroups>() == 12);

enum class AccessState : std::uint8_t {
    active_optimized = 0x0,
    active_not_optimized = 0x1,
    standby = 0x2,
    unavailable = 0x3,
    logical_block_dependent = 0x4,
    offline = 0xe,
    transitioning = 0xf,
};

/// The start of the report; groups follow.
struct TargetPortGroupsHeader {
    std::uint32_t length_after = 0;

    static constexpr void describe(auto& v, auto& h) { v("length after", h.length_after); }
    bool operator==(const TargetPortGroupsHeader&) const = default;
};
static_assert(wire_size<TargetPortGroupsHeader>() == 4);

/// Stands between header and groups if it was asked for.
struct TargetPortGroupsExtension {
    std::uint8_t implicit_transition_seconds = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<1>, fixed<3>("data format", 1), reserved<4>);
        v("implicit transition seconds", h.implicit_transition_seconds);
        v.pack(reserved<16>);
    }
    bool operator==(const TargetPortGroupsExtension&) const = default;
};
static_assert(wire_size<TargetPortGroupsExtension>() == 4);

enum class AccessStateReason : std::uint8_t { none = 0, set_explicitly = 1, implicit = 2 };

/// A group; as many TargetPort as it counts follow.
struct TargetPortGroup {
    bool preferred = false;
    AccessState state{};
    bool transitioning_supported = false;
    bool offline_supported = false;
    bool logical_block_dependent_supported = false;
    bool unavailable_supported = false;
    bool standby_supported = false;
    bool active_not_optimized_supported = false;
    bool active_optimized_supported = false;
    std::uint16_t group = 0;
    AccessStateReason reason{};
    std::uint8_t vendor_specific = 0;
    std::uint8_t port_count = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(bits<1>("preferred", h.preferred), reserved<3>, bits<4>("state", h.state));
        v.pack(bits<1>("transitioning supported", h.transitioning_supported),
               bits<1>("offline supported", h.offline_supported), reserved<1>,
               bits<1>("logical block dependent supported", h.logical_block_dependent_supported),
               bits<1>("unavailable supported", h.unavailable_supported),
               bits<1>("standby supported", h.standby_supported),
               bits<1>("active not optimized supported", h.active_not_optimized_supported),
               bits<1>("active optimized supported", h.active_optimized_supported));
        v("group", h.group);
        v.pack(reserved<8>);
        v("reason", h.reason);
        v("vendor specific", h.vendor_specific);
        v("port count", h.port_count);
    }
    bool operator==(const TargetPortGroup&) const = default;
};
static_assert(wire_size<TargetPortGroup>() == 8);

struct TargetPort {
    std::uint16_t relative_identifier = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<16>);
        v("relative identifier", h.relative_identifier);
    }
    bool operator==(const TargetPort&) const = default;
};
static_assert(wire_size<TargetPort>() == 4);

/// One wish in the parameter list of SET TARGET PORT GROUPS, behind four reserved octets.
struct SetTargetPortGroup {
    AccessState state{};
    std::uint16_t group = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<4>, bits<4>("state", h.state), reserved<8>);
        v("group", h.group);
    }
    bool operator==(const SetTargetPortGroup&) const = default;
};
static_assert(wire_size<SetTargetPortGroup>() == 4);

}  // namespace weft::wire
