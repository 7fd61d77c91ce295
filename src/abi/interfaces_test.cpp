// SPDX-License-Identifier: Apache-2.0
#include "abi/interfaces.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace weft::abi {
namespace {

TEST(Interfaces, HaveALoopbackWithItsAddress) {
    auto all = *list_interfaces();
    auto found = std::find_if(all.begin(), all.end(), [](auto& each) { return each.is_loopback; });
    ASSERT_NE(found, all.end());
    EXPECT_GT(found->index, 0u);
    EXPECT_GT(found->mtu, 0u);
    if (found->is_usable()) {
        EXPECT_TRUE(std::count(found->addresses.begin(), found->addresses.end(), "127.0.0.1"));
    }
}

TEST(Interfaces, ComeInAnOrderThatPutsAUsableNetworkFirst) {
    auto all = *list_interfaces();
    auto place = [](const Interface& each) {
        return std::tuple(!each.is_usable(), each.is_loopback, each.index);
    };
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                               [&](auto& a, auto& b) { return place(a) < place(b); }));
}

}  // namespace
}  // namespace weft::abi
