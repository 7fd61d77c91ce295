// SPDX-License-Identifier: Apache-2.0
// The name of a Unix socket in the file system, which outlives the process that made it.
#pragma once

#include <sys/types.h>

#include <string>

#include "linux/socket_address.hpp"

namespace weft::linux {

/// Makes room for a new socket at `path`: removes one that nobody answers, and refuses with
/// EADDRINUSE where somebody does, with EEXIST where there is something else.
Result<void> clear_unix_path(const std::string& path, const SocketAddress& address);

/// Removes the path at its end, if it is still the one we made.
class OwnedUnixPath {
public:
    OwnedUnixPath() = default;
    explicit OwnedUnixPath(std::string path);
    OwnedUnixPath(OwnedUnixPath&& other) noexcept;
    OwnedUnixPath& operator=(OwnedUnixPath&& other) noexcept;
    ~OwnedUnixPath() { remove(); }

private:
    void remove();

    std::string path_;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace weft::linux
