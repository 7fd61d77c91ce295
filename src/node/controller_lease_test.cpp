// SPDX-License-Identifier: Apache-2.0
#include "node/controller_lease.hpp"

#include <gtest/gtest.h>

#include "node/memory_metadata_store.hpp"
#include "support/manual_world.hpp"

namespace weft::node {
namespace {

using namespace std::chrono_literals;

/// A candidate on a machine of its own: its clock has nothing to do with anybody else's.
class Candidate {
public:
    Candidate(MemoryRecords& records, ControllerLease::Options options, Duration clock_ahead)
        : store(world, records),
          lease(world, store, options,
                {.won = [this](Result<wire::Epoch> epoch) { won = epoch; },
                 .news = [this](const std::string& sentence) { news.push_back(sentence); },
                 .doubtful = [this](bool doubtful) { doubts.push_back(doubtful); },
                 .deposed = [this] { ++deposed; }}) {
        world.advance(clock_ahead);
    }
    bool in_office() const { return won && *won; }

    test::ManualWorld world;
    MemoryMetadataStore store;
    ControllerLease lease;
    std::optional<Result<wire::Epoch>> won;
    std::vector<std::string> news;
    std::vector<bool> doubts;
    unsigned deposed = 0;
};

class ControllerLeaseTest : public testing::Test {
protected:
    static constexpr auto lease = 5s;

    /// Both live on for that long.
    void pass(Duration span) {
        for (Duration gone{}; gone < span; gone += 10ms)
            for (auto* each : {&one, &other})
                if (each != paused) each->world.advance(10ms);
    }
    /// How long it takes, in steps of 10 ms.
    Duration until(const auto& done) {
        Duration gone{};
        while (!done() && gone < 60s) {
            pass(10ms);
            gone += 10ms;
        }
        EXPECT_TRUE(done());
        return gone;
    }

