// SPDX-License-Identifier: Apache-2.0
// What may be done with memory: the application's words and the engine's.
#pragma once

#include <infiniband/verbs.h>

#include "weft/registered_memory.hpp"

namespace weft::abi {

inline Rights rights_of(unsigned access) {
    auto rights = Rights::local_read;
    if (access & IBV_ACCESS_LOCAL_WRITE) rights = rights | Rights::local_write;
    if (access & IBV_ACCESS_REMOTE_READ) rights = rights | Rights::remote_read;
    if (access & IBV_ACCESS_REMOTE_WRITE) rights = rights | Rights::remote_write;
    if (access & IBV_ACCESS_REMOTE_ATOMIC) rights = rights | Rights::remote_atomic;
    if (access & IBV_ACCESS_MW_BIND) rights = rights | Rights::bind_windows;
    return rights;
}

}  // namespace weft::abi
