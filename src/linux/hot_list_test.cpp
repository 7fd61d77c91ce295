// SPDX-License-Identifier: Apache-2.0
#include "linux/hot_list.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace weft::linux {
namespace {

struct Item final : HotItem {
    int tries = 0;
    std::function<void()> on_try = [] {};
    void try_now() override {
        ++tries;
        on_try();
    }
    void leave() { cool_down(); }
};

TEST(HotList, TriesEachOnce) {
    HotList list;
    EXPECT_EQ(list.try_all(), 0u);
    Item one, two, never_added;
    list.add(one);
    list.add(two);
    list.add(one);
    EXPECT_EQ(list.try_all(), 2u);
    EXPECT_EQ(one.tries, 1);
    EXPECT_EQ(two.tries, 1);
    EXPECT_EQ(never_added.tries, 0);
}

TEST(HotList, ForgetsWhoLeavesOrIsDestroyed) {
    HotList list;
    Item leaves;
    list.add(leaves);
    leaves.leave();
    EXPECT_FALSE(leaves.is_hot());
    {
        Item destroyed;
        list.add(destroyed);
    }
    EXPECT_EQ(list.try_all(), 0u);
}

TEST(HotList, LeavesASilentOneToOthers) {
    HotList list;
    Item silent, busy;
    list.add(silent);
    list.add(busy);
    busy.on_try = [&] { list.add(busy); };
    for (unsigned i = 0; i <= limits::fruitless_tries_while_hot; ++i) list.try_all();
    EXPECT_FALSE(silent.is_hot());
    EXPECT_TRUE(busy.is_hot());
    EXPECT_EQ(silent.tries, static_cast<int>(limits::fruitless_tries_while_hot));
}

TEST(HotList, GivesANewcomerThePlaceOfWhoWaitedLongest) {
    HotList list;
    std::vector<Item> items(limits::hot_connections);
    for (auto& item : items) list.add(item);
    list.try_all();
    for (std::size_t i = 0; i < items.size(); ++i)
        if (i != 3) list.add(items[i]);
    Item newcomer;
    list.add(newcomer);
    EXPECT_TRUE(newcomer.is_hot());
    EXPECT_EQ(list.try_all(), limits::hot_connections);
    for (std::size_t i = 0; i < items.size(); ++i)
        EXPECT_EQ(items[i].is_hot(), i != 3) << "number " << i;
}

TEST(HotList, MayChangeWhileItIsTried) {
    HotList list;
    Item first, second, third;
    list.add(first);
    list.add(second);
    first.on_try = [&] {
        first.leave();
        second.leave();
        list.add(third);
    };
    list.try_all();
    EXPECT_EQ(second.tries, 0);
    list.try_all();
    EXPECT_EQ(first.tries, 1);
    EXPECT_GE(third.tries, 1);
}

}  // namespace
}  // namespace weft::linux
