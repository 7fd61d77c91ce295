// SPDX-License-Identifier: Apache-2.0
#include "linux/system_error.hpp"

#include <cerrno>

namespace weft::linux {
namespace {

Error with_detail(Code code, int number) {
    return {.code = code, .detail = static_cast<std::uint16_t>(number)};
}

Code code_of(int number) {
    switch (number) {
        case ENOENT:
        case ENOTDIR:
        case ENODEV:
        case ENXIO:
            return Code::not_found;
        case EACCES:
        case EPERM:
        case EROFS:
            return Code::access_denied;
        case ENOSPC:
        case EDQUOT:
        case EMFILE:
        case ENFILE:
        case ENOMEM:
        case ENOBUFS:
        case EAGAIN:
            return Code::exhausted;
        case EPIPE:
        case ECONNRESET:
        case ECONNABORTED:
        case ENOTCONN:
            return Code::disconnected;
        case ETIMEDOUT:
            return Code::timed_out;
        case EOPNOTSUPP:
        case ENOSYS:
            return Code::unsupported;
        default:
            return Code::io_failed;
    }
}

}  // namespace

Error system_error(int number) {
    return with_detail(code_of(number), number);
}

Error disk_error(int number) {
    switch (number) {
        case ENOSPC:
        case EDQUOT:
            return with_detail(Code::exhausted, number);
        case EOPNOTSUPP:
        case ENOSYS:
            return with_detail(Code::unsupported, number);
        default:
            return with_detail(Code::io_failed, number);
    }
}

Error synchronization_error(int number) {
    auto error = disk_error(number);
    if (error.code == Code::exhausted) error.code = Code::io_failed;
    return error;
}

}  // namespace weft::linux
