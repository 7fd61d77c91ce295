// SPDX-License-Identifier: Apache-2.0
#include "linux/unix_path.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "linux/system_error.hpp"

namespace weft::linux {

Result<void> clear_unix_path(const std::string& path, const SocketAddress& address) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) < 0) {
        if (errno == ENOENT) return {};
        return system_error(errno);
    }
    if (!S_ISSOCK(found.st_mode)) return system_error(EEXIST);
    WEFT_TRY(auto probe, make_socket(address, {}));
    bool answered = ::connect(probe.number(), address.data(), address.size) == 0;
    // Only a refusal proves that nobody listens; a full backlog (EAGAIN) proves the opposite.
    if (answered || errno != ECONNREFUSED) return system_error(EADDRINUSE);
    if (::unlink(path.c_str()) < 0 && errno != ENOENT) return system_error(errno);
    return {};
}

OwnedUnixPath::OwnedUnixPath(std::string path) : path_(std::move(path)) {
    struct stat made {};
    if (::lstat(path_.c_str(), &made) < 0) path_.clear();
    device_ = made.st_dev;
    inode_ = made.st_ino;
}

OwnedUnixPath::OwnedUnixPath(OwnedUnixPath&& other) noexcept
    : path_(std::exchange(other.path_, {})), device_(other.device_), inode_(other.inode_) {}

OwnedUnixPath& OwnedUnixPath::operator=(OwnedUnixPath&& other) noexcept {
    if (this != &other) {
        remove();
        path_ = std::exchange(other.path_, {});
        device_ = other.device_;
        inode_ = other.inode_;
    }
    return *this;
}

void OwnedUnixPath::remove() {
    struct stat found {};
    if (path_.empty() || ::lstat(path_.c_str(), &found) < 0) return;
    if (found.st_dev == device_ && found.st_ino == inode_) ::unlink(path_.c_str());
}

}  // namespace weft::linux
