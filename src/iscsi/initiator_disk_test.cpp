// SPDX-License-Identifier: Apache-2.0
// An initiator's session and disk against a model of a target, cut off at any moment.
#include "iscsi/initiator_disk.hpp"

#include <gtest/gtest.h>

#include <random>

#include "support/iscsi_unit_model.hpp"
#include "support/seeds.hpp"
#include "support/test_request.hpp"

namespace weft::iscsi {
namespace {

using test::TestRequest;
using test::UnitModel;
using namespace std::chrono_literals;

/// A disk, its session, a target, and time in hand.
class Bench final : public InitiatorSessionUser {
public:
    explicit Bench(std::uint32_t seed, std::size_t connections = 1, std::size_t blocks = 64)
        : unit(blocks),
          chance(seed),
          session(options(connections), *this),
          disk(session, wire::LogicalUnit::first, 1u << 20) {
        policy.admission.wishes.terms.max_connections = 4;
    }
    ~Bench() {
        disk.give_up({.code = Code::disconnected});
        while (!session.down()) {
            session.leave();
            cut();
            step();
        }
        disk.give_up({.code = Code::disconnected});
    }
    static SessionOptions options(std::size_t connections) {
        SessionOptions options;
        options.initiator_name = "iqn.host";
        options.target_name = "iqn.disk";
        options.connections = connections;
        options.wishes.terms.max_connections = 4;
        return options;
    }

    void open() {
        session.begin();
        run();
        ASSERT_TRUE(opened && *opened);
    }
    bool step() {
        const std::size_t first = chance() % movers.size();
        for (std::size_t i = 0; i < movers.size(); ++i) {
            auto& mover = movers[(first + i) % movers.size()];
            if (mover && mover->step(chance)) return true;
        }
        return false;
    }
    void run() {
        while (step()) continue;
    }
    void cut() {
        for (auto& mover : movers)
            if (mover && !mover->lost()) mover->cut();
    }
    void pass(Duration span) {
        now = now + span;
        session.tick(now);
        run();
    }

    void connection_wanted(std::size_t index) override {
        movers[index] =
            std::make_unique<test::ModelMover>(unit, policy, count, session.connection(index));
        session.attach(index, *movers[index]);
    }
    void connection_unwanted(std::size_t index) override {
        graveyard.push_back(std::move(movers[index]));
    }
    void fill_with_chance(Buffer octets) override { std::ranges::fill(octets, std::byte{1}); }
    void session_up() override {
        ++ups;
        disk.session_up([this](Result<void> outcome) { opened = outcome; });
    }
    void session_down(Error why) override {
        ++downs;
        why_down = why;
    }
    void deadline_changed() override {}

