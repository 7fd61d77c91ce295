// SPDX-License-Identifier: Apache-2.0
#include "sim/raid_rule_fairness.hpp"

#include <algorithm>
#include <string>

namespace weft::sim {

void RaidFairnessRule::answered(Number number) {
    waiting_.erase(number);
    for (auto& [older, overtaken] : waiting_) {
        if (older > number) break;
        most_ = std::max(most_, ++overtaken);
        if (overtaken == overtakes_max)
            complaints_.add("L8: request " + std::to_string(older) + " was overtaken by " +
                            std::to_string(overtaken) + " that were asked for later");
    }
}

}  // namespace weft::sim
