// SPDX-License-Identifier: Apache-2.0
#include "verbs/waiting_list.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace weft::verbs {
namespace {

struct Guest final : Waiting {
    explicit Guest(int which) : number(which) {}
    int number;
};

std::vector<int> drain(WaitingList<Guest>& list) {
    std::vector<int> numbers;
    while (!list.empty()) numbers.push_back(list.pop_front().number);
    return numbers;
}

TEST(WaitingList, ServesWhoCameFirst) {
    WaitingList<Guest> list;
    Guest one(1), two(2), three(3);
    for (auto* each : {&two, &one, &three, &two}) list.add(*each);
    EXPECT_TRUE(two.is_waiting());
    EXPECT_EQ(drain(list), (std::vector{2, 1, 3})) << "who came twice keeps the first place";
    EXPECT_FALSE(two.is_waiting());
}

TEST(WaitingList, LetsGuestsGoFromAnywhere) {
    WaitingList<Guest> list;
    Guest one(1), three(3), four(4);
    {
        Guest two(2);
        for (auto* each : {&one, &two, &three, &four}) list.add(*each);
    }
    one.stop_waiting();
    four.stop_waiting();
    four.stop_waiting();
    EXPECT_EQ(drain(list), std::vector{3});
}

TEST(WaitingList, TakesOverAllOfAnother) {
    WaitingList<Guest> list, other;
    list.take_all(other);
    EXPECT_TRUE(list.empty());
    Guest one(1), two(2), late(3);
    other.add(one);
    other.add(two);
    list.take_all(other);
    EXPECT_TRUE(other.empty());
    other.add(late);
    EXPECT_EQ(drain(list), (std::vector{1, 2}));
    EXPECT_EQ(drain(other), std::vector{3});
}

TEST(WaitingList, MayEndBeforeItsGuests) {
    Guest one(1), two(2);
    {
        WaitingList<Guest> list;
        list.add(one);
        list.add(two);
    }
    one.stop_waiting();
    EXPECT_FALSE(one.is_waiting());
}

}  // namespace
}  // namespace weft::verbs
