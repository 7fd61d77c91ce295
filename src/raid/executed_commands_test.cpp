// SPDX-License-Identifier: Apache-2.0
#include "raid/executed_commands.hpp"

#include <gtest/gtest.h>

#include "raid/limits.hpp"

namespace weft::raid {
namespace {

wire::HostIdentity host(std::uint64_t number) {
    wire::HostIdentity identity;
    identity.octets[0] = static_cast<std::uint8_t>(1 + number % 255);
    identity.octets[1] = static_cast<std::uint8_t>(number / 255);
    return identity;
}

TEST(ExecutedCommands, KnowsWhatWasNotedAndOfWhom) {
    ExecutedCommands executed;
    executed.note(host(1), 7);
    EXPECT_TRUE(executed.contains(host(1), 7));
    EXPECT_FALSE(executed.contains(host(1), 8));
    EXPECT_FALSE(executed.contains(host(2), 7));
}

TEST(ExecutedCommands, KeepsNothingOfNobody) {
    ExecutedCommands executed;
    executed.note({}, 7);
    EXPECT_FALSE(executed.contains({}, 7));
    EXPECT_EQ(executed.hosts(), 0u);
}

TEST(ExecutedCommands, KeepsTheHighestNumbersOfAHost) {
    ExecutedCommands executed;
    const std::uint64_t many = 3 * limits::executed_commands;
    for (std::uint64_t command = 1; command <= many; ++command) executed.note(host(1), command);
    EXPECT_TRUE(executed.contains(host(1), many));
    EXPECT_TRUE(executed.contains(host(1), many - limits::executed_commands + 1));
    EXPECT_FALSE(executed.contains(host(1), many - limits::executed_commands));
}

TEST(ExecutedCommands, KeepsTheHostsThatWroteLast) {
    ExecutedCommands executed;
    for (std::uint64_t n = 0; n < limits::executed_hosts; ++n) executed.note(host(n), 1);
    executed.note(host(0), 2);  // and is not the one longest silent any more
    executed.note(host(limits::executed_hosts), 1);
    EXPECT_EQ(executed.hosts(), limits::executed_hosts);
    EXPECT_TRUE(executed.contains(host(0), 1));
    EXPECT_FALSE(executed.contains(host(1), 1));
    EXPECT_TRUE(executed.contains(host(limits::executed_hosts), 1));
}

TEST(ExecutedCommands, GivesOutTheHighestOfThoseWhoWroteLast) {
    ExecutedCommands executed;
    EXPECT_TRUE(executed.latest(10).empty());
    executed.note(host(9), 7);
    for (std::uint64_t command = 1; command <= 2 * limits::requests; ++command)
        executed.note(host(2), command);
    executed.note(host(1), 5);
    const std::vector<ExecutedCommands::Note> expected{
        {host(2), 2 * limits::requests - 1}, {host(2), 2 * limits::requests}, {host(1), 5}};
    EXPECT_EQ(executed.latest(3), expected);
    const auto all = executed.latest(8192);
    EXPECT_EQ(all.size(), limits::requests + 2) << "of one no more than that";
    EXPECT_EQ(all.front(), ExecutedCommands::Note(host(9), 7)) << "long ago";
    EXPECT_EQ(all.back(), ExecutedCommands::Note(host(1), 5));
}

}  // namespace
}  // namespace weft::raid
