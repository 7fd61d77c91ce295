// SPDX-License-Identifier: Apache-2.0
// What libibverbs knows of the process and the system around it: fork(), and files of sysfs.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" {

// No page is pinned and none is written by a device, so there is nothing to keep from a child.
int ibv_fork_init() {
    return 0;
}
ibv_fork_status ibv_is_fork_initialized() {
    return IBV_FORK_UNNEEDED;
}
int ibv_dontfork_range(void*, std::size_t) {
    return 0;
}
int ibv_dofork_range(void*, std::size_t) {
    return 0;
}

const char* ibv_get_sysfs_path() {
    static const std::string path = [] {
        const char* chosen = ::secure_getenv("SYSFS_PATH");
        std::string found = chosen ? chosen : "/sys";
        while (found.size() > 1 && found.back() == '/') found.pop_back();
        return found;
    }();
    return path.c_str();
}

/// The length of what was read, without the last line's end; the text is terminated.
int ibv_read_sysfs_file(const char* folder, const char* file, char* to, std::size_t size) {
    if (size == 0) return -1;
    auto path = std::string(folder) + '/' + file;
    int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened < 0) return -1;
    auto length = ::read(opened, to, size - 1);
    ::close(opened);
    if (length < 0) return -1;
    if (length > 0 && to[length - 1] == '\n') --length;
    to[length] = 0;
    return static_cast<int>(length);
}

}  // extern "C"
