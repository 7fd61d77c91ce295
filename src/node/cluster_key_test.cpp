// SPDX-License-Identifier: Apache-2.0
#include "node/cluster_key.hpp"

#include <gtest/gtest.h>

namespace weft::node {
namespace {

TEST(ClusterKey, MakesSecretsThatDifferByKeyAndByWhoseTheyAre) {
    const auto one = controller_credentials("0123456789abcdef");
    EXPECT_EQ(one, controller_credentials("0123456789abcdef"));
    EXPECT_NE(one.secret, controller_credentials("0123456789abcdee").secret);
    EXPECT_NE(one.secret, box_credentials("0123456789abcdef").secret)
        << "an answer could be sent back as a question's";
    EXPECT_TRUE(iscsi::long_enough(one.secret));
    // HMAC-SHA256 as Python's hmac module has it.
    EXPECT_EQ(one.secret, "653d955f26728bd22a27571febaa4e6f3c01c0bc385a8790f0729ce99307e3eb");
}

}  // namespace
}  // namespace weft::node
