// SPDX-License-Identifier: Apache-2.0
// The Terminate that ended a connection, in words for people.
#pragma once

#include <string>

#include "weft/verbs.hpp"

namespace weft::node {

/// "the peer terminated the connection: invalid steering tag 0x00a40d17 (RDMA Write, offset 4096)".
std::string to_text(const verbs::Termination& termination);

}  // namespace weft::node
