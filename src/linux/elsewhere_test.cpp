// SPDX-License-Identifier: Apache-2.0
// Worlds whose program sleeps elsewhere, on their descriptor, or forks.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "support/stream_fixture.hpp"

namespace weft::linux {
namespace {

using namespace std::chrono_literals;
using test::TestEngine;

struct Hearer final : TestEngine {
    std::array<std::byte, 100> place{};
    std::size_t have = 0;
    Buffer want() override { return Buffer(place).subspan(have); }
    void filled(std::size_t count) override { have += count; }
};

struct Sayer final : TestEngine {
    std::array<std::byte, 10> words{};
    bool speaks = false;
    std::size_t gone = 0;
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        if (!speaks || gone == words.size()) return 0;
        pieces[0] = ConstBuffer(words).subspan(gone);
        return 1;
    }
    void sent(std::size_t count) override { gone += count; }
};

class ElsewhereTest : public StreamFixture {
protected:
    /// Moves the world only when its descriptor or its time says so.
    template <class Done>
    void sleep_until(Done done) {
        auto too_late = world->now() + 30s;
        while (!done()) {
            pollfd one{world->descriptor(), POLLIN, 0};
            auto due = world->due();
            auto wait = due ? std::max((*due - world->now()).count() / 1'000'000 + 1, 0l) : 1000;
            ::poll(&one, 1, static_cast<int>(wait));
            world->turn(Wait::not_at_all);
            ASSERT_LT(world->now(), too_late);
        }
    }
};

TEST_P(ElsewhereTest, MovesAllThereIsToMove) {
    Hearer server;
    Sayer client;
    meet(client, server);
    client.speaks = true;
    client.stream->wake();
    sleep_until([&] { return server.have == client.words.size(); });
}

TEST_P(ElsewhereTest, SaysWhenATurnIsDue) {
    limit->cancel();
    world->turn(Wait::not_at_all);
    EXPECT_FALSE(world->due());
    bool rung = false;
    auto timer = world->make_timer([&] { rung = true; });
    auto when = world->now() + 20ms;
    timer->set(when);
    EXPECT_EQ(world->due(), when);
    sleep_until([&] { return rung; });
    world->defer([] {});
    ASSERT_TRUE(world->due());
    EXPECT_LT(*world->due(), world->now());
}

TEST_P(ElsewhereTest, PushesWhatWaitsAndHearsNothing) {
    Hearer server;
    Sayer client;
    meet(client, server);
    sleep_until([&] { return server.stream != nullptr; });
    client.speaks = true;
    client.stream->wake();
    world->push();
    EXPECT_EQ(client.gone, client.words.size());
    EXPECT_EQ(server.have, 0u);
}

TEST_P(ElsewhereTest, IsAbandonedByAChildWithoutHarmToTheParent) {
    Hearer server;
    Sayer client;
    meet(client, server);
    sleep_until([&] { return server.stream != nullptr; });
    auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        auto before = open_descriptors();
        world->abandon();
        bool fewer = open_descriptors() + 3 <= before;  // both ends, and the epoll
        ::_exit(fewer && world->descriptor() < 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    client.speaks = true;
    client.stream->wake();
    sleep_until([&] { return server.have == client.words.size(); });
}

TEST(ConnectFrom, BindsTheOwnEndBesideAPortThatIsKept) {
    auto made = open_linux_world({.files = FileEngine::none});
    ASSERT_TRUE(made);
    auto& world = **made;
    EXPECT_EQ(world.file_engine(), FileEngine::none);
    EXPECT_FALSE(world.open_disk({.path = "/dev/null"}));
    std::unique_ptr<Stream> accepted;
    auto listener = world.listen(Address::tcp("127.0.0.1", 0), [&](std::unique_ptr<Stream> stream) {
        accepted = std::move(stream);
    });
    ASSERT_TRUE(listener);
    Hearer client;
    auto stream = world.connect((*listener)->address(), client, Address::tcp("127.0.0.7", 0));
    ASSERT_TRUE(stream);
    world.run_until([&] { return accepted != nullptr; });
    EXPECT_EQ(accepted->remote().host, "127.0.0.7");

    Hearer stranger;
    auto refused = world.connect((*listener)->address(), stranger, Address::tcp("203.0.113.1", 0));
    if (refused) {
        world.run_until([&] { return stranger.was_closed; });
        EXPECT_TRUE(stranger.why);
    }
}

INSTANTIATE_TEST_SUITE_P(Streams, ElsewhereTest,
                         testing::Values(Family::ipv4, Family::unix_socket));

}  // namespace
}  // namespace weft::linux
