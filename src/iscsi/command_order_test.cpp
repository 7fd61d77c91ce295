// SPDX-License-Identifier: Apache-2.0
#include "iscsi/command_order.hpp"

#include <gtest/gtest.h>

namespace weft::iscsi {
namespace {

using Window = CommandOrder<int>;

std::vector<int> turns(Window& window) {
    std::vector<int> taken;
    while (auto item = window.next()) taken.push_back(*item);
    return taken;
}

TEST(CommandOrder, lets_commands_begin_in_the_order_of_their_numbers) {
    Window window(10, 4);
    window.enter(12, 2);
    window.enter(11, 1);
    EXPECT_EQ(turns(window), std::vector<int>{});
    window.enter(10, 0);
    EXPECT_EQ(turns(window), (std::vector{0, 1, 2}));
    EXPECT_EQ(window.expected(), 13u);
}

TEST(CommandOrder, admits_what_lies_inside_and_is_not_here) {
    Window window(10, 4);
    EXPECT_FALSE(window.admits(9));
    EXPECT_TRUE(window.admits(10));
    EXPECT_TRUE(window.admits(13));
    EXPECT_FALSE(window.admits(14));
    window.enter(12, 2);
    EXPECT_FALSE(window.admits(12));
}

TEST(CommandOrder, stays_where_it_was_told_until_there_is_room) {
    Window window(10, 2);
    window.enter(10, 0);
    window.enter(11, 1);
    EXPECT_EQ(turns(window).size(), 2u);
    EXPECT_EQ(window.open(), 0u);
    EXPECT_FALSE(window.admits(12));
    window.offer(1);
    EXPECT_EQ(window.max(), 12u);
    EXPECT_TRUE(window.admits(12));
    EXPECT_FALSE(window.admits(13));
}

TEST(CommandOrder, is_never_taken_back_nor_wider_than_its_places) {
    Window window(10, 4);
    window.offer(1);
    EXPECT_EQ(window.max(), 13u);
    window.offer(100);
    EXPECT_EQ(window.max(), 13u);
}

TEST(CommandOrder, goes_on_where_numbers_begin_anew) {
    Window window(0xfffffffe, 4);
    EXPECT_EQ(window.max(), 1u);
    for (std::uint32_t number : {0u, 0xffffffffu, 0xfffffffeu})
        window.enter(number, static_cast<int>(number + 2));
    EXPECT_EQ(turns(window), (std::vector{0, 1, 2}));
    EXPECT_EQ(window.expected(), 1u);
    window.offer(4);
    EXPECT_EQ(window.max(), 4u);
}

}  // namespace
}  // namespace weft::iscsi
