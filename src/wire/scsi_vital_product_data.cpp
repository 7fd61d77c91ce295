// SPDX-License-Identifier: Apache-2.0
#include "wire/scsi_vital_product_data.hpp"

namespace weft::wire {

Result<std::optional<Designator>> Designators::next() {
    if (rest_.empty()) return std::optional<Designator>{};
    WEFT_TRY(const auto start, decode<DesignatorStart>(rest_));
    const auto after = rest_.subspan(wire_size<DesignatorStart>());
    if (start.length > after.size())
        return Error{.code = Code::truncated, .where = static_cast<std::uint32_t>(rest_.size())};
    rest_ = after.subspan(start.length);
    return std::optional(Designator{.start = start, .value = after.first(start.length)});
}

}  // namespace weft::wire
