// SPDX-License-Identifier: Apache-2.0
// What `weft run` and the environment wish of connections.
#pragma once

#include "weft/rdma.hpp"

namespace weft::abi {

/// How connections are to be made. Inside a Hold.
verbs::ConnectOptions connect_options();

}  // namespace weft::abi
