// SPDX-License-Identifier: Apache-2.0
// XOR parity and the P+Q pair of RAID 6, computed by ISA-L, which wants 32-octet alignment.
#pragma once

#include <cstddef>
#include <span>

#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft {

inline constexpr std::size_t parity_alignment = 32;

/// target = XOR of all sources. At least two sources, all of one size; memory aligned to
/// parity_alignment. Anything else is `malformed`, and nothing is written.
Result<void> xor_parity(std::span<const ConstBuffer> sources, Buffer target);

/// target ^= source: of one size, both aligned to parity_alignment; our own callers see to that.
void xor_into(ConstBuffer source, Buffer target);

/// p = XOR of all sources, q = the sum of 2^i times source i in GF(2^8). Sizes must be multiples of
/// parity_alignment too.
Result<void> pq_parity(std::span<const ConstBuffer> sources, Buffer p, Buffer q);

}  // namespace weft
