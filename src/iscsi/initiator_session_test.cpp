// SPDX-License-Identifier: Apache-2.0
// A session against a model of a target, cut off at any moment.
#include "iscsi/initiator_session.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "support/initiator_bench.hpp"
#include "support/seeds.hpp"

namespace weft::iscsi {
namespace {

using namespace std::chrono_literals;
using Bench = InitiatorBench;

TEST(InitiatorSession, StaysWithinTheWindowOfTheTarget) {
    Bench bench(9);
    bench.count.window = 3;
    bench.open();
    std::deque<TestRequest> reads;
    for (int i = 0; i < 20; ++i)
        bench.disk.submit(reads.emplace_back(BlockOperation::read, 0, 512));
    EXPECT_EQ(bench.movers[0]->tasks(), 3u);
    bench.run();
    for (auto& read : reads) EXPECT_TRUE(read.succeeded());
}

TEST(InitiatorSession, UsesAllItsConnections) {
    Bench bench(10, 3);
    bench.open();
    EXPECT_EQ(bench.session.connection_count(), 3u);
    std::deque<TestRequest> reads;
    for (int i = 0; i < 9; ++i) bench.disk.submit(reads.emplace_back(BlockOperation::read, 0, 512));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(bench.movers[i]->tasks(), 3u) << i;
    bench.run();
    for (auto& read : reads) EXPECT_TRUE(read.succeeded());
}

TEST(InitiatorSession, PingsASilentTargetAndGivesItUpInTheEnd) {
    Bench bench(11);
    bench.open();
    bench.pass(target_silence / 2);
    bench.pass(target_silence / 2);
    EXPECT_EQ(bench.downs, 0);
    bench.movers[0]->answers_pings = false;
    bench.pass(target_silence / 2);
    EXPECT_EQ(bench.downs, 0);
    bench.pass(target_silence / 2);
    EXPECT_EQ(bench.downs, 1);
    EXPECT_EQ(bench.why_down.code, Code::timed_out);
}

TEST(InitiatorSession, CountsSilenceFromTheLastWordAndNotFromTheLastTick) {
    Bench bench(11);
    bench.open();
    bench.movers[0]->answers_pings = false;
    // The last word comes just before a tick, long after the one before.
    bench.now = bench.now + (target_silence / 2 - 1ms);
    TestRequest read(BlockOperation::read, 0, 512);
    bench.disk.submit(read);
    bench.run();
    ASSERT_TRUE(read.succeeded());
    bench.pass(1ms);
    for (Duration passed = 1ms; passed + 1ms < target_silence; passed += 1ms) {
        ASSERT_EQ(bench.downs, 0) << "after " << passed / 1ms << " ms of silence";
        bench.pass(1ms);
    }
    bench.pass(1ms);
    EXPECT_EQ(bench.downs, 1);
}

TEST(InitiatorSession, TakesItsOwnStandstillForNoSilence) {
    Bench bench(11);
    bench.open();
    bench.pass(target_silence * 10);  // nobody looked at what came meanwhile
    EXPECT_EQ(bench.downs, 0);
    bench.movers[0]->answers_pings = false;
    bench.pass(target_silence / 2);  // it is pinged
    bench.pass(target_silence * 10);
    EXPECT_EQ(bench.downs, 0) << "the answer may lie unread";
    bench.pass(target_silence / 2);
    EXPECT_EQ(bench.downs, 1);
}

TEST(InitiatorSession, LeavesWhenAllIsDone) {
    Bench bench(12);
    bench.open();
    TestRequest read(BlockOperation::read, 0, 512);
    bench.disk.submit(read);
    bench.session.leave();
    bench.run();
    EXPECT_TRUE(read.succeeded());
    EXPECT_TRUE(bench.session.down());
    EXPECT_TRUE(bench.graveyard.at(0)->left()) << "the target may be at its goodbye still";
}

TEST(InitiatorSession, GoesWhenTheTargetAsksAndComesBackWithTheRest) {
    Bench bench(16);
    bench.open();
    TestRequest under_way(BlockOperation::write, 0, 512), waiting(BlockOperation::write, 0, 512);
    bench.disk.submit(filled(under_way, 5));
    bench.movers[0]->ask_to_leave();
    bench.disk.submit(filled(waiting, 6));
    bench.run();
    EXPECT_TRUE(under_way.succeeded());
    EXPECT_FALSE(waiting.done());
    EXPECT_TRUE(bench.session.down());
    bench.session.begin();
    bench.run();
    EXPECT_TRUE(waiting.succeeded());
    EXPECT_EQ(bench.session.sent_again(), 0u);
    EXPECT_EQ(bench.unit.memory[0], std::byte{6});
}

TEST(InitiatorSession, BeginsAgainAndSendsAgainWhatItMay) {
    Bench bench(13);
    bench.open();
    TestRequest write(BlockOperation::write, 0, 512), read(BlockOperation::read, 512, 512);
    bench.disk.submit(filled(write, 5));
    bench.disk.submit(read);
    bench.cut();
    EXPECT_FALSE(write.done() || read.done());
    EXPECT_TRUE(bench.session.down());
    bench.session.begin();
    bench.run();
    EXPECT_TRUE(write.succeeded() && read.succeeded());
    EXPECT_EQ(bench.session.sent_again(), 2u);
    EXPECT_EQ(bench.session.logins(), 2u);
}

TEST(InitiatorSession, DoesNotSendAgainAWriteThatALaterOneOvertook) {
    Bench bench(14, 1);
    bench.open();
    // The model takes tasks by chance: tried until the later of two is answered alone.
    for (int tries = 0; tries < 200; ++tries) {
        TestRequest older(BlockOperation::write, 0, 1024), later(BlockOperation::write, 512, 512);
        TestRequest apart(BlockOperation::write, 4096, 512);
        bench.disk.submit(filled(older, 1));
        bench.disk.submit(filled(later, 2));
        bench.disk.submit(filled(apart, 3));
        while (!later.done() && !older.done() && !apart.done()) bench.step();
        const bool overtaken = later.done() && !older.done() && !apart.done();
        bench.cut();
        bench.session.begin();
        bench.run();
        EXPECT_TRUE(later.succeeded() && apart.succeeded());
        if (!overtaken) continue;
        EXPECT_EQ(older.failure(), Code::disconnected);
        return;
    }
    FAIL() << "never came to the case in question";
}

TEST(InitiatorSession, SendsNothingToAnotherDisk) {
    Bench bench(15);
    bench.open();
    TestRequest write(BlockOperation::write, 0, 512);
    bench.disk.submit(filled(write, 5));
    bench.cut();
    bench.unit.serial = "model-2";
    std::ranges::fill(bench.unit.memory, std::byte{0xee});
    bench.session.begin();
    bench.run();
    EXPECT_EQ(write.failure(), Code::access_denied);
    EXPECT_EQ(bench.unit.memory[0], std::byte{0xee});
    TestRequest after(BlockOperation::read, 0, 512);
    bench.disk.submit(after);
    EXPECT_EQ(after.failure(), Code::access_denied);
}

TEST(InitiatorSession, LooksWhetherTheDiskIsTheSameAlsoWhenItWasLostTwice) {
    Bench bench(31);
    bench.open();
    TestRequest write(BlockOperation::write, 0, 512);
    bench.disk.submit(filled(write, 7));
    bench.cut();
    bench.unit.serial = "model-2";
    bench.session.begin();
    while (bench.ups < 2) ASSERT_TRUE(bench.step());
    bench.cut();  // while it looks
    bench.session.begin();
    bench.run();
    EXPECT_EQ(bench.unit.memory[0], std::byte{0}) << "written to another disk";
    EXPECT_EQ(write.failure(), Code::access_denied);
}

TEST(InitiatorSession, TakesNoDiskForTheSameThatIsTooBusyToSay) {
    for (int busy : {5, 100'000}) {
        TestRequest write(BlockOperation::write, 0, 512);  // outlives who may still end it
        Bench bench(32);
        bench.open();
        bench.disk.submit(filled(write, 7));
        bench.cut();
        bench.unit.serial = "model-2";
        bench.unit.busy = busy;
        bench.session.begin();
        bench.run();
        for (int i = 0; i < 1300; ++i) bench.pass(50ms);
        EXPECT_EQ(bench.unit.memory[0], std::byte{0}) << "written to another disk";
        EXPECT_EQ(write.failure().has_value(), busy == 5) << "it is known to be another";
        EXPECT_EQ(bench.session.down(), busy != 5) << "or must be asked in a new session";
    }
}

TEST(InitiatorSession, UndoesNothingByAWriteThatWasSentAgainAndTurnedAway) {
    Bench bench(33);
    bench.open();
    std::vector<int> order;
    bench.unit.applied = [&](std::uint64_t, ConstBuffer data) {
        order.push_back(std::to_integer<int>(data[0]));
    };
    TestRequest first(BlockOperation::write, 0, 512), second(BlockOperation::write, 0, 512);
    bench.disk.submit(filled(first, 1));
    while (order.empty()) ASSERT_TRUE(bench.step());  // carried out, not answered
    bench.cut();
    bench.disk.submit(filled(second, 2));
    bench.session.begin();
    auto& seen = bench.unit.seen;
    seen.clear();
    // The first write that comes again finds the target busy.
    while (std::ranges::count(seen, wire::ScsiOperation::write_16) == 0) {
        bench.unit.busy = bench.ups == 2 && seen.size() >= 3 ? 1 : 0;
        ASSERT_TRUE(bench.step());
    }
    bench.run();
    EXPECT_FALSE(second.done()) << "it waits for the one that was perhaps carried out";
    for (int i = 0; i < 10; ++i) bench.pass(50ms);
    EXPECT_TRUE(first.succeeded() && second.succeeded());
    EXPECT_EQ(order, (std::vector{1, 1, 2}));
}

TEST(InitiatorSession, GivesUpACommandThatBreaksOneSessionAfterAnother) {
    Bench bench(34);
    bench.open();
    TestRequest write(BlockOperation::write, 0, 512);
    bench.disk.submit(filled(write, 7));
    bench.cut();
    unsigned sessions = 1;
    for (; !write.done() && sessions < 100; ++sessions) {
        bench.session.begin();
        bench.unit.seen.clear();
        while (std::ranges::count(bench.unit.seen, wire::ScsiOperation::write_16) == 0)
            ASSERT_TRUE(bench.step());
        bench.cut();
    }
    EXPECT_EQ(write.failure(), Code::disconnected);
    EXPECT_EQ(sessions, command_resends_max + 1);
}

TEST(InitiatorSession, DoesWithoutAConnectionThatIsNotToBeHad) {
    Bench bench(35, 3);
    bench.refuse_from = 1;
    bench.open();
    EXPECT_EQ(bench.session.connection_count(), 1u);
    TestRequest write(BlockOperation::write, 0, 512);
    bench.disk.submit(filled(write, 7));
    bench.run();
    EXPECT_TRUE(write.succeeded());
    EXPECT_EQ(bench.downs, 0);
}

/// Watches that no write is done again after a later one to the same place was acknowledged.
struct Rule {
    struct Write {
        std::uint64_t offset, length;
        bool acknowledged = false;
        int times_done = 0;
        std::unique_ptr<TestRequest> request;
    };
    std::vector<Write> writes;  ///< in the order they were submitted; the value is the index + 1

    void applied(std::uint64_t offset, ConstBuffer data) {
        const auto value = load_big_endian<4>(data.data());
        if (value == 0 || value > writes.size()) return;
        Write& write = writes[value - 1];
        EXPECT_EQ(write.offset, offset);
        if (++write.times_done < 2) return;
        for (std::size_t i = value; i < writes.size(); ++i) {
            const Write& later = writes[i];
            const bool same_place = later.offset < write.offset + write.length &&
                                    write.offset < later.offset + later.length;
            EXPECT_FALSE(same_place && later.acknowledged)
                << "write " << value << " was done again after " << i + 1;
        }
    }
};

TEST(InitiatorSession, LosesNoCommandAndBringsNoOldDataBackWhereverItIsCut) {
    std::uint64_t sent_again = 0, failed = 0;
    test::for_each_seed(400, [&](std::uint64_t seed) {
        Bench bench(static_cast<std::uint32_t>(seed), 1 + seed % 3);
        Rule rule;
        bench.unit.applied = [&](std::uint64_t offset, ConstBuffer data) {
            rule.applied(offset, data);
        };
        bench.open();
        for (int turn = 0; turn < 300; ++turn) {
            const std::size_t what = bench.chance() % 20;
            if (what < 6 && rule.writes.size() < 60) {
                auto& write = rule.writes.emplace_back();
                write.offset = bench.chance() % 12 * 512;
                write.length = (1 + bench.chance() % 4) * 512;
                write.request = std::make_unique<TestRequest>(BlockOperation::write, write.offset,
                                                              write.length);
                store_big_endian<4>(rule.writes.size(), write.request->octets.data());
                const std::size_t index = rule.writes.size() - 1;
                write.request->then = [&rule, index] {
                    rule.writes[index].acknowledged = rule.writes[index].request->succeeded();
                };
                bench.disk.submit(*write.request);
            } else if (what == 6) {
                bench.cut();
            } else if (what == 7 && bench.session.down()) {
                bench.session.begin();
            } else {
                bench.step();
            }
        }
        if (bench.session.down()) bench.session.begin();
        bench.run();
        for (const auto& write : rule.writes) {
            EXPECT_TRUE(write.request->done());
            EXPECT_TRUE(!write.request->succeeded() || write.times_done >= 1);
            failed += write.request->succeeded() ? 0 : 1;
        }
        sent_again += bench.session.sent_again();
    });
    if (!test::runs_all_seeds()) return;
    EXPECT_GT(sent_again, 500u);
    EXPECT_GT(failed, 20u);
}

TEST(InitiatorSession, Discovers) {
    class User final : public InitiatorSessionUser {
    public:
        UnitModel unit{1};
        test::OpenPolicy policy;
        test::CommandCount count;
        std::unique_ptr<test::ModelMover> mover;
        std::optional<Result<std::vector<DiscoveredTarget>>> told;
        InitiatorSession session;
        static SessionOptions options() {
            SessionOptions options;
            options.initiator_name = "iqn.host";
            options.type = SessionType::discovery;
            return options;
        }
        User() : session(options(), *this) {}
        void connection_wanted(std::size_t index) override {
            mover =
                std::make_unique<test::ModelMover>(unit, policy, count, session.connection(index));
            session.attach(index, *mover);
        }
        void connection_unwanted(std::size_t) override {}
        void fill_with_chance(Buffer) override {}
        Instant time() const override { return {}; }
        void session_up() override {
            session.discover([this](auto outcome) { told = std::move(outcome); });
        }
        void session_down(Error) override {}
        void deadline_changed() override {}
    } user;
    std::mt19937 chance(1);
    user.session.begin();
    while (user.mover->step(chance)) continue;
    ASSERT_TRUE(user.told && *user.told);
    const auto& targets = **user.told;
    ASSERT_EQ(targets.size(), 2u);
    EXPECT_EQ(targets[0].name, "iqn.one");
    EXPECT_EQ(targets[0].addresses,
              (std::vector<std::string>{"10.0.0.1:3260,1", "[fd00::1]:3260,1"}));
    EXPECT_EQ(targets[1].name, "iqn.two");
    user.session.leave();
    while (user.mover->step(chance)) continue;
    EXPECT_TRUE(user.session.down());
}

}  // namespace
}  // namespace weft::iscsi
