// SPDX-License-Identifier: Apache-2.0
// The entry of a file in its folder, made to outlive a crash.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <string>

#include "linux/descriptor.hpp"

namespace weft::linux {

/// 0, or the negative error number.
inline int make_entry_stable(const std::string& path) {
    const auto slash = path.rfind('/');
    const auto folder_path = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
    Descriptor folder(::open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return !folder.is_open() || ::fsync(folder.number()) < 0 ? -errno : 0;
}

}  // namespace weft::linux
