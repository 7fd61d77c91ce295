// SPDX-License-Identifier: Apache-2.0
// What a process has, for tests that must find it unchanged.
#pragma once

#include <dirent.h>
#include <malloc.h>

#include <cstddef>

namespace weft::test {

inline std::size_t open_descriptors() {
    std::size_t count = 0;
    auto* folder = ::opendir("/proc/self/fd");
    while (::readdir(folder)) ++count;
    ::closedir(folder);
    return count;
}

/// Of all arenas, and what was mapped for large pieces.
inline std::size_t bytes_in_use() {
    auto use = ::mallinfo2();
    return use.uordblks + use.hblkhd;
}

}  // namespace weft::test
