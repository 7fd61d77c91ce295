// SPDX-License-Identifier: Apache-2.0
#include "linux/file_io.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace weft::linux {
namespace {

std::int64_t with_errno(std::int64_t result) {
    return result < 0 ? -errno : result;
}

}  // namespace

std::int64_t perform(FileOperation& operation) {
    auto offset = static_cast<off_t>(operation.offset);
    auto length = static_cast<off_t>(operation.length);
    auto pieces = static_cast<int>(operation.memory.size());
    switch (operation.kind) {
        case FileOperation::Kind::read:
            return with_errno(::preadv2(operation.descriptor, operation.memory.data(), pieces,
                                        offset, operation.flags));
        case FileOperation::Kind::write:
            return with_errno(::pwritev2(operation.descriptor, operation.memory.data(), pieces,
                                         offset, operation.flags));
        case FileOperation::Kind::synchronize:
            return with_errno(::fdatasync(operation.descriptor));
        case FileOperation::Kind::allocate:
            return with_errno(::fallocate(operation.descriptor, operation.flags, offset, length));
        case FileOperation::Kind::advise:
            return -::posix_fadvise(operation.descriptor, offset, length, operation.flags);
        case FileOperation::Kind::call:
            return operation.on_thread();
    }
    return -EINVAL;
}

}  // namespace weft::linux
