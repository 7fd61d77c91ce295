// SPDX-License-Identifier: Apache-2.0
// Streams over real sockets, TCP and Unix alike.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

#include "linux/connection.hpp"
#include "support/stream_fixture.hpp"

namespace weft::linux {
namespace {

using namespace std::chrono_literals;
using test::Checker;
using test::Echo;
using test::Pattern;
using test::TestEngine;

class StreamTest : public StreamFixture {};

TEST_P(StreamTest, CarriesEveryByteBothWaysHoweverItIsCut) {
    Pattern pattern(1);
    std::uint64_t pauses = 0;
    for (std::size_t most : {1u, 100u, 10'000u, 1'000'000u}) {
        std::uint64_t total = most == 1 ? 20'000 : 8'000'000;
        Echo server(most * 2 + 1, 2);
        Checker client(pattern, total, most, 3);
        meet(client, server);
        run_until_closed({&client, &server});
        EXPECT_TRUE(client.all_matched) << "in pieces of up to " << most;
        EXPECT_EQ(client.received, total);
        EXPECT_FALSE(client.why) << "it finished";
        EXPECT_EQ(server.why, (Error{.code = Code::disconnected}));
        pauses += server.pauses;
    }
    EXPECT_GT(pauses, 0u) << "the echo's buffers are small: it must have said stop";
}

TEST_P(StreamTest, CarriesALargeTransferIntoLargePlaces) {
    Pattern pattern(4);
    Echo server(3'000'000, 5);
    Checker client(pattern, 256 << 20, 4'000'000, 6);
    meet(client, server);
    run_until_closed({&client});
    EXPECT_TRUE(client.all_matched);
    EXPECT_EQ(client.received, 256u << 20);
}

TEST_P(StreamTest, ServesTwoHundredConnectionsAndLeaksNoDescriptor) {
    Pattern pattern(7);
    auto before = open_descriptors();
    {
        std::vector<std::unique_ptr<Echo>> servers;
        auto listener = listen([&](std::unique_ptr<Stream> stream) {
            auto echo = std::make_unique<Echo>(5000, static_cast<unsigned>(servers.size()));
            echo->stream = std::move(stream);
            echo->stream->drive(*echo);
            servers.push_back(std::move(echo));
        });
        std::vector<std::unique_ptr<Checker>> clients;
        for (unsigned i = 0; i < 200; ++i) {
            clients.push_back(std::make_unique<Checker>(pattern, 100'000, 3000, i));
            connect(*listener, *clients.back());
        }
        world->run_until([&] {
            return std::all_of(clients.begin(), clients.end(),
                               [](auto& client) { return client->was_closed; });
        });
        for (auto& client : clients) {
            EXPECT_TRUE(client->all_matched);
            EXPECT_EQ(client->received, 100'000u);
            EXPECT_FALSE(client->why);
        }
        EXPECT_EQ(servers.size(), 200u);
    }
    expect_open_descriptors(before);
}

/// Takes what fits a small place, then wants nothing until it is told to go on.
struct Reluctant final : TestEngine {
    std::array<std::byte, 1000> place{};
    std::size_t have = 0;
    std::uint64_t total = 0;
    bool asked_while_full = false;
    Buffer want() override { return Buffer(place).subspan(have); }
    void filled(std::size_t count) override {
        asked_while_full |= have == place.size();
        have += count, total += count;
    }
    void go_on() {
        have = 0;
        stream->wake();
    }
};

struct Talker : TestEngine {
    std::vector<std::byte> words;
    std::size_t gone = 0;
    bool leave_after = false;
    explicit Talker(std::size_t size) : words(size, std::byte{'w'}) {}
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        if (gone == words.size()) return 0;
        pieces[0] = ConstBuffer(words).subspan(gone);
        return 1;
    }
    void sent(std::size_t count) override { gone += count; }
    bool finished() const override { return leave_after; }
};

TEST_P(StreamTest, DoNotWaitForEachOtherWhenBothHaveMuchToSayAtTheEnd) {
    Talker client(32 << 20), server(32 << 20);
    client.leave_after = server.leave_after = true;
    meet(client, server);
    run_until_closed({&client, &server});
    // Whoever is done first may close while the other still speaks.
    EXPECT_EQ(std::max(client.gone, server.gone), 32u << 20);
}

TEST_P(StreamTest, ReadsNothingWhileNothingIsWantedAndAllOfItAfterWaking) {
    Reluctant server;
    Talker client(100'000);
    meet(client, server);
    world->run_until([&] { return server.have == 1000 && client.gone == 100'000; });
    auto timer = world->make_timer([&] { world->stop(); });
    timer->set(world->now() + 20ms);
    world->run();
    EXPECT_EQ(server.total, 1000u);
    EXPECT_FALSE(server.asked_while_full);
    while (server.total < 100'000) {
        auto before = server.total;
        server.go_on();
        world->run_until(
            [&] { return server.total >= std::min<std::uint64_t>(before + 1000, 100'000); });
        ASSERT_EQ(server.total, before + 1000) << "it took more than it wanted";
    }
    EXPECT_FALSE(server.was_closed);
}

TEST_P(StreamTest, GivesWhatWasSentBeforeThePeerLeft) {
    Reluctant server;
    Talker client(5000);
    client.leave_after = true;
    meet(client, server);
    run_until_closed({&client});
    for (int i = 0; i < 5; ++i) {
        world->run_until([&] { return server.have == 1000; });
        server.go_on();
    }
    run_until_closed({&server});
    EXPECT_EQ(server.total, 5000u);
    EXPECT_EQ(server.why, (Error{.code = Code::disconnected}));
}

/// Leaves in the middle of what it is being sent, with some last words.
struct Rude final : Talker {
    using Talker::Talker;
    std::array<std::byte, 10> place{};
    Buffer want() override { return finished() ? Buffer() : Buffer(place); }
    void filled(std::size_t) override { leave_after = true; }
};

struct Listening final : Talker {
    using Talker::Talker;
    bool listens = true;
    std::array<std::byte, 4096> place{};
    std::uint64_t heard = 0;
    Buffer want() override { return listens ? Buffer(place) : Buffer(); }
    void filled(std::size_t count) override { heard += count; }
};

TEST_P(StreamTest, CloseWhenFinishedAndDeliverTheLastWord) {
    Rude server(300'000);
    Listening client(50'000);
    meet(client, server);
    run_until_closed({&client, &server});
    EXPECT_FALSE(server.why);
    EXPECT_EQ(client.heard, 300'000u);
}

TEST_P(StreamTest, DeliverTheLastWordToAPeerThatGoesOnSendingAndListensLater) {
    Rude server(150'000);
    Listening client(10'000'000);
    client.listens = false;
    meet(client, server);
    run_until_closed({&server});
    EXPECT_FALSE(server.why);
    server.stream.reset();  // neither the engine nor its handle need stay for it
    world->run_until([&] { return client.gone == client.words.size() || client.was_closed; });
    EXPECT_EQ(client.gone, client.words.size()) << "what is discarded is still taken";
    client.listens = true;
    client.stream->wake();
    run_until_closed({&client});
    EXPECT_EQ(client.heard, 150'000u);
    EXPECT_EQ(client.why, (Error{.code = Code::disconnected}));
}

/// Drops its own stream, and with it itself as far as the world is concerned, in a chosen call.
struct Suicidal final : TestEngine {
    enum class In { opened, want, filled, pending, sent, tick, closed } in;
    World& world;
    std::array<std::byte, 64> place{};
    bool dropped = false, called_after = false;
    Suicidal(World& the_world, In where) : in(where), world(the_world) {}
    void maybe(In where) {
        called_after |= dropped;
        if (where == in && stream) {
            stream.reset();
            dropped = true;
        }
    }
    void opened() override {
        was_opened = true;
        maybe(In::opened);
    }
    Buffer want() override {
        maybe(In::want);
        return place;
    }
    void filled(std::size_t) override { maybe(In::filled); }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        maybe(In::pending);
        pieces[0] = ConstBuffer(place);
        return was_sent ? 0 : 1;
    }
    bool was_sent = false;
    void sent(std::size_t) override {
        was_sent = true;
        maybe(In::sent);
    }
    std::optional<Instant> deadline() const override {
        if (in != In::tick || dropped) return std::nullopt;
        return Instant{0};
    }
    void tick(Instant) override { maybe(In::tick); }
    void closed(std::optional<Error> reason) override {
        TestEngine::closed(reason);
        maybe(In::closed);
    }
};

TEST_P(StreamTest, MayBeDroppedFromInsideAnyCall) {
    using In = Suicidal::In;
    for (In in : {In::opened, In::want, In::filled, In::pending, In::sent, In::tick, In::closed}) {
        auto before = open_descriptors();
        {
            // It talks first; the answer makes it read; then the peer leaves.
            struct Answer final : Talker {
                using Talker::Talker;
                std::array<std::byte, 64> place{};
                bool heard = false;
                Buffer want() override { return place; }
                void filled(std::size_t) override { heard = true; }
                bool finished() const override { return heard && gone == words.size(); }
            } server(100'000);
            Suicidal client(*world, in);
            auto listener = listen([&](std::unique_ptr<Stream> stream) {
                server.stream = std::move(stream);
                server.stream->drive(server);
            });
            connect(*listener, client);
            world->run_until([&] { return client.dropped && server.was_closed; });
            EXPECT_FALSE(client.called_after) << static_cast<int>(in);
            EXPECT_EQ(client.was_closed, in == In::closed) << static_cast<int>(in);
        }
        expect_open_descriptors(before);
    }
}

TEST_P(StreamTest, TellsOfAPeerThatVanishesInTheMiddleOfAReply) {
    Talker server(50'000'000);  // more than any socket buffer takes
    Reluctant client;
    meet(client, server);
    world->run_until([&] { return server.gone > 0 && client.have > 0; });
    client.stream.reset();
    run_until_closed({&server});
    ASSERT_TRUE(server.why);
    EXPECT_EQ(server.why->code, Code::disconnected);
    EXPECT_LT(server.gone, server.words.size());
}

TEST_P(StreamTest, ClosesForAnEngineThatGivesUpOnAPeerThatDoesNotRead) {
    struct GivesUp final : Talker {
        using Talker::Talker;
        bool given_up = false;
        std::size_t pending(std::span<ConstBuffer> pieces) override {
            return given_up ? 0 : Talker::pending(pieces);
        }
        bool finished() const override { return given_up; }
    };
    GivesUp server(50'000'000);  // more than any socket buffer takes
    Reluctant client;
    meet(client, server);
    world->run_until([&] { return server.gone > 0 && client.have > 0; });
    auto timer = world->make_timer([&] { world->stop(); });
    timer->set(world->now() + 20ms);
    world->run();  // the socket is full by now
    server.given_up = true;
    server.stream->wake();
    run_until_closed({&server});
    EXPECT_FALSE(server.why);
}

TEST_P(StreamTest, TellsAnEngineThatWantsNothingOfAnOrderlyEndOnlyWhenItWantsAgain) {
    Reluctant server;
    Talker client(1000);
    meet(client, server);
    world->run_until([&] { return server.have == 1000; });
    client.stream.reset();
    auto timer = world->make_timer([&] { world->stop(); });
    timer->set(world->now() + 20ms);
    world->run();
    EXPECT_FALSE(server.was_closed) << "it may still have replies to give";
    server.go_on();
    run_until_closed({&server});
    EXPECT_EQ(server.why->code, Code::disconnected);
}

TEST_P(StreamTest, TellsOfAResetEvenAnEngineThatWantsNothing) {
    // Closing with bytes unread is a reset: nothing said from now on could reach the peer.
    struct Server final : Talker {
        using Talker::Talker;
        std::size_t have = 0;
        std::array<std::byte, 100> place{};
        Buffer want() override { return Buffer(place).subspan(have); }
        void filled(std::size_t count) override { have += count; }
    } server(10);
    Talker client(100);
    meet(client, server);
    world->run_until([&] { return server.have == 100 && server.gone == 10; });
    client.stream.reset();
    run_until_closed({&server});
    ASSERT_TRUE(server.why);
    EXPECT_EQ(server.why->code, Code::disconnected);
    EXPECT_NE(server.why->detail, 0) << "and not as if it had been an orderly end";
}

struct Timed final : TestEngine {
    std::optional<Instant> when;
    std::vector<Instant> ticks;
    std::optional<Instant> deadline() const override { return when; }
    void tick(Instant now) override {
        ticks.push_back(now);
        when = std::nullopt;
    }
};

TEST_P(StreamTest, CallsTickAtTheDeadlineAndNotBefore) {
    Timed client;
    Reluctant server;
    auto start = world->now();
    client.when = start + 10ms;
    meet(client, server);
    world->run_until([&] { return client.ticks.size() == 1; });
    EXPECT_GE(client.ticks[0] - start, Duration(10ms));

    // A later deadline replaced by an earlier one, and one that moved away while the timer ran.
    client.when = world->now() + 1h;
    client.stream->wake();
    world->run_until([] { return true; });
    auto earlier = world->now() + 10ms;
    client.when = earlier;
    client.stream->wake();
    auto move_away = world->make_timer([&] { client.when = earlier + 20ms; });
    move_away->set(earlier + Duration(-5ms));
    world->run_until([&] { return client.ticks.size() == 2; });
    EXPECT_GE(client.ticks[1], earlier + 20ms);
}

TEST_P(StreamTest, TellsOfARefusedConnectionLater) {
    Address nobody;
    {
        auto listener = listen([](std::unique_ptr<Stream>) {});
        nobody = listener->address();
    }
    auto before = open_descriptors();
    Timed client;
    auto made = world->connect(nobody, client);
    ASSERT_TRUE(made);
    EXPECT_FALSE(client.was_closed);
    run_until_closed({&client});
    EXPECT_FALSE(client.was_opened);
    bool is_unix = GetParam() == Family::unix_socket;
    EXPECT_EQ(client.why->detail, is_unix ? ENOENT : ECONNREFUSED);
    EXPECT_EQ(client.why->code, is_unix ? Code::not_found : Code::io_failed);
    EXPECT_EQ(open_descriptors(), before);
}

TEST_P(StreamTest, SaysWhoIsAtTheOtherEnd) {
    Reluctant server;
    Timed client;
    meet(client, server);
    switch (GetParam()) {
        case Family::ipv4:
            EXPECT_EQ(server.stream->peer().rfind("127.0.0.1:", 0), 0u);
            break;
        case Family::ipv6:
            EXPECT_EQ(server.stream->peer().rfind("[::1]:", 0), 0u);
            break;
        case Family::unix_socket:
            EXPECT_EQ(server.stream->peer(), "unix (process " + std::to_string(::getpid()) + ")");
            EXPECT_EQ(client.stream->peer(), "unix:" + address().path);
            break;
    }
}

TEST_P(StreamTest, KnowsBothEndsAndHowMuchAPacketHolds) {
    Reluctant server;
    Timed client;
    meet(client, server);
    EXPECT_EQ(client.stream->local(), server.stream->remote());
    EXPECT_EQ(client.stream->remote(), server.stream->local());
    if (GetParam() == Family::unix_socket) {
        EXPECT_EQ(client.stream->remote(), address());
        EXPECT_EQ(client.stream->local(), Address());
        EXPECT_EQ(client.stream->segment_size(), 0u);
        return;
    }
    EXPECT_EQ(client.stream->local().host, address().host);
    EXPECT_EQ(client.stream->remote().host, address().host);
    EXPECT_NE(client.stream->local().port, client.stream->remote().port);
    for (auto* stream : {client.stream.get(), server.stream.get()}) {
        EXPECT_GE(stream->segment_size(), 536u);
        EXPECT_LE(stream->segment_size(), 65535u);
    }
    auto was = server.stream->remote();
    client.stream.reset();
    server.go_on();
    run_until_closed({&server});
    EXPECT_EQ(server.stream->remote(), was) << "for the log line about its end";
    EXPECT_EQ(server.stream->segment_size(), 0u);
}

/// How many of a burst of replies go out with one call: counted by how often sent() is heard.
TEST_P(StreamTest, SendsRepliesMadeInOneTurnWithOneCall) {
    struct Replier final : TestEngine {
        std::vector<std::byte> words = std::vector<std::byte>(100);
        std::size_t replies = 0;
        int calls = 0;
        std::size_t pending(std::span<ConstBuffer> pieces) override {
            auto count = std::min(replies, pieces.size());
            std::fill_n(pieces.begin(), count, ConstBuffer(words));
            return count;
        }
        void sent(std::size_t count) override { replies -= count / words.size(), ++calls; }
    } server;
    Timed client;
    meet(client, server);
    for (int i = 0; i < 30; ++i) {
        world->defer([&] {
            ++server.replies;
            server.stream->wake();
        });
    }
    world->run_until([&] { return server.calls > 0; });
    EXPECT_EQ(server.replies, 0u);
    EXPECT_EQ(server.calls, 1);
}

INSTANTIATE_TEST_SUITE_P(Sockets, StreamTest,
                         testing::Values(Family::ipv4, Family::ipv6, Family::unix_socket),
                         [](const auto& family) {
                             switch (family.param) {
                                 case Family::ipv4:
                                     return "Ipv4";
                                 case Family::ipv6:
                                     return "Ipv6";
                                 case Family::unix_socket:
                                     return "Unix";
                             }
                             return "";
                         });

}  // namespace
}  // namespace weft::linux
