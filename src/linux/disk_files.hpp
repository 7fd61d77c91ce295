// SPDX-License-Identifier: Apache-2.0
// Files that are to be disks, made and removed: see World::provide_disk().
#pragma once

#include <cstdint>
#include <string>

#include "weft/result.hpp"

namespace weft::linux {

/// `malformed`: what is there under the path is no regular file.
Result<void> provide_disk_file(const std::string& path, std::uint64_t size);
Result<void> remove_disk_file(const std::string& path);

}  // namespace weft::linux
