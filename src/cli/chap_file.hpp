// SPDX-License-Identifier: Apache-2.0
// A file of secrets: lines 'user NAME SECRET' for those who may log in, and 'target NAME SECRET'
// for what we prove ourselves with. It is read once.
#pragma once

#include <string>

#include "iscsi/target_node.hpp"

namespace weft::cli {

/// Adds what the file says to the rules. Throws a Refusal.
void read_chap(const std::string& path, iscsi::TargetRules& rules);

}  // namespace weft::cli
