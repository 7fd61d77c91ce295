// SPDX-License-Identifier: Apache-2.0
// Streams between two engines while nothing goes wrong, and engines that destroy their streams.
#include "sim/link.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "base/bytes.hpp"
#include "sim/world.hpp"
#include "support/golden.hpp"
#include "support/recording_engine.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::Bytes;
using test::for_each_seed;
using test::RecordingEngine;

constexpr std::uint64_t plenty = 1'000'000;  // events
const Address elm = Address::tcp("elm", 10809);

Bytes numbered_bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
    return bytes;
}

/// A connection between two engines, made when the world first runs.
struct Pair {
    explicit Pair(std::uint64_t seed, const LinkOptions& options = {}) : world(seed) {
        world.network().set_options(options);
        listener = std::move(*world.listen(elm, [this](std::unique_ptr<Stream> stream) {
            server_stream = std::move(stream);
            server_stream->drive(server);
        }));
        client_stream = std::move(*world.connect(elm, client));
    }

    World world;
    RecordingEngine client, server;
    std::unique_ptr<Listener> listener;
    std::unique_ptr<Stream> client_stream, server_stream;
};

TEST(Link, TellsTheConnectorAndNotTheAcceptorThatItIsOpen) {
    Pair pair(1);
    EXPECT_EQ(pair.client.opened_count, 0) << "not from inside connect()";
    EXPECT_TRUE(pair.world.run_until_quiet(plenty));
    EXPECT_EQ(pair.client.opened_count, 1);
    ASSERT_TRUE(pair.server_stream);
    EXPECT_EQ(pair.server.opened_count, 0);
    EXPECT_EQ(pair.client_stream->peer(), "elm:10809");
    EXPECT_EQ(pair.server_stream->peer(), "local#1");
}

TEST(Link, KnowsBothEndsAndHowMuchAPacketHolds) {
    Pair pair(1, {.segment_bytes = 1448});
    EXPECT_TRUE(pair.world.run_until_quiet(plenty));
    EXPECT_EQ(pair.client_stream->remote(), elm);
    EXPECT_EQ(pair.client_stream->local().host, "local");
    EXPECT_NE(pair.client_stream->local().port, 0);
    EXPECT_EQ(pair.server_stream->local(), pair.client_stream->remote());
    EXPECT_EQ(pair.server_stream->remote(), pair.client_stream->local());
    EXPECT_EQ(pair.server_stream->segment_size(), 1448u);
    EXPECT_EQ(Pair(1).client_stream->segment_size(), 0u);

    RecordingEngine second;
    auto other = std::move(*pair.world.connect(elm, second));
    EXPECT_NE(other->local(), pair.client_stream->local());
    auto near = std::move(*pair.world.connect(Address::tcp("::1", 1), second));
    EXPECT_EQ(near->local().host, "::1");
    auto unix_stream = std::move(*pair.world.connect(Address::unix_socket("/s"), second));
    EXPECT_EQ(unix_stream->local(), Address());
    EXPECT_EQ(unix_stream->remote(), Address::unix_socket("/s"));
}

TEST(Link, CarriesTheSameBytesHoweverTheyAreCut) {
    auto there = numbered_bytes(20'000), back = numbered_bytes(3'000);
    for (Cutting cutting : {Cutting::whole, Cutting::anywhere, Cutting::single_bytes}) {
        for_each_seed(10, [&](std::uint64_t seed) {
            LinkOptions options;
            options.cutting = cutting;
            options.window_bytes = 5'000;
            Pair pair(seed, options);
            pair.client.room = 1 + seed * 97;
            pair.client.say(there);
            pair.server.say(back);
            ASSERT_TRUE(pair.world.run_until_quiet(plenty));
            EXPECT_EQ(pair.server.received, there);
            EXPECT_EQ(pair.client.received, back);
        });
    }
}