    MemoryRecords records;
    Candidate one{records, {.lease = lease, .standby = false}, 0s};
    Candidate other{records, {.lease = lease, .standby = true}, 1000h};
    Candidate* paused = nullptr;
};

TEST_F(ControllerLeaseTest, TakesAnOfficeThatIsFreeAtOnce) {
    one.lease.seek("at home");
    EXPECT_LE(until([&] { return one.in_office(); }), 50ms);
    EXPECT_TRUE(one.lease.holds());
    EXPECT_EQ(records.office.holder, "at home");
}

TEST_F(ControllerLeaseTest, WaitsAsLongAsTheOtherRenewsAndSaysForWhom) {
    one.lease.seek("at home");
    pass(1s);
    other.lease.seek("away");
    pass(60s);
    EXPECT_FALSE(other.won);
    EXPECT_TRUE(one.lease.holds());
    EXPECT_TRUE(one.doubts.empty());
    ASSERT_EQ(other.news.size(), 1u) << "the same is said once";
    EXPECT_NE(other.news.front().find("at home"), std::string::npos);
    EXPECT_EQ(other.lease.rival().epoch, *one.won ? **one.won : wire::Epoch{});
}

TEST_F(ControllerLeaseTest, TakesOverWhenTheOtherHasBeenSilentForItsLease) {
    one.lease.seek("at home");
    pass(1s);
    other.lease.seek("away");
    pass(3s);
    paused = &one;
    const auto took = until([&] { return other.in_office(); });
    EXPECT_GE(took, 4s) << "its last renewal is at most a fifth of the lease old";
    EXPECT_LE(took, 6s);
    EXPECT_GT(**other.won, **one.won);
}

/// Of the failure table, docs/failures.md: there is no other clock than one that only goes forward,
/// and what was paused, or whose clock leaps, is unsure at once.
using FailureTableLease = ControllerLeaseTest;
TEST_F(FailureTableLease, Case33_AClockLeapsAhead_WhoseItIsDoesNothingMore) {
    one.lease.seek("at home");
    pass(1s);
    other.lease.seek("away");
    paused = &one;
    until([&] { return other.in_office(); });
    // Its clock went on while it did not: it is unsure before it has heard anything.
    EXPECT_TRUE(one.lease.holds()) << "its clock stands still in this test so far";
    paused = nullptr;
    one.store.set_reachable(false);
    one.world.advance(20s);
    EXPECT_FALSE(one.lease.holds());
    EXPECT_EQ(one.lease.remaining_ms(), 0u);
    EXPECT_EQ(one.doubts, std::vector<bool>{true});
    one.store.set_reachable(true);
    pass(2s);
    EXPECT_EQ(one.deposed, 1u);
    EXPECT_EQ(one.lease.state(), ControllerLease::State::deposed);
    EXPECT_EQ(records.office.epoch, **other.won);
}

TEST_F(ControllerLeaseTest, StopsBeforeAnybodyElseBegins) {
    one.lease.seek("at home");
    other.lease.seek("away");
    pass(2s);
    one.store.set_reachable(false);  // and goes on living
    until([&] {
        EXPECT_FALSE(other.in_office() && one.lease.holds());
        return other.in_office();
    });
    EXPECT_EQ(one.doubts, std::vector<bool>{true});
}

TEST_F(ControllerLeaseTest, GoesOnWhenTheStoreIsBackAndNobodyHasTakenOver) {
    one.lease.seek("at home");
    pass(1s);
    one.store.set_reachable(false);
    pass(30s);
    EXPECT_FALSE(one.lease.holds());
    one.store.set_reachable(true);
    pass(1s);
    EXPECT_TRUE(one.lease.holds());
    EXPECT_EQ(one.doubts, (std::vector<bool>{true, false}));
    EXPECT_EQ(one.deposed, 0u);
    EXPECT_GT(one.lease.remaining_ms(), 2000u);
    EXPECT_LE(one.lease.remaining_ms(), 4000u) << "a fifth of it is kept back";
}

TEST_F(ControllerLeaseTest, GivesOfficeBackSoThatTheOtherNeedsNotWait) {
    one.lease.seek("at home");
    pass(1s);
    other.lease.seek("away");
    pass(2s);
    bool told = false;
    one.lease.resign([&] { told = true; });
    EXPECT_FALSE(one.lease.holds());
    EXPECT_LE(until([&] { return other.in_office(); }), 1s);
    EXPECT_TRUE(told);
    EXPECT_TRUE(one.lease.quiet());
}

TEST_F(ControllerLeaseTest, RefusesToStartBesideOneThatLives) {
    other.lease.seek("away");
    pass(1s);
    one.lease.seek("at home");
    until([&] { return one.won.has_value(); });
    ASSERT_FALSE(*one.won);
    EXPECT_EQ(one.won->error().code, Code::access_denied);
    EXPECT_EQ(one.lease.rival().holder, "away");
}

TEST_F(ControllerLeaseTest, LeavesAFreeOfficeToOthersForAWhileIfItIsModest) {
    Candidate modest(records, {.lease = lease, .standby = true, .modesty = 5s}, 0s);
    modest.lease.seek("third");
    for (int i = 0; i < 400; ++i) modest.world.advance(10ms);
    EXPECT_FALSE(modest.won);
    for (int i = 0; i < 200; ++i) modest.world.advance(10ms);
    EXPECT_TRUE(modest.in_office()) << "nobody else wanted it";
}

TEST_F(ControllerLeaseTest, IsModestOnceOnly) {
    other.lease.seek("away");
    pass(1s);
    Candidate modest(records, {.lease = lease, .standby = true, .modesty = 5s}, 0s);
    modest.lease.seek("third");
    for (int i = 0; i < 100; ++i) modest.world.advance(10ms);
    bool told = false;
    other.lease.resign([&] { told = true; });
    pass(100ms);
    EXPECT_TRUE(told);
    for (int i = 0; i < 100; ++i) modest.world.advance(10ms);
    EXPECT_TRUE(modest.in_office()) << "another has had its turn";
}

TEST_F(ControllerLeaseTest, HoldsOfficeWithoutALeaseUntilAnotherAsks) {
    Candidate first(records, {.lease = 0s}, 0s);
    first.lease.seek("first");
    for (int i = 0; i < 10; ++i) first.world.advance(10min);
    EXPECT_TRUE(first.lease.holds());
    EXPECT_EQ(first.lease.remaining_ms(), 0u);
    one.lease.seek("at home");
    EXPECT_LE(until([&] { return one.in_office(); }), 50ms);
}

}  // namespace
}  // namespace weft::node
