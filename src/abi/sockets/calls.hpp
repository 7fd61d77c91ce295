// SPDX-License-Identifier: Apache-2.0
// What the calls of the sockets have in common.
#pragma once

#include "abi/refusals.hpp"

namespace weft::abi::sockets {

using abi::act_or_fail;
using abi::fail_with;

}  // namespace weft::abi::sockets
