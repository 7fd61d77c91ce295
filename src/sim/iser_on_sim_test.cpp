// SPDX-License-Identifier: Apache-2.0
// The two iSER datamovers against each other over simulated networks.
#include <gtest/gtest.h>

#include <chrono>

#include "sim/random.hpp"
#include "support/iser_fixture.hpp"
#include "support/recording_engine.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using iscsi::DataOutcome;
using test::IserPair;
using test::MemoryCommand;
using test::numbered;

TEST(Iser, MovesWhatIsWrittenAndRead) {
    IserPair pair(1);
    pair.connect();
    auto bytes = numbered(100'000, 3);
    auto& write = pair.initiator.write(5000, bytes);
    pair.run();
    EXPECT_TRUE(write.is_answered && write.is_retired);
    EXPECT_EQ(pair.target.outcomes, std::vector{DataOutcome::complete});
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), pair.target.memory.begin() + 5000));
    auto& read = pair.initiator.read(4000, 102'000);
    pair.run();
    EXPECT_TRUE(read.is_retired);
    EXPECT_TRUE(std::equal(read.in.begin(), read.in.end(), pair.target.memory.begin() + 4000));
    EXPECT_EQ(read.placed, 102'000u);
    EXPECT_EQ(pair.target.busy(), 0u);
}

/// Whatever sizes, pieces and order, each byte is where a simple model has it.
TEST(Iser, MovesTheSameBytesWhateverTheNetworkDoes) {
    test::for_each_seed(60, [](std::uint64_t seed) {
        IserPair pair(seed, {.reads = static_cast<std::uint16_t>(1 + seed % 5)},
                      static_cast<unsigned>(seed % 3 * 50));
        pair.terms.immediate_data = seed % 4 != 0;
        pair.terms.burst_max = seed % 5 == 0 ? 3000 : 262144;
        pair.target.piece_size = 1 + seed * 37 % 5000;
        if (pair.target.piece_size < 500) pair.target.piece_size = 500;
        pair.connect();
        Random random(seed);
        // Commands do not overlap: a slice each, so that their order does not matter.
        std::vector<std::byte> model = pair.target.memory;
        constexpr std::size_t slice = 16'384;
        std::vector<bool> in_use(pair.target.memory.size() / slice);
        std::size_t started = 0;
        auto begin_one = [&] {
            auto at = random.below(in_use.size());
            if (in_use[at]) return;
            in_use[at] = true;
            ++started;
            pair.initiator.piece_size = 100 + random.below(5000);
            auto offset = at * slice;
            auto size = 1 + random.below(random.chance(50) ? 600 : slice);
            auto kind = random.below(3);
            auto bytes = kind == 0 ? std::vector<std::byte>{}
                                   : numbered(size, static_cast<unsigned>(seed + started));
            pair.initiator.start(offset, bytes, kind == 1 ? 0 : size);
        };
        pair.initiator.on_retired = [&](MemoryCommand& command) {
            EXPECT_TRUE(command.is_answered);
            auto at = model.begin() + static_cast<std::ptrdiff_t>(command.offset);
            std::copy(command.out.begin(), command.out.end(), at);
            EXPECT_TRUE(std::equal(command.in.begin(), command.in.end(), at));
            in_use[command.offset / slice] = false;
            // From now on the memory is the initiator's, to do with what it likes.
            std::fill(command.out.begin(), command.out.end(), std::byte{0xee});
            std::fill(command.in.begin(), command.in.end(), std::byte{0xee});
            if (started < 150) begin_one();
        };
        for (int i = 0; i < 20; ++i) begin_one();
        pair.run();
        EXPECT_EQ(pair.initiator.busy(), 0u);
        EXPECT_EQ(pair.target.busy(), 0u);
        EXPECT_EQ(pair.initiator.retirements, started);
        EXPECT_GT(started, 20u);
        EXPECT_EQ(pair.target.memory, model);
        EXPECT_FALSE(pair.initiator.is_lost);
    });
}

TEST(Iser, CostsTheInitiatorOneCompletionForEachCommand) {
    IserPair pair(1, {}, 0);  // as with a kernel's socket, which copies what it is lent
    pair.connect();
    pair.initiator.piece_size = 4096;
    auto before = pair.completions();
    std::size_t count = 0;
    for (std::size_t size : {1u, 512u, 4096u, 8192u, 8193u, 65536u, 200'000u})
        for (int i = 0; i < 5; ++i) {
            pair.initiator.read(500'000, size);
            pair.initiator.write(0, numbered(size, 1));
            pair.run();
            count += 2;
        }
    EXPECT_EQ(pair.initiator.retirements, count);
    EXPECT_EQ(pair.completions() - before, count);
}

TEST(Iser, TakesBackItselfWhatTheTargetDidNot) {
    IserPair pair(1, {.invalidates = false}, 0);
    pair.connect();
    auto before = pair.completions();
    auto& read = pair.initiator.read(0, 4096);
    auto& write = pair.initiator.write(8192, numbered(50'000, 1));
    pair.run();
    EXPECT_TRUE(read.is_retired && write.is_retired);
    EXPECT_EQ(pair.completions() - before, 4u) << "a response and an invalidation each";
}

TEST(Iser, CarriesCommandsThatReadAndWrite) {
    IserPair pair(1, {}, 0);
    pair.connect();
    auto bytes = numbered(30'000, 9);
    auto before = pair.completions();
    auto& both = pair.initiator.start(1000, bytes, 20'000);
    pair.run();
    EXPECT_TRUE(both.is_retired);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), pair.target.memory.begin() + 1000));
    EXPECT_TRUE(std::equal(both.in.begin(), both.in.end(), bytes.begin()));
    EXPECT_EQ(pair.completions() - before, 2u) << "the write's tag is the initiator's to take back";
}

TEST(Iser, CarriesOtherPdusBothWays) {
    IserPair pair(1);
    pair.connect();
    auto words = numbered(100, 5);
    pair.initiator.ping(words);
    pair.initiator.ping({});
    pair.run();
    ASSERT_EQ(pair.initiator.pongs.size(), 2u);
    EXPECT_EQ(pair.initiator.pongs[0], words);
    EXPECT_TRUE(pair.initiator.pongs[1].empty());
}

TEST(Iser, SaysWhetherChecksumsAreComputedOfWhatItSends) {
    for (bool checksums : {false, true}) {
        IserPair pair(1, {.checksums = checksums});
        pair.connect();
        EXPECT_EQ(pair.target.mover->computes_checksums(), checksums);
    }
}

TEST(Iser, SendsNoMoreSenseThanLinuxHasRoomFor) {
    IserPair pair(1);
    pair.connect();
    pair.target.sense = numbered(252, 1);
    auto& read = pair.initiator.read(0, 512);
    pair.run();
    ASSERT_TRUE(read.is_answered);
    EXPECT_EQ(read.sense, std::vector(pair.target.sense.begin(), pair.target.sense.begin() + 126));
    EXPECT_EQ(pair.target.mover->control_data_max(), 128u);
}

TEST(Iser, AddsReceivesWhenTheyRunLowAndNotWithoutBound) {
    IserPair pair(1, {.receives_first = 16, .receives_max = 32});
    pair.connect();
    pair.target.withholds_places = true;
    EXPECT_EQ(pair.iser_target->receives(), 16u);
    for (std::size_t i = 0; i < 20; ++i) pair.initiator.write(i * 1000, numbered(1000, 1));
    pair.run();
    EXPECT_EQ(pair.target.commands, 20u);
    EXPECT_EQ(pair.iser_target->receives(), 32u);
    pair.target.give_places();
    pair.run();
    EXPECT_EQ(pair.initiator.retirements, 20u);
}

TEST(Iser, RetiresWhatIsAbandonedAndClosesItsTags) {
    IserPair pair(1);
    pair.connect();
    pair.target.withholds_places = true;
    auto& read = pair.initiator.read(0, 50'000);
    auto& write = pair.initiator.write(0, numbered(50'000, 1));
    pair.run();
    pair.initiator.mover->abandon(read.task);
    pair.initiator.mover->abandon(write.task);
    pair.run();
    EXPECT_TRUE(read.is_retired && write.is_retired);
    EXPECT_FALSE(read.is_answered || write.is_answered);
    // A target that goes on all the same meets a closed door.
    pair.target.give_places();
    pair.run();
    EXPECT_TRUE(pair.initiator.is_lost && pair.target.is_lost);
    EXPECT_EQ(read.in, std::vector<std::byte>(50'000));
}

TEST(Iser, EndsInGoodOrderWhenAllIsSent) {
    for (bool by_target : {true, false}) {
        IserPair pair(1);
        pair.connect();
        pair.initiator.ping({});
        pair.run();
        by_target ? pair.target.mover->close_when_sent() : pair.initiator.mover->close_when_sent();
        pair.run();
        EXPECT_TRUE(pair.target.is_lost && pair.initiator.is_lost);
        auto& own = by_target ? pair.target.why : pair.initiator.why;
        auto& other = by_target ? pair.initiator.why : pair.target.why;
        EXPECT_FALSE(own);
        EXPECT_EQ(other->code, Code::disconnected);
    }
}

TEST(Iser, LetsTheTargetComeToTheEndOfItsLastWord) {
    IserPair pair(1);
    pair.connect();
    pair.initiator.ping({});
    pair.run_until([&] { return !pair.initiator.pongs.empty(); });
    pair.initiator.mover->close_when_sent();
    pair.world.run_for(iscsi::iser::farewell_delay / 2);
    EXPECT_FALSE(pair.target.is_lost);
    pair.run();
    EXPECT_TRUE(pair.target.is_lost && pair.initiator.is_lost);
}

TEST(Iser, SaysThatItIsLostWhateverWasUnderWay) {
    test::for_each_seed(60, [](std::uint64_t seed) {
        IserPair pair(seed);
        pair.connect();
        for (std::size_t i = 0; i < 10; ++i) {
            pair.initiator.write(i * 30'000, numbered(30'000, 1));
            pair.initiator.read(500'000 + i * 30'000, 30'000);
        }
        for (std::uint64_t i = 0; i < 20 + seed * 11; ++i) pair.world.step();
        switch (seed % 4) {
            case 0:
                for (auto link : pair.world.network().links()) pair.world.network().reset(link);
                break;
            case 1:
                pair.target.mover->close();
                EXPECT_FALSE(pair.target.is_lost) << "not from inside";
                break;
            case 2:
                pair.initiator.mover->close();
                EXPECT_FALSE(pair.initiator.is_lost) << "not from inside";
                break;
            default:
                pair.target.mover.reset();  // and nobody asks it any more
        }
        pair.run();
        EXPECT_TRUE(pair.initiator.is_lost);
        EXPECT_EQ(pair.target.is_lost, seed % 4 != 3);
    });
}

/// As RFC 7145 has it: another protocol logs in over TCP, and then the stream turns.
TEST(Iser, FollowsALoginOnTheSameStream) {
    test::for_each_seed(60, [](std::uint64_t seed) {
        IserPair pair(seed, {}, static_cast<unsigned>(seed % 3 * 50));
        pair.terms.hello_required = seed % 2 == 0;
        pair.terms.solicited_tags_only = seed % 3 == 0;
        pair.listener.reset();
        test::RecordingEngine asks, answers;
        std::unique_ptr<Stream> accepted, connected;
        pair.listener =
            std::move(*pair.world.host("elm").listen(pair.elm, [&](std::unique_ptr<Stream> stream) {
                accepted = std::move(stream);
                accepted->drive(answers);
            }));
        answers.say(numbered(300, 1));
        answers.room = 0;  // what comes next is not for it
        answers.on_sent = [&] {
            if (answers.sent_count < answers.outgoing.size()) return;
            auto made = pair.iser_target->switch_over(std::move(accepted), pair.target, pair.terms);
            ASSERT_TRUE(made);
            pair.target.mover = std::move(*made);
            answers.closed_count = 1;
        };
        asks.room = 300;
        asks.on_filled = [&] {
            if (asks.received.size() < 300) return;
            auto made =
                pair.iser_initiator.switch_over(std::move(connected), pair.initiator, pair.terms);
            ASSERT_TRUE(made);
            pair.initiator.mover = std::move(*made);
            asks.closed_count = 1;
        };
        connected = std::move(*pair.world.host("oak").connect(pair.elm, asks));
        pair.run_until([&] { return pair.initiator.is_open; });
        ASSERT_TRUE(pair.initiator.is_open);
        auto bytes = numbered(100'000, 3);
        pair.initiator.write(0, bytes);
        pair.initiator.write(200'000, numbered(100, 4));
        pair.run();
        auto& read = pair.initiator.read(0, 100'000);
        pair.run();
        EXPECT_EQ(read.in, bytes);
        EXPECT_EQ(pair.target.mover->control_data_max(), 8192u);
    });
}

TEST(Iser, IsLostIfTheOtherSideNeverTurns) {
    IserPair pair(1);
    pair.listener.reset();
    test::RecordingEngine silent;
    pair.listener =
        std::move(*pair.world.host("elm").listen(pair.elm, [&](std::unique_ptr<Stream> stream) {
            auto made = pair.iser_target->switch_over(std::move(stream), pair.target, pair.terms);
            ASSERT_TRUE(made);
            pair.target.mover = std::move(*made);
        }));
    auto connected = std::move(*pair.world.host("oak").connect(pair.elm, silent));
    pair.world.run_for(30s);
    EXPECT_TRUE(pair.target.is_lost);
}

}  // namespace
}  // namespace weft::sim
