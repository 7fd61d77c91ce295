// SPDX-License-Identifier: Apache-2.0
// What goes wrong on a connection, in the words of the Terminate message that will say so. An
// Error's detail carries layer, type and code in its sixteen bits.
#pragma once

#include "weft/result.hpp"
#include "wire/terminate.hpp"

namespace weft::iwarp {

constexpr std::uint16_t detail_of(const wire::TerminateControl& control) {
    return static_cast<std::uint16_t>(static_cast<unsigned>(control.layer) << 12 |
                                      control.error_type << 8 | control.error_code);
}
constexpr wire::TerminateControl control_of(Error error) {
    return {.layer = static_cast<wire::TerminateLayer>(error.detail >> 12),
            .error_type = static_cast<std::uint8_t>(error.detail >> 8 & 0xf),
            .error_code = static_cast<std::uint8_t>(error.detail)};
}

/// The refusal that a Terminate with this code will explain.
constexpr Error fault(auto code) {
    return {.code = Code::malformed, .detail = detail_of(wire::terminate_for(code))};
}

}  // namespace weft::iwarp
