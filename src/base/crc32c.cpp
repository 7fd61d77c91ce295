// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace weft {

void Crc32c::add(ConstBuffer octets) {
    // ISA-L counts in int and does not write through its pointer, though it is not const.
    constexpr std::size_t most = 1u << 30;
    while (!octets.empty()) {
        auto part = octets.first(std::min(octets.size(), most));
        auto* data =
            const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(part.data()));
        state_ = crc32_iscsi(data, static_cast<int>(part.size()), state_);
        octets = octets.subspan(part.size());
    }
}

std::uint32_t crc32c(ConstBuffer octets) {
    Crc32c crc;
    crc.add(octets);
    return crc.value();
}

}  // namespace weft
