// SPDX-License-Identifier: Apache-2.0
// The rule, in every case there is: each box of three knows nothing, has prepared, has committed or
// aborted, and is a member or not. What must hold is said by what may have happened before, not by
// the rule over again.
#include "raid/in_doubt.hpp"

#include <gtest/gtest.h>

#include <array>

namespace weft::raid {
namespace {

using enum Knowledge;
using wire::ArrayTransactionState;

constexpr wire::TransactionNumber number_of_it{5};

wire::ArrayRecalled record(Knowledge state, Mask participants) {
    return {.transaction = number_of_it,
            .generation = {},
            .host = {},
            .host_identity = {},
            .host_command = 31,
            .home = 4096,
            .length = 8192,
            .participants = participants,
            .state = ArrayTransactionState{static_cast<std::uint8_t>(state)}};
}

std::map<std::uint8_t, Recalled> recalls(const std::array<Knowledge, 3>& known, Mask members) {
    std::map<std::uint8_t, Recalled> all;
    for (std::uint8_t place = 0; place < 3; ++place) {
        if (!contains(members, place)) continue;
        all[place].settled = wire::TransactionNumber{1};
        if (known[place] != nothing) all[place].transactions.push_back(record(known[place], 7));
    }
    return all;
}

/// Every knowledge of three boxes, with every set of members that is not empty.
template <class Check>
void for_every_case(Check check) {
    constexpr std::array kinds{nothing, prepared, committed, aborted};
    for (Knowledge a : kinds)
        for (Knowledge b : kinds)
            for (Knowledge c : kinds)
                for (Mask members = 1; members < 8; ++members) {
                    const std::array known{a, b, c};
                    std::array<int, 4> count{};
                    for (std::uint8_t place = 0; place < 3; ++place)
                        if (contains(members, place))
                            ++count[static_cast<std::size_t>(known[place])];
                    check(known, members, count);
                }
}

TEST(InDoubt, KnowsTheStatesByTheirNumbersOnTheWire) {
    EXPECT_EQ(static_cast<int>(ArrayTransactionState::prepared), static_cast<int>(prepared));
    EXPECT_EQ(static_cast<int>(ArrayTransactionState::committed), static_cast<int>(committed));
    EXPECT_EQ(static_cast<int>(ArrayTransactionState::aborted), static_cast<int>(aborted));
}

TEST(InDoubt, CommitsWhatMayHaveBeenAnsweredAndUndoesWhatCannotHave) {
    for_every_case([](const auto& known, Mask members, const std::array<int, 4>& count) {
        const auto all = resolve(members, recalls(known, members));
        const int heard_of = count[1] + count[2] + count[3];
        ASSERT_EQ(all.size(), heard_of > 0 ? 1u : 0u);
        if (all.empty() || (count[2] > 0 && count[3] > 0)) return;  // that cannot be
        const bool heard_commit = count[2] > 0, heard_abort = count[3] > 0;
        // Answered: every participant had prepared, so no member knows nothing of it.
        const bool may_be_answered = count[0] == 0 && !heard_abort;
        EXPECT_EQ(all[0].commits, heard_commit || may_be_answered);
        for (std::uint8_t place = 0; place < 3; ++place)
            EXPECT_EQ(contains(all[0].to_tell, place),
                      contains(members, place) && known[place] == prepared);
    });
}

TEST(InDoubt, DecidesTheSameAgainHoweverFarTheFirstDecisionCame) {
    for_every_case([](const auto& known, Mask members, const std::array<int, 4>& count) {
        if (count[2] > 0 && count[3] > 0) return;
        const auto first = resolve(members, recalls(known, members));
        if (first.empty()) return;
        for (Mask told = 0; told < 8; ++told) {
            auto then = known;
            for (std::uint8_t place = 0; place < 3; ++place)
                if (contains(told & first[0].to_tell, place))
                    then[place] = first[0].commits ? committed : aborted;
            const auto second = resolve(members, recalls(then, members));
            EXPECT_EQ(second[0].commits, first[0].commits);
            EXPECT_EQ(second[0].to_tell, first[0].to_tell & ~told);
            // And when one more is lost meanwhile, those who heard the first are not contradicted.
            for (Mask left = 1; left < 8; ++left) {
                const Mask hearing = told & first[0].to_tell & members & left;
                if ((left & ~members) != 0 || hearing == 0) continue;
                const auto third = resolve(left, recalls(then, left));
                EXPECT_EQ(third[0].commits, first[0].commits);
            }
        }
    });
}

TEST(InDoubt, DoesNotAskWhoIsNoMember) {
    // Answered with all three; one was then counted out, and has forgotten what it had.
    const auto all = resolve(3, recalls({prepared, prepared, nothing}, 3));
    ASSERT_EQ(all.size(), 1u);
    EXPECT_TRUE(all[0].commits);
    EXPECT_EQ(all[0].participants, 7u) << "it lacks this";
    EXPECT_EQ(all[0].home, 4096u);
    EXPECT_EQ(all[0].home_end, 12288u);
    EXPECT_EQ(all[0].host_command, 31u);
}

TEST(InDoubt, UndoesCopiesThatAreNotTheSame) {
    auto recalled = recalls({prepared, prepared, prepared}, 7);
    for (auto& [place, each] : recalled) each.transactions[0].sum = 7;
    EXPECT_TRUE(resolve(7, recalled, 7)[0].commits);
    recalled[1].transactions[0].sum = 8;
    EXPECT_FALSE(resolve(7, recalled, 7)[0].commits) << "no controller has answered that";
    EXPECT_TRUE(resolve(7, recalled, 5)[0].commits) << "that one is no copy of all";
    EXPECT_TRUE(resolve(7, recalled)[0].commits) << "they need not be: it is no mirror";
    recalled[1].transactions[0].sum = 0;
    EXPECT_TRUE(resolve(7, recalled, 7)[0].commits) << "it does not say";
    recalled[1].transactions[0].sum = 8;
    recalled[2].transactions[0].state = ArrayTransactionState::committed;
    EXPECT_TRUE(resolve(7, recalled, 7)[0].commits) << "it was decided";
}

TEST(InDoubt, UndoesWhatWasOnlyMadeAnewUnlessItWasDecided) {
    auto recalled = recalls({prepared, prepared, nothing}, 3);
    recalled[0].transactions[0].restores = recalled[1].transactions[0].restores = true;
    EXPECT_FALSE(resolve(3, recalled)[0].commits);
    EXPECT_EQ(resolve(3, recalled)[0].to_tell, 3u);
    recalled[0].transactions[0].state = ArrayTransactionState::committed;
    EXPECT_TRUE(resolve(3, recalled)[0].commits);
}

TEST(InDoubt, UndoesWhatAMemberHasNotThoughItSaysThatAllIsSettled) {
    // That is said only when all members have ended it; so who has it still was no member then.
    auto recalled = recalls({prepared, nothing, nothing}, 3);
    recalled[1].settled = wire::TransactionNumber{100};
    EXPECT_FALSE(resolve(3, recalled)[0].commits);
}

TEST(InDoubt, NeedsNoWordOfMembersThatTakeNoPart) {
    std::map<std::uint8_t, Recalled> recalled;
    for (std::uint8_t place = 0; place < 3; ++place) recalled[place] = {};
    recalled[0].transactions.push_back(record(prepared, 3));
    recalled[1].transactions.push_back(record(prepared, 3));
    EXPECT_TRUE(resolve(7, recalled)[0].commits);
    recalled[1].transactions.clear();
    EXPECT_FALSE(resolve(7, recalled)[0].commits);
}

TEST(InDoubt, TakesAnAbortThatCameBeforeTheOrderForWhatItIs) {
    // A box that never heard more of it than that it is over knows no participants.
    std::map<std::uint8_t, Recalled> recalled;
    recalled[0].transactions.push_back(record(prepared, 3));
    recalled[1].transactions.push_back(record(aborted, 0));
    const auto all = resolve(3, recalled);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_FALSE(all[0].commits);
    EXPECT_EQ(all[0].to_tell, 1u);
}

TEST(InDoubt, DecidesFromTheOldestOn) {
    std::map<std::uint8_t, Recalled> recalled;
    for (std::uint64_t number : {9, 3, 7}) {
        auto one = record(prepared, 1);
        one.transaction = wire::TransactionNumber{number};
        recalled[0].transactions.push_back(one);
    }
    const auto all = resolve(1, recalled);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].transaction, wire::TransactionNumber{3});
    EXPECT_EQ(all[2].transaction, wire::TransactionNumber{9});
}

}  // namespace
}  // namespace weft::raid