TEST(Link, CutsAnywhereWhenAskedTo) {
    std::vector<std::size_t> sizes;
    Pair pair(3);
    pair.client.say(numbered_bytes(60'000));
    std::size_t before = 0;
    pair.server.room = 100'000;
    pair.server.on_filled = [&] {
        sizes.push_back(pair.server.received.size() - before);
        before = pair.server.received.size();
    };
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    EXPECT_GT(sizes.size(), 3u);
    EXPECT_EQ(before, 60'000u);
}

TEST(Link, KeepsTheOrderThoughDelaysDiffer) {
    for_each_seed(100, [](std::uint64_t seed) {
        LinkOptions options;
        options.shortest_delay = 1us;
        options.longest_delay = 1s;
        Pair pair(seed, options);
        Bytes expected;
        for (int i = 0; i < 50; ++i) {
            Bytes message{static_cast<std::byte>(i), static_cast<std::byte>(~i)};
            pair.client.say(message);
            pair.client_stream->wake();
            expected.insert(expected.end(), message.begin(), message.end());
            pair.world.run_for(10ms);
        }
        ASSERT_TRUE(pair.world.run_until_quiet(plenty));
        EXPECT_EQ(pair.server.received, expected);
    });
}

TEST(Link, TakesNoLongerThanItsDelays) {
    LinkOptions options;
    options.shortest_delay = options.longest_delay = 10ms;
    options.kept_lent_percent = 0;
    Pair pair(1, options);
    pair.client.say(bytes_of("hello"));
    pair.world.run_for(20ms);
    EXPECT_EQ(pair.client.opened_count, 1) << "there and back";
    EXPECT_EQ(pair.server.received.size(), 0u);
    pair.world.run_for(10ms);
    EXPECT_EQ(text_of(pair.server.received), "hello");
}

TEST(Link, IsAsSlowAsItsBandwidth) {
    LinkOptions options;
    options.bytes_per_second = 1000;
    Pair pair(1, options);
    pair.client.say(numbered_bytes(2000));
    pair.world.run_for(1500ms);
    EXPECT_GT(pair.server.received.size(), 0u);
    EXPECT_LE(pair.server.received.size(), 1500u);
    pair.world.run_for(600ms);
    EXPECT_EQ(pair.server.received.size(), 2000u);
}

TEST(Link, HoldsASenderBackWhileTheReceiverDoesNotRead) {
    LinkOptions options;
    options.window_bytes = 1000;
    Pair pair(1, options);
    pair.server.room = 0;
    pair.client.say(numbered_bytes(5000));
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    EXPECT_EQ(pair.client.sent_count, 1000u);
    EXPECT_TRUE(pair.server.received.empty());

    pair.server.room = 300;
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    EXPECT_TRUE(pair.server.received.empty()) << "nobody said wake()";
    pair.server_stream->wake();
    EXPECT_TRUE(pair.server.received.empty()) << "not from inside wake()";
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    EXPECT_EQ(pair.server.received, numbered_bytes(5000));
}

TEST(Link, HearsAWakeThatIsSaidInsideWant) {
    struct Sleepy final : RecordingEngine {
        Stream* stream = nullptr;
        int questions = 0;
        Buffer want() override {
            if (++questions % 2 == 0) return RecordingEngine::want();
            stream->wake();
            return {};
        }
    } sleepy;
    World world(1);
    RecordingEngine client;
    std::unique_ptr<Stream> stream;
    auto listener = world.listen(elm, [&](std::unique_ptr<Stream> accepted) {
        stream = std::move(accepted);
        sleepy.stream = stream.get();
        stream->drive(sleepy);
    });
    auto client_stream = world.connect(elm, client);
    client.say(numbered_bytes(1000));
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(sleepy.received, numbered_bytes(1000));
}

TEST(Link, ClosesWhenAnEngineHasFinishedAndAllIsSent) {
    for_each_seed(50, [](std::uint64_t seed) {
        LinkOptions options;
        options.window_bytes = 64;
        Pair pair(seed, options);
        pair.client.say(numbered_bytes(500));
        pair.client.finish = true;
        ASSERT_TRUE(pair.world.run_until_quiet(plenty));
        EXPECT_EQ(pair.client.closed_count, 1);
        EXPECT_FALSE(pair.client.why) << "it was its own wish";
        EXPECT_EQ(pair.server.received, numbered_bytes(500)) << "before it hears of the end";
        EXPECT_EQ(pair.server.closed_count, 1);
        EXPECT_EQ(pair.server.why->code, Code::disconnected);
        EXPECT_TRUE(pair.world.network().links().empty());
    });
}

TEST(Link, TakesWhatNobodyWantsFromAPeerThatListensAfterwards) {
    for_each_seed(20, [](std::uint64_t seed) {
        Pair pair(seed, {.window_bytes = 1000});
        pair.client.say(numbered_bytes(10'000));
        pair.client.room = 0;
        pair.client.on_sent = [&] {
            if (pair.client.sent_count < pair.client.outgoing.size()) return;
            pair.client.room = 4096;
            pair.client_stream->wake();
        };
        pair.server.say(numbered_bytes(5'000));
        pair.server.finish = true;
        EXPECT_TRUE(pair.world.run_until_quiet(plenty));
        EXPECT_EQ(pair.client.received, numbered_bytes(5'000));
        EXPECT_EQ(pair.server.closed_count, 1);
        EXPECT_TRUE(pair.server.received.empty());
    });
}

TEST(Link, TellsNobodyWhoDestroyedItsStream) {
    Pair pair(1);
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    pair.client.say(bytes_of("last words"));
    pair.client_stream->wake();
    pair.world.run_for(Duration(0));
    pair.client_stream.reset();
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    EXPECT_EQ(pair.client.closed_count, 0);
    EXPECT_EQ(text_of(pair.server.received), "last words");
    EXPECT_EQ(pair.server.closed_count, 1);
}

TEST(Link, ResetsAPeerThatSendsToNobody) {
    Pair pair(1);
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    pair.server.room = 0;  // so that it does not notice the goodbye
    pair.client.say(bytes_of("unread"));
    pair.client_stream->wake();
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    pair.client_stream.reset();
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    EXPECT_EQ(pair.server.closed_count, 0);
    pair.server.say(bytes_of("hello?"));
    pair.server_stream->wake();
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    EXPECT_EQ(pair.server.closed_count, 1);
    EXPECT_EQ(pair.server.why->code, Code::disconnected);
}

TEST(Link, DeliversToAnAcceptorThatIsDrivenLate) {
    World world(1);
    RecordingEngine client, server;
    std::unique_ptr<Stream> server_stream;
    auto listener = world.listen(
        elm, [&](std::unique_ptr<Stream> stream) { server_stream = std::move(stream); });
    auto client_stream = world.connect(elm, client);
    client.say(bytes_of("early"));
    client.finish = true;
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(client.closed_count, 1);
    server_stream->drive(server);
    EXPECT_TRUE(server.received.empty()) << "not from inside drive()";
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(text_of(server.received), "early");
    EXPECT_EQ(server.closed_count, 1);
}

TEST(Link, TicksAtTheDeadlineAlsoBeforeItIsOpen) {
    Pair pair(1);
    pair.client.wanted_tick = Instant{10};
    pair.world.run_for(1s);
    EXPECT_EQ(pair.client.ticks, std::vector<Instant>{Instant{10}});

    pair.client.wanted_tick = pair.world.now() + 5ms;
    pair.client_stream->wake();
    pair.world.run_for(4ms);
    pair.client.wanted_tick = pair.world.now() + 7ms;  // it changes its mind
    pair.client_stream->wake();
    pair.world.run_for(6ms);
    EXPECT_EQ(pair.client.ticks.size(), 1u);
    pair.world.run_for(1ms);
    ASSERT_EQ(pair.client.ticks.size(), 2u);
    EXPECT_EQ(pair.client.ticks[1], pair.world.now());
}

TEST(Link, LetsAnEngineGiveUpBeforeItIsOpen) {
    Pair pair(1);
    pair.client.wanted_tick = Instant{10};
    pair.client.on_tick = [&] { pair.client.finish = true; };
    ASSERT_TRUE(pair.world.run_until_quiet(plenty));
    EXPECT_EQ(pair.client.opened_count, 0);
    EXPECT_EQ(pair.client.closed_count, 1);
    EXPECT_FALSE(pair.client.why);
    EXPECT_EQ(pair.server.closed_count, 1);
}

TEST(Link, EndsWhenNobodyListens) {
    World world(1);
    RecordingEngine engine;
    auto stream = world.connect(elm, engine);
    ASSERT_TRUE(stream);
    EXPECT_EQ(engine.closed_count, 0) << "not from inside connect()";
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(engine.opened_count, 0);
    EXPECT_EQ(engine.closed_count, 1);
    EXPECT_EQ(engine.why->code, Code::io_failed);
}

TEST(Link, EndsWhenTheAcceptorDropsItAtOnce) {
    World world(1);
    RecordingEngine engine;
    auto listener = world.listen(elm, [](std::unique_ptr<Stream>) {});
    auto stream = world.connect(elm, engine);
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(engine.closed_count, 1);
    EXPECT_EQ(engine.why->code, Code::disconnected);
}

/// An engine that, in one of its calls, destroys its stream and then itself.
struct Suicide {
    using Hook = std::function<void()> RecordingEngine::*;

    static void run(std::uint64_t seed, Hook hook) {
        World world(seed);
        auto client = std::make_unique<RecordingEngine>();
        RecordingEngine server;
        std::unique_ptr<Stream> client_stream, server_stream;
        auto listener = world.listen(elm, [&](std::unique_ptr<Stream> stream) {
            server_stream = std::move(stream);
            server_stream->drive(server);
        });
        client_stream = std::move(*world.connect(elm, *client));
        bool done = false;
        (*client).*hook = [&] {
            client_stream.reset();
            client.reset();
            done = true;
        };
        client->say(numbered_bytes(1000));
        client->wanted_tick = Instant{500'000};
        server.say(numbered_bytes(1000));
        server.finish = hook == &RecordingEngine::on_closed;
        EXPECT_TRUE(world.run_until_quiet(plenty));
        EXPECT_TRUE(done);
        EXPECT_EQ(server.closed_count, 1);
    }
};

TEST(Link, MayBeDestroyedInsideAnyCall) {
    for_each_seed(20, [](std::uint64_t seed) {
        for (auto hook :
             {&RecordingEngine::on_opened, &RecordingEngine::on_filled, &RecordingEngine::on_sent,
              &RecordingEngine::on_tick, &RecordingEngine::on_closed})
            Suicide::run(seed, hook);
    });
}

TEST(Link, SkipsPiecesThatHoldNothing) {
    // A header without payload lends an empty piece; what follows must still be sent.
    struct : RecordingEngine {
        std::size_t pending(std::span<ConstBuffer> pieces) override {
            if (sent_count == outgoing.size()) return 0;
            pieces[0] = {};
            if (pieces.size() == 1) return 1;
            pieces[1] = ConstBuffer(outgoing).subspan(sent_count);
            return 2;
        }
    } client;
    for_each_seed(20, [&](std::uint64_t seed) {
        World world(seed);
        RecordingEngine server;
        std::unique_ptr<Stream> server_stream;
        auto listener = world.listen(elm, [&](std::unique_ptr<Stream> stream) {
            server_stream = std::move(stream);
            server_stream->drive(server);
        });
        client = {};
        client.say(bytes_of("after nothing"));
        auto stream = world.connect(elm, client);
        ASSERT_TRUE(world.run_until_quiet(plenty));
        EXPECT_EQ(text_of(server.received), "after nothing");
    });
}

TEST(Link, StopsAnEngineThatChangesWhatItLent) {
    struct Fickle final : RecordingEngine {
        std::size_t pending(std::span<ConstBuffer> pieces) override {
            outgoing.at(0) ^= std::byte{1};
            pieces[0] = outgoing;
            return 1;
        }
    };
    auto run = [] {
        for (std::uint64_t seed = 1; seed <= 100; ++seed) {
            World world(seed);
            Fickle fickle;
            auto listener = world.listen(elm, [](std::unique_ptr<Stream>) {});
            fickle.say(bytes_of("x"));
            auto stream = world.connect(elm, fickle);
            world.run_until_quiet(plenty);
        }
    };
    EXPECT_DEATH(run(), "pending_gave_the_same_bytes|lent_bytes_are_unchanged");
}

TEST(Link, StopsAnEngineThatReusesWhatItLentBeforeItIsSent) {
    // It answers each byte out of the same place, without waiting until the last one has gone.
    struct Hasty final : RecordingEngine {
        void filled(std::size_t count) override {
            RecordingEngine::filled(count);
            outgoing.assign(1, received.back());
            sent_count = 0;
        }
        void sent(std::size_t) override { sent_count = outgoing.size(); }
    };
    auto run = [] {
        for (std::uint64_t seed = 1; seed <= 100; ++seed) {
            World world(seed);
            Hasty hasty;
            RecordingEngine server;
            std::unique_ptr<Stream> server_stream;
            auto listener = world.listen(elm, [&](std::unique_ptr<Stream> stream) {
                server_stream = std::move(stream);
                server_stream->drive(server);
            });
            server.say(bytes_of("one answer to each of these"));
            auto stream = world.connect(elm, hasty);
            world.run_until_quiet(plenty);
        }
    };
    EXPECT_DEATH(run(), "lent_bytes_are_unchanged");
}

}  // namespace
}  // namespace weft::sim
