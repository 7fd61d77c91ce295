// SPDX-License-Identifier: Apache-2.0
#include "raid/rebuild.hpp"

#include <gtest/gtest.h>

#include <set>

#include "raid/timer.hpp"
#include "raid/write_log.hpp"
#include "support/seeds.hpp"

#include <random>

namespace weft::raid {
namespace {

using namespace std::chrono_literals;

/// Whatever the order in which stripes end, and however often they fail or are passed over, each is
/// done in the end,
/// and at every moment exactly those are said to be there that are.
TEST(Rebuild, KnowsExactlyWhatIsDone) {
    test::for_each_seed(50, [](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        const std::uint64_t stripes = 1 + random() % 300;
        RegionMap lacks(stripes);
        for (std::uint64_t s = 0; s < stripes; ++s)
            if (random() % 3 != 0) lacks.add(s);
        Rebuild rebuild(BoxIndex{2}, lacks);
        std::set<std::uint64_t> under_way, done;
        while (!rebuild.finished()) {
            if (random() % 2 && under_way.size() < 20) {
                if (auto stripe = rebuild.take()) {
                    EXPECT_TRUE(lacks.contains(*stripe) && !done.contains(*stripe));
                    EXPECT_TRUE(under_way.insert(*stripe).second);
                }
            } else if (!under_way.empty()) {
                auto which = std::next(under_way.begin(),
                                       static_cast<std::ptrdiff_t>(random() % under_way.size()));
                const auto stripe = *which;
                under_way.erase(which);
                const auto fate = random() % 8;
                if (fate == 0) {
                    rebuild.pass_over(stripe);
                } else if (fate < 3) {
                    rebuild.failed(stripe);
                } else {
                    rebuild.done(stripe);
                    done.insert(stripe);
                }
            }
            const auto absence = rebuild.absence();
            for (std::uint64_t s = 0; s < stripes; ++s)
                ASSERT_EQ(absence.has(s), !lacks.contains(s) || done.contains(s)) << s;
            for (std::uint64_t s = 0; s < rebuild.mark(); ++s) ASSERT_TRUE(absence.has(s)) << s;
            EXPECT_LE(rebuild.stripes_done(), done.size()) << "those ahead count later";
        }
        EXPECT_EQ(done.size(), lacks.count_before(stripes));
        EXPECT_EQ(rebuild.stripes_done(), rebuild.stripes_to_do());
    });
}

TEST(Rebuild, GoesOnFromWhatIsLasting) {
    RegionMap lacks(100);
    lacks.add_from(10);
    Rebuild rebuild(BoxIndex{0}, lacks);
    EXPECT_EQ(rebuild.mark(), 10u) << "nothing to do before";
    for (int i = 0; i < 20; ++i) rebuild.done(*rebuild.take());
    EXPECT_EQ(rebuild.mark(), 30u);
    const auto left = rebuild.left_from(25);
    EXPECT_FALSE(left.contains(24));
    EXPECT_TRUE(left.contains(25) && left.contains(99));
}

TEST(WriteLog, KeepsWhatAFlushMayHaveMissed) {
    auto band = [](std::uint64_t stripe) { return Band{.stripe = stripe, .length = 4096}; };
    const std::array before{band(1)}, during{band(2)}, after{band(3)};
    WriteLog log(10);
    log.wrote(before);
    log.wrote(during);
    log.flush_begins(during);
    log.wrote(after);
    EXPECT_TRUE(log.unflushed().contains(1)) << "not flushed yet";
    log.flush_ended(true);
    EXPECT_FALSE(log.unflushed().contains(1));
    EXPECT_TRUE(log.unflushed().contains(2) && log.unflushed().contains(3));
    log.flush_begins({});
    log.flush_ended(false);
    EXPECT_TRUE(log.unflushed().contains(2)) << "a flush that failed has flushed nothing";
    log.flush_begins({});
    log.flush_ended(true);
    EXPECT_TRUE(log.empty());
}

TEST(Timer, BeginsWithTheFirstTickAfterTheAsking) {
    Timer timer;
    EXPECT_FALSE(timer.deadline());
    timer.ask(10ns);
    EXPECT_EQ(timer.deadline(), Instant{0}) << "as soon as possible, to learn the time";
    EXPECT_FALSE(timer.passed(Instant{100}));
    timer.ask(1ns);
    EXPECT_EQ(timer.deadline(), Instant{110}) << "the first asking counts";
    EXPECT_FALSE(timer.passed(Instant{109}));
    EXPECT_TRUE(timer.passed(Instant{110}));
    EXPECT_FALSE(timer.passed(Instant{111}));
}

}  // namespace
}  // namespace weft::raid