    UnitModel unit;
    test::OpenPolicy policy;
    test::CommandCount count;
    std::mt19937 chance;
    std::array<std::unique_ptr<test::ModelMover>, initiator_connections_max> movers;
    std::vector<std::unique_ptr<test::ModelMover>> graveyard;
    std::optional<Result<void>> opened;
    int ups = 0, downs = 0;
    Error why_down{.code = Code::malformed};
    Instant now{};
    InitiatorSession session;
    InitiatorDisk disk;
};

TestRequest& filled(TestRequest& request, unsigned value) {
    std::ranges::fill(request.octets, static_cast<std::byte>(value));
    return request;
}

TEST(InitiatorDisk, FindsOutWhatTheUnitIs) {
    Bench bench(1);
    bench.unit.attentions = {wire::AdditionalSense::power_on_or_reset_occurred,
                             wire::AdditionalSense::reported_luns_data_has_changed};
    bench.open();
    const auto traits = bench.disk.traits();
    EXPECT_EQ(traits.size, 64u * 512);
    EXPECT_EQ(traits.minimum_block, 512u);
    EXPECT_EQ(traits.maximum_transfer, 64u * 512);
    EXPECT_TRUE(traits.can_trim);
    EXPECT_TRUE(traits.can_report_status);
    EXPECT_FALSE(traits.read_only);
    EXPECT_EQ(bench.disk.facts().vendor, "WEFT");
    EXPECT_EQ(bench.disk.facts().serial, "model-1");
}

TEST(InitiatorDisk, WritesAndReadsBack) {
    Bench bench(2);
    bench.open();
    TestRequest write(BlockOperation::write, 1024, 2048);
    bench.disk.submit(filled(write, 9));
    TestRequest durable(BlockOperation::write, 4096, 512);
    durable.durable = true;
    bench.disk.submit(filled(durable, 8));
    bench.run();
    ASSERT_TRUE(write.succeeded() && durable.succeeded());
    TestRequest read(BlockOperation::read, 512, 4096);
    bench.disk.submit(read);
    bench.run();
    ASSERT_TRUE(read.succeeded());
    EXPECT_EQ(read.octets[511], std::byte{0});
    EXPECT_EQ(read.octets[512], std::byte{9});
    EXPECT_EQ(read.octets[512 + 2047], std::byte{9});
    EXPECT_EQ(read.octets[4096 - 512], std::byte{8});
}

TEST(InitiatorDisk, RefusesWhatEveryDeviceRefuses) {
    Bench bench(3);
    bench.open();
    TestRequest odd(BlockOperation::read, 100, 512), beyond(BlockOperation::read, 64 * 512, 512);
    bench.disk.submit(odd);
    bench.disk.submit(beyond);
    EXPECT_EQ(odd.failure(), Code::malformed);
    EXPECT_EQ(beyond.failure(), Code::out_of_range);
}

TEST(InitiatorDisk, CutsZeroesAndTrimsIntoWhatTheTargetTakes) {
    Bench bench(4);
    bench.open();
    std::ranges::fill(bench.unit.memory, std::byte{0xff});
    bench.unit.seen.clear();
    TestRequest zero(BlockOperation::write_zeroes, 512, 12 * 512);
    TestRequest trim(BlockOperation::trim, 20 * 512, 20 * 512);
    bench.disk.submit(zero);
    bench.disk.submit(trim);
    bench.run();
    ASSERT_TRUE(zero.succeeded() && trim.succeeded());
    using enum wire::ScsiOperation;
    EXPECT_EQ(std::ranges::count(bench.unit.seen, write_same_16), 3);  // of at most five blocks
    EXPECT_EQ(std::ranges::count(bench.unit.seen, unmap), 3);          // of at most eight
    for (std::size_t block = 0; block < 64; ++block) {
        const bool zeroed = (block >= 1 && block < 13) || (block >= 20 && block < 40);
        EXPECT_EQ(bench.unit.memory[block * 512], std::byte(zeroed ? 0 : 0xff)) << block;
    }
}

TEST(InitiatorDisk, TellsHolesFromData) {
    Bench bench(5);
    bench.open();
    TestRequest status(BlockOperation::status, 512, 10 * 512);
    std::array<Extent, 4> room;
    status.extents = room;
    bench.disk.submit(status);
    bench.run();
    ASSERT_TRUE(status.succeeded());
    ASSERT_EQ(status.extent_count, 2u);
    EXPECT_EQ(room[0], (Extent{.length = 3 * 512}));
    EXPECT_EQ(room[1], (Extent{.length = 7 * 512, .hole = true, .zero = true}));
}

TEST(InitiatorDisk, FlushesAndBelievesATargetThatHasNothingToFlush) {
    Bench bench(6);
    bench.open();
    TestRequest flush(BlockOperation::flush, 0, 0);
    bench.disk.submit(flush);
    bench.run();
    EXPECT_TRUE(flush.succeeded());
    bench.unit.knows_flush = false;
    TestRequest again(BlockOperation::flush, 0, 0);
    bench.disk.submit(again);
    bench.run();
    EXPECT_TRUE(again.succeeded());
    EXPECT_FALSE(bench.disk.traits().can_flush);
}

TEST(InitiatorDisk, AsksAgainAfterUnitAttentionsAndWhenTheTargetIsBusy) {
    Bench bench(7);
    bench.open();
    bench.unit.attentions = {wire::AdditionalSense::mode_parameters_changed,
                             wire::AdditionalSense::nexus_loss_occurred};
    bench.unit.busy = 3;
    TestRequest write(BlockOperation::write, 0, 512);
    bench.disk.submit(filled(write, 3));
    for (int i = 0; i < 10; ++i) bench.pass(60ms);
    EXPECT_TRUE(write.succeeded());
    EXPECT_EQ(bench.unit.memory[0], std::byte{3});
}

TEST(InitiatorDisk, NoticesThatTheUnitHasGrown) {
    Bench bench(8);
    bench.open();
    struct Watcher final : SizeWatcher {
        std::uint64_t heard = 0;
        void size_changed(std::uint64_t size) override { heard = size; }
    } watcher;
    bench.disk.watch_size(watcher);
    bench.unit.memory.resize(128 * 512);
    bench.unit.attentions = {wire::AdditionalSense::capacity_data_has_changed};
    TestRequest read(BlockOperation::read, 0, 512);
    bench.disk.submit(read);
    bench.run();
    EXPECT_TRUE(read.succeeded());
    EXPECT_EQ(watcher.heard, 128u * 512);
    EXPECT_EQ(bench.disk.traits().size, 128u * 512);
    bench.disk.unwatch_size(watcher);
}

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
    bench.pass(target_silence);
    bench.pass(target_silence);
    EXPECT_EQ(bench.downs, 0);
    bench.movers[0]->answers_pings = false;
    bench.pass(target_silence);
    EXPECT_EQ(bench.downs, 0);
    bench.pass(target_silence);
    EXPECT_EQ(bench.downs, 1);
    EXPECT_EQ(bench.why_down.code, Code::timed_out);
}

TEST(InitiatorDisk, ReadsASerialNumberWithoutWhatFillsItUp) {
    Bench bench(1);
    bench.unit.serial = "  model-1 " + std::string(2, '\0');  // zeros as of LIO
    bench.open();
    EXPECT_EQ(bench.disk.facts().serial, "model-1");
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
