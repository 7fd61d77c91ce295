// SPDX-License-Identifier: Apache-2.0
#include "linux/system_error.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace weft::linux {
namespace {

TEST(SystemError, SaysWhatACallerCanDoAndKeepsTheNumber) {
    EXPECT_EQ(system_error(ENOENT), (Error{.code = Code::not_found, .detail = ENOENT}));
    EXPECT_EQ(system_error(EACCES), (Error{.code = Code::access_denied, .detail = EACCES}));
    EXPECT_EQ(system_error(EMFILE), (Error{.code = Code::exhausted, .detail = EMFILE}));
    EXPECT_EQ(system_error(EPIPE), (Error{.code = Code::disconnected, .detail = EPIPE}));
    EXPECT_EQ(system_error(ETIMEDOUT), (Error{.code = Code::timed_out, .detail = ETIMEDOUT}));
    EXPECT_EQ(system_error(ENOSYS), (Error{.code = Code::unsupported, .detail = ENOSYS}));
    EXPECT_EQ(system_error(ECONNREFUSED), (Error{.code = Code::io_failed, .detail = ECONNREFUSED}));
}

TEST(DiskError, IsAFailedDiskUnlessFullOrUnable) {
    EXPECT_EQ(disk_error(ENOSPC), (Error{.code = Code::exhausted, .detail = ENOSPC}));
    EXPECT_EQ(disk_error(EDQUOT), (Error{.code = Code::exhausted, .detail = EDQUOT}));
    EXPECT_EQ(disk_error(EOPNOTSUPP), (Error{.code = Code::unsupported, .detail = EOPNOTSUPP}));
    for (int number : {EIO, EPERM, EFBIG, ENOENT, EPIPE})
        EXPECT_EQ(disk_error(number).code, Code::io_failed) << number;
}

TEST(SynchronizationError, IsNeverAFullDisk) {
    EXPECT_EQ(synchronization_error(ENOSPC), (Error{.code = Code::io_failed, .detail = ENOSPC}));
    EXPECT_EQ(synchronization_error(EDQUOT), (Error{.code = Code::io_failed, .detail = EDQUOT}));
    EXPECT_EQ(synchronization_error(EIO), disk_error(EIO));
}

}  // namespace
}  // namespace weft::linux
