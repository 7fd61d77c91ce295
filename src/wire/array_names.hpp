// SPDX-License-Identifier: Apache-2.0
// The iSCSI names of an array's parties; a volume's target is named in array_host.hpp.
#pragma once

#include <string>
#include <string_view>

namespace weft::wire {

inline std::string box_target_name(std::string_view box) {
    return "iqn.2026-11.io.weft:box." + std::string(box);
}
inline constexpr const char* controller_initiator_name = "iqn.2026-11.io.weft:controller";

/// Names of boxes and volumes end iSCSI names, which have no capitals and few signs.
constexpr bool is_array_name(std::string_view name) {
    if (name.empty() || name.size() > 63) return false;
    for (char letter : name) {
        const bool fine = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                          letter == '-' || letter == '.';
        if (!fine) return false;
    }
    return true;
}

/// A box's name stands where a place in a volume may stand as well, and that is a number.
constexpr bool is_number(std::string_view name) {
    for (char letter : name)
        if (letter < '0' || letter > '9') return false;
    return !name.empty();
}

}  // namespace weft::wire
