// SPDX-License-Identifier: Apache-2.0
// How many descriptors this process may have. The usual soft limit, 1024, is for programs that call
// select(2); a server with a thousand clients needs more and may take what the hard limit allows.
#pragma once

#include <cstddef>

namespace weft::linux {

/// Raises the soft limit to the hard one and returns what it is now.
std::size_t raise_descriptor_limit();

}  // namespace weft::linux
