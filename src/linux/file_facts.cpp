// SPDX-License-Identifier: Apache-2.0
#include "linux/file_facts.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/bytes.hpp"
#include "linux/system_error.hpp"

namespace weft::linux {
namespace {

/// A number the kernel publishes about a device's queue. A partition's queue is its disk's.
std::uint64_t queue_attribute(dev_t device, const std::string& name) {
    auto folder =
        "/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device));
    for (const char* queue : {"/queue/", "/../queue/"}) {
        std::uint64_t value = 0;
        if (std::ifstream(folder + queue + name) >> value) return value;
    }
    return 0;
}

/// What O_DIRECT asks of offsets and memory. Kernels before 6.1 do not tell: a page suits all.
void learn_alignment(int descriptor, FileFacts& facts) {
    std::uint32_t offset = 4096, memory = 4096;
#ifdef STATX_DIOALIGN
    struct ::statx status {};
    if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
        (status.stx_mask & STATX_DIOALIGN) && status.stx_dio_offset_align != 0) {
        offset = status.stx_dio_offset_align;
        memory = status.stx_dio_mem_align;
    }
#endif
    facts.traits.minimum_block = offset;
    facts.memory_alignment = memory;
}

Result<void> learn_block_device(int descriptor, const struct stat& status, FileFacts& facts) {
    std::uint64_t size = 0;
    int sector = 512, read_only = 0;
    unsigned physical = 4096;
    if (::ioctl(descriptor, BLKGETSIZE64, &size) < 0) return system_error(errno);
    ::ioctl(descriptor, BLKSSZGET, &sector);
    ::ioctl(descriptor, BLKPBSZGET, &physical);
    ::ioctl(descriptor, BLKROGET, &read_only);
    auto& traits = facts.traits;
    facts.is_block_device = true;
    facts.sector = static_cast<std::uint32_t>(sector);
    traits.size = size;
    traits.preferred_block = std::max(physical, 4096u);
    traits.read_only |= read_only != 0;
    traits.rotational = queue_attribute(status.st_rdev, "rotational") != 0;
    traits.can_trim = queue_attribute(status.st_rdev, "discard_max_bytes") != 0;
    traits.can_write_zeroes = queue_attribute(status.st_rdev, "write_zeroes_max_bytes") != 0;
    return {};
}

bool makes_holes(int descriptor, std::uint64_t at) {
    constexpr int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    return ::fallocate(descriptor, mode, static_cast<off_t>(at), 4096) == 0;
}

/// A file without a name beside the disk's own, on the same file system. None where we may not
/// write there, or the file system has no such files.
Descriptor nameless_neighbour(const std::string& path, const struct stat& status) {
    std::error_code failed;
    auto folder = std::filesystem::canonical(path, failed).parent_path();
    if (failed) return {};
    Descriptor made(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    struct stat its {};
    if (!made.is_open() || ::fstat(made.number(), &its) < 0 || its.st_dev != status.st_dev)
        return {};
    return made;
}

/// Whether files of this file system can have holes made in them, which only trying tells. Tried
/// on a file of our own: a disk opened for reading cannot be tried, and in one opened for writing
/// even a hole beyond its end changes the time it was last written.
bool learn_holes(const std::string& path, int descriptor, const struct stat& status,
                 const BlockTraits& traits) {
    if (auto neighbour = nameless_neighbour(path, status); neighbour.is_open())
        return makes_holes(neighbour.number(), 0);
    // Read-only where we can make no file either: claim nothing.
    return !traits.read_only && makes_holes(descriptor, round_up(traits.size, 1 << 20));
}

void learn_regular_file(const std::string& path, int descriptor, const struct stat& status,
                        FileFacts& facts) {
    auto& traits = facts.traits;
    traits.size = static_cast<std::uint64_t>(status.st_size);
    traits.preferred_block = static_cast<std::uint32_t>(status.st_blksize);
    traits.rotational = queue_attribute(status.st_dev, "rotational") != 0;
    traits.can_report_status = true;
    traits.can_trim = traits.can_write_zeroes = learn_holes(path, descriptor, status, traits);
}

}  // namespace

Result<OpenedFile> open_file(const DiskOptions& options) {
    // Without O_NONBLOCK, opening a FIFO would wait for somebody at its other end. For files and
    // block devices it means nothing.
    int flags = O_CLOEXEC | O_NONBLOCK | (options.read_only ? O_RDONLY : O_RDWR);
    if (options.direct) flags |= O_DIRECT;
    OpenedFile opened{Descriptor(::open(options.path.c_str(), flags)), {}};
    if (!opened.descriptor.is_open()) return system_error(errno);
    struct stat status {};
    int descriptor = opened.descriptor.number();
    if (::fstat(descriptor, &status) < 0) return system_error(errno);

    auto& facts = opened.facts;
    facts.traits.read_only = options.read_only;
    facts.direct = options.direct;
    if (S_ISBLK(status.st_mode)) {
        if (auto done = learn_block_device(descriptor, status, facts); !done) return done.error();
    } else if (S_ISREG(status.st_mode)) {
        learn_regular_file(options.path, descriptor, status, facts);
    } else {
        return Error{.code = Code::unsupported, .detail = ENOTBLK};
    }
    if (facts.direct) {
        learn_alignment(descriptor, facts);
        auto& traits = facts.traits;
        traits.preferred_block = std::max(traits.preferred_block, traits.minimum_block);
        // A last half block cannot be reached past the page cache.
        traits.size = round_down(traits.size, traits.minimum_block);
    }
    return opened;
}

}  // namespace weft::linux
