// SPDX-License-Identifier: Apache-2.0
#include "raid/layout.hpp"

#include "raid/limits.hpp"

namespace weft::raid {

Result<Layout> Layout::make(Level level, std::uint8_t boxes, std::uint32_t chunk_bytes) {
    std::uint8_t fewest = 0, most = 0;
    switch (level) {
        case Level::mirror:
            fewest = 2, most = limits::mirrors;
            break;
        case Level::raid5:
            fewest = 3, most = data_columns_max + 1;
            break;
        case Level::raid6:
            fewest = 4, most = data_columns_max + 2;
            break;
        default:
            return Error{Code::unsupported};
    }
    if (boxes < fewest || boxes > most) return Error{.code = Code::out_of_range, .where = boxes};
    if (chunk_bytes == 0 || chunk_bytes % slice_size != 0 || chunk_bytes > limits::chunk_bytes)
        return Error{.code = Code::malformed, .where = chunk_bytes};
    return Layout(level, boxes, chunk_bytes);
}

}  // namespace weft::raid
