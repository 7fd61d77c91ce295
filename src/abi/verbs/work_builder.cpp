// SPDX-License-Identifier: Apache-2.0
#include "abi/verbs/work_builder.hpp"

namespace weft::abi {

struct WorkBuilder {};

bool can_build(std::uint64_t) {
    return false;
}

void add_builder(QueuePair&) {}

}  // namespace weft::abi
