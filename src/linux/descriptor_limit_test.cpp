// SPDX-License-Identifier: Apache-2.0
#include "linux/descriptor_limit.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace weft::linux {
namespace {

TEST(DescriptorLimit, IsRaisedToWhatIsAllowed) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit low{64, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    EXPECT_EQ(raise_descriptor_limit(), before.rlim_max);
    rlimit after{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
    EXPECT_EQ(after.rlim_cur, before.rlim_max);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace weft::linux
