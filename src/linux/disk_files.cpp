// SPDX-License-Identifier: Apache-2.0
#include "linux/disk_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "linux/stable_folder.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {

namespace {

/// With all its room at once, so that none is lacking later. A file system that cannot promise it
/// gives room as it is written to.
int grow(int file, off_t from, off_t to) {
    int failed = 0;
    do failed = ::fallocate(file, 0, from, to - from) < 0 ? -errno : 0;
    while (failed == -EINTR);
    if (failed == -EOPNOTSUPP || failed == -ENOSYS) failed = ::ftruncate(file, to) < 0 ? -errno : 0;
    // What it got of it before the room ended is for others to have. If that fails, too, there is
    // nothing more to be done: it is the first failure that is told.
    if (failed != 0 && ::ftruncate(file, from) < 0) return failed;
    return failed;
}

}  // namespace

Result<void> provide_disk_file(const std::string& path, std::uint64_t size) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                           S_IRUSR | S_IWUSR));
    if (!file.is_open()) return system_error(errno);
    struct stat facts {};
    if (::fstat(file.number(), &facts) < 0) return system_error(errno);
    if (!S_ISREG(facts.st_mode)) return Error{.code = Code::malformed};
    if (static_cast<std::uint64_t>(facts.st_size) < size)
        if (const int failed = grow(file.number(), facts.st_size, static_cast<off_t>(size)))
            return system_error(-failed);
    if (::fsync(file.number()) < 0) return system_error(errno);
    if (const int failed = make_entry_stable(path)) return system_error(-failed);
    return {};
}

std::optional<std::uint64_t> room_for_disk_files(const std::string& folder) {
    struct statvfs facts {};
    if (::statvfs(folder.c_str(), &facts) < 0) return std::nullopt;
    return std::uint64_t{facts.f_bavail} * facts.f_frsize;
}

Result<void> remove_disk_file(const std::string& path) {
    if (::unlink(path.c_str()) < 0 && errno != ENOENT) return system_error(errno);
    if (const int failed = make_entry_stable(path)) return system_error(-failed);
    return {};
}

}  // namespace weft::linux
