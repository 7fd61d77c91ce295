// SPDX-License-Identifier: Apache-2.0
// CRC32C, the checksum of iSCSI and of iWARP, computed by ISA-L. On the wire its least significant
// octet comes first: 32 zero octets give aa 36 91 8a (RFC 3720 B.4).
#pragma once

#include <cstdint>

#include "weft/buffer.hpp"

namespace weft {

class Crc32c {
public:
    void add(ConstBuffer octets);
    std::uint32_t value() const { return ~state_; }

private:
    std::uint32_t state_ = ~0u;
};

std::uint32_t crc32c(ConstBuffer octets);

}  // namespace weft
