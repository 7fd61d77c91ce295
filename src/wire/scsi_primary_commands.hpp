// SPDX-License-Identifier: Apache-2.0
// The command blocks every SCSI device knows (SPC-4) whose data has no file of its own:
// ready, sense, diagnostics, logs, and the reservations of SPC-2.
#pragma once

#include "wire/scsi_operation.hpp"

namespace weft::wire {

/// TEST UNIT READY, RESERVE(6) and RELEASE(6): nothing but a code.
template <ScsiOperation operation>
struct PlainCommand6 {
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<operation>(v);
        v.pack(reserved<32>);
        v.nested("control", h.control);
    }
    bool operator==(const PlainCommand6&) const = default;
};
using TestUnitReady = PlainCommand6<ScsiOperation::test_unit_ready>;
using Reserve6 = PlainCommand6<ScsiOperation::reserve_6>;
using Release6 = PlainCommand6<ScsiOperation::release_6>;
static_assert(wire_size<TestUnitReady>() == 6);

/// RESERVE(10) and RELEASE(10) of SPC-2, for oneself (no third party).
template <ScsiOperation operation>
struct PlainCommand10 {
    bool third_party = false;  ///< for someone else: obsolete, a target refuses it
    bool long_identifier = false;
    std::uint16_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<operation>(v);
        v.pack(reserved<3>, bits<1>("third party", h.third_party), reserved<2>,
               bits<1>("long identifier", h.long_identifier), reserved<1>, reserved<40>);
        v("parameter length", h.parameter_length);
        v.nested("control", h.control);
    }
    bool operator==(const PlainCommand10&) const = default;
};
using Reserve10 = PlainCommand10<ScsiOperation::reserve_10>;
using Release10 = PlainCommand10<ScsiOperation::release_10>;
static_assert(wire_size<Reserve10>() == 10);

struct RequestSense {
    bool descriptor_format = false;
    std::uint8_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::request_sense>(v);
        v.pack(reserved<7>, bits<1>("descriptor format", h.descriptor_format), reserved<16>,
               bits<8>("allocation length", h.allocation_length));
        v.nested("control", h.control);
    }
    bool operator==(const RequestSense&) const = default;
};
static_assert(wire_size<RequestSense>() == 6);

struct SendDiagnostic {
    std::uint8_t self_test_code = 0;
    bool page_format = false;
    bool self_test = false;
    bool device_offline = false;  ///< the test may disturb other logical units
    bool unit_offline = false;    ///< the test may disturb this one
    std::uint16_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::send_diagnostic>(v);
        v.pack(bits<3>("self test code", h.self_test_code), bits<1>("page format", h.page_format),
               reserved<1>, bits<1>("self test", h.self_test),
               bits<1>("device offline", h.device_offline), bits<1>("unit offline", h.unit_offline),
               reserved<8>);
        v("parameter length", h.parameter_length);
        v.nested("control", h.control);
    }
    bool operator==(const SendDiagnostic&) const = default;
};
static_assert(wire_size<SendDiagnostic>() == 6);

struct ReceiveDiagnosticResults {
    bool page_code_valid = false;
    std::uint8_t page_code = 0;
    std::uint16_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::receive_diagnostic_results>(v);
        v.pack(reserved<7>, bits<1>("page code valid", h.page_code_valid));
        v("page code", h.page_code);
        v("allocation length", h.allocation_length);
        v.nested("control", h.control);
    }
    bool operator==(const ReceiveDiagnosticResults&) const = default;
};
static_assert(wire_size<ReceiveDiagnosticResults>() == 6);

struct LogSense {
    bool save_parameters = false;
    std::uint8_t page_control = 0;
    std::uint8_t page_code = 0;
    std::uint8_t subpage_code = 0;
    std::uint16_t parameter_pointer = 0;
    std::uint16_t allocation_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::log_sense>(v);
        v.pack(reserved<7>, bits<1>("save parameters", h.save_parameters),
               bits<2>("page control", h.page_control), bits<6>("page code", h.page_code));
        v("subpage code", h.subpage_code);
        v.pack(reserved<8>);
        v("parameter pointer", h.parameter_pointer);
        v("allocation length", h.allocation_length);
        v.nested("control", h.control);
    }
    bool operator==(const LogSense&) const = default;
};
static_assert(wire_size<LogSense>() == 10);

struct LogSelect {
    bool parameter_code_reset = false;
    bool save_parameters = false;
    std::uint8_t page_control = 0;
    std::uint8_t page_code = 0;
    std::uint8_t subpage_code = 0;
    std::uint16_t parameter_length = 0;
    ControlOctet control{};

    static constexpr void describe(auto& v, auto& h) {
        describe_operation<ScsiOperation::log_select>(v);
        v.pack(reserved<6>, bits<1>("parameter code reset", h.parameter_code_reset),
               bits<1>("save parameters", h.save_parameters),
               bits<2>("page control", h.page_control), bits<6>("page code", h.page_code));
        v("subpage code", h.subpage_code);
        v.pack(reserved<24>);
        v("parameter length", h.parameter_length);
        v.nested("control", h.control);
    }
    bool operator==(const LogSelect&) const = default;
};
static_assert(wire_size<LogSelect>() == 10);

}  // namespace weft::wire
