// SPDX-License-Identifier: Apache-2.0
// The clock of a logical unit (SPC-4): REPORT TIMESTAMP and SET TIMESTAMP. It counts milliseconds,
// since 1970 if somebody set it and since power on otherwise.
#pragma once

#include "wire/scsi_operation.hpp"

namespace weft::wire {

struct ReportTimestamp {
    std::uint32_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::maintenance_in>(v);
        describe_service_action(v, MaintenanceIn::report_timestamp);
        v.pack(reserved<32>);
        v("allocation length", h.allocation_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const ReportTimestamp&) const = default;
};
static_assert(wire_size<ReportTimestamp>() == 12);

struct SetTimestamp {
    std::uint32_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::maintenance_out>(v);
        describe_service_action(v, MaintenanceOut::set_timestamp);
        v.pack(reserved<32>);
        v("parameter length", h.parameter_length);
        v.pack(reserved<8>);
        v.nested("control", h.control);
    }
    bool operator==(const SetTimestamp&) const = default;
};
static_assert(wire_size<SetTimestamp>() == 12);

enum class TimestampOrigin : std::uint8_t { power_on = 0, set_by_command = 2 };

struct TimestampReport {
    TimestampOrigin origin{};
    std::uint64_t milliseconds = 0;  ///< 48 bits

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<16>("length after", 10), reserved<5>, bits<3>("origin", h.origin),
               reserved<8>);
        v.pack(bits<48>("milliseconds", h.milliseconds), reserved<16>);
    }
    bool operator==(const TimestampReport&) const = default;
};
static_assert(wire_size<TimestampReport>() == 12);

/// The parameter list of SET TIMESTAMP.
struct TimestampSetting {
    std::uint64_t milliseconds = 0;  ///< 48 bits

    static constexpr void describe(auto& v, auto& h) {
        v.pack(reserved<32>);
        v.pack(bits<48>("milliseconds", h.milliseconds), reserved<16>);
    }
    bool operator==(const TimestampSetting&) const = default;
};
static_assert(wire_size<TimestampSetting>() == 12);

}  // namespace weft::wire
