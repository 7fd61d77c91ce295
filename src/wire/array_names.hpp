// SPDX-License-Identifier: Apache-2.0
// The iSCSI names of an array's parties; a volume's target is named in array_host.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft::wire {

inline std::string box_target_name(std::string_view box) {
    return "iqn.2026-11.io.weft:box." + std::string(box);
}
inline constexpr const char* controller_initiator_name = "iqn.2026-11.io.weft:controller";

inline constexpr std::size_t array_name_max = 63;

/// Names of boxes and volumes end iSCSI names, which have no capitals and few signs.
constexpr bool is_array_name(std::string_view name) {
    if (name.empty() || name.size() > array_name_max) return false;
    for (char letter : name) {
        const bool fine = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                          letter == '-' || letter == '.';
        if (!fine) return false;
    }
    return true;
}

/// Of one that is none, a sentence: `what` it cannot be the name of. However long it is, that is
/// not.
inline std::string why_no_array_name(std::string_view name, const char* what) {
    const auto most = std::to_string(array_name_max);
    if (name.size() > array_name_max)
        return "a name of " + std::to_string(name.size()) + " characters is too long for " + what +
               ": it may have " + most;
    return "'" + std::string(name) + "' is no name for " + what +
           ": small letters, digits, '-' and '.', " + most + " at most";
}

/// Why no box can be called that, a sentence; none if it can. A box's name stands where a place in
/// a volume may stand as well, and that is a number.
inline std::optional<std::string> refusal_of_box_name(std::string_view name) {
    if (!is_array_name(name)) return why_no_array_name(name, "a box");
    if (name.find_first_not_of("0123456789") != name.npos) return std::nullopt;
    return "'" + std::string(name) + "' is no name for a box: it could be taken for a place";
}

}  // namespace weft::wire
