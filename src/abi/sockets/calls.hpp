// SPDX-License-Identifier: Apache-2.0
// What the calls of the sockets have in common.
#pragma once

#include <cerrno>

namespace weft::abi::sockets {

inline int fail_with(int number) {
    errno = number;
    return -1;
}

}  // namespace weft::abi::sockets
