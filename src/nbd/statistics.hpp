// SPDX-License-Identifier: Apache-2.0
// What a server has done, for the people who run it.
#pragma once

#include <cstdint>

namespace weft::nbd {

struct Statistics {
    std::uint64_t connections = 0;  ///< accepted, ever
    std::uint64_t requests = 0;     ///< answered, ever
    std::uint64_t refused = 0;      ///< of those, answered with an error
    std::uint64_t bytes_read = 0;
    std::uint64_t bytes_written = 0;
};

}  // namespace weft::nbd
