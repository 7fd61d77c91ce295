// SPDX-License-Identifier: Apache-2.0
#include "linux/disk_files.hpp"

#include <sys/stat.h>

#include "linux/stable_folder.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {

Result<void> provide_disk_file(const std::string& path, std::uint64_t size) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                           S_IRUSR | S_IWUSR));
    if (!file.is_open()) return system_error(errno);
    struct stat facts {};
    if (::fstat(file.number(), &facts) < 0) return system_error(errno);
    if (!S_ISREG(facts.st_mode)) return Error{.code = Code::malformed};
    if (static_cast<std::uint64_t>(facts.st_size) < size &&
        ::ftruncate(file.number(), static_cast<off_t>(size)) < 0)
        return system_error(errno);
    if (::fsync(file.number()) < 0) return system_error(errno);
    if (const int failed = make_entry_stable(path)) return system_error(-failed);
    return {};
}

Result<void> remove_disk_file(const std::string& path) {
    if (::unlink(path.c_str()) < 0 && errno != ENOENT) return system_error(errno);
    if (const int failed = make_entry_stable(path)) return system_error(-failed);
    return {};
}

}  // namespace weft::linux
