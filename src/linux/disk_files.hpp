// SPDX-License-Identifier: Apache-2.0
// Files that are to be disks, made and removed: see World::provide_disk().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weft/result.hpp"

namespace weft::linux {

/// `malformed`: what is there under the path is no regular file. `exhausted`: the file system has
/// not that much room.
Result<void> provide_disk_file(const std::string& path, std::uint64_t size);
Result<void> remove_disk_file(const std::string& path);
/// What the folder's file system has left for us; none if it does not say.
std::optional<std::uint64_t> room_for_disk_files(const std::string& folder);

}  // namespace weft::linux
