// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_rule_time.hpp"

#include <algorithm>
#include <string>

namespace weft::sim {

namespace {

std::string in_seconds(Duration span) {
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(span).count()) +
           " ms";
}

}  // namespace

void RaidTimeRule::look_at_waiting(const char* what, Instant began, Instant now) {
    const auto since = std::max(began, trouble_);
    if (now < since + bound) return;
    complaints_.add(std::string("L7: a ") + what + " has waited for " + in_seconds(now - began) +
                    ", though the volume could serve for " + in_seconds(now - since));
}

void RaidTimeRule::look_at_failed(const char* what, Code code, Instant began, Instant now) {
    complaints_.add(std::string("L6: a ") + what + " failed that could be served, code " +
                    std::to_string(static_cast<int>(code)) + ", after " + in_seconds(now - began));
}

}  // namespace weft::sim
