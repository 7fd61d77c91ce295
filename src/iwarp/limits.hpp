// SPDX-License-Identifier: Apache-2.0
// Every bound of this folder in one place.
#pragma once

#include <cstddef>

namespace weft::iwarp::limits {

/// FPDUs a connection lends to its stream at a time. A trailer and the header behind it are one
/// piece, so this many fill a sendmsg of 64 pieces.
inline constexpr std::size_t fpdus_lent = 32;
/// No further FPDU is made while this much is lent. What was just read for the checksum is then
/// still in the processor's cache when the kernel copies it, and a Terminate has not far to wait.
inline constexpr std::size_t lent_bytes = 256u << 10;
/// Pieces of memory whose bytes one FPDU carries. Where memory is in smaller pieces FPDUs are
/// shorter.
inline constexpr std::size_t payload_pieces_per_fpdu = 16;

}  // namespace weft::iwarp::limits
