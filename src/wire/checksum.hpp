// SPDX-License-Identifier: Apache-2.0
// The Internet checksum (RFC 1071): the one's complement of the one's complement sum of 16-bit
// words. It is carried by TCP, UDP and ICMPv6 and covers memory that seldom lies together, so it
// is an accumulator that takes piece after piece, of any length.
#pragma once

#include <cstdint>

#include "weft/buffer.hpp"

namespace weft::wire {

class InternetChecksum {
public:
    /// Continues where the last piece ended, also in the middle of a word.
    void add(ConstBuffer octets);

    /// What belongs in the checksum field, if that was zero or not yet added.
    std::uint16_t value() const { return static_cast<std::uint16_t>(~sum_); }

    /// True if what was added contains its own checksum and that is right.
    bool verifies() const { return sum_ == 0xffff; }

private:
    std::uint16_t sum_ = 0;
    bool odd_ = false;  ///< the pieces so far end in the middle of a word
};

}  // namespace weft::wire
