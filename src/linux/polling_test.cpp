// SPDX-License-Identifier: Apache-2.0
// Worlds that are driven by a loop of the caller's: polled, or one turn at a time.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <chrono>
#include <csignal>
#include <vector>

#include "linux/event_loop.hpp"
#include "linux/hot_list.hpp"
#include "support/stream_fixture.hpp"
#include "support/test_request.hpp"

namespace weft::linux {
namespace {

using namespace std::chrono_literals;
using test::Checker;
using test::Echo;
using test::Pattern;
using test::TestEngine;

class PollingTest : public StreamFixture {
protected:
    void SetUp() override {
        StreamFixture::SetUp();
        too_late = world->now() + 60s;
    }
    template <class Done>
    void poll_until(Done done) {
        while (!done()) {
            world->poll();
            ASSERT_LT(world->now(), too_late) << "this took too long";
        }
    }
    Instant too_late;
};

TEST_P(PollingTest, CarriesEveryByteBothWays) {
    Pattern pattern(1);
    for (std::size_t most : {10u, 10'000u, 1'000'000u}) {
        std::uint64_t total = most == 10 ? 50'000 : 8'000'000;
        Echo server(most * 2 + 1, 2);
        Checker client(pattern, total, most, 3);
        meet(client, server);
        poll_until([&] { return client.was_closed && server.was_closed; });
        EXPECT_TRUE(client.all_matched) << "in pieces of up to " << most;
        EXPECT_EQ(client.received, total);
        EXPECT_FALSE(client.why);
        EXPECT_EQ(server.why, (Error{.code = Code::disconnected}));
    }
}

TEST_P(PollingTest, ServesMoreConnectionsThanCanBeHot) {
    Pattern pattern(7);
    std::vector<std::unique_ptr<Echo>> servers;
    auto listener = listen([&](std::unique_ptr<Stream> stream) {
        servers.push_back(std::make_unique<Echo>(5000, static_cast<unsigned>(servers.size())));
        servers.back()->stream = std::move(stream);
        servers.back()->stream->drive(*servers.back());
    });
    std::vector<std::unique_ptr<Checker>> clients;
    for (unsigned i = 0; i < 5 * limits::hot_connections; ++i) {
        clients.push_back(std::make_unique<Checker>(pattern, 100'000, 3000, i));
        connect(*listener, *clients.back());
    }
    for (auto& client : clients) {
        poll_until([&] { return client->was_closed; });
        EXPECT_TRUE(client->all_matched);
        EXPECT_EQ(client->received, 100'000u);
    }
}

/// Answers every octet it hears from inside filled().
struct Replier final : TestEngine {
    std::array<std::byte, 64> place{};
    std::size_t heard = 0, to_send = 0;
    Buffer want() override { return place; }
    void filled(std::size_t count) override { heard += count, to_send += count; }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        pieces[0] = ConstBuffer(place).first(std::min(to_send, place.size()));
        return to_send > 0 ? 1 : 0;
    }
    void sent(std::size_t count) override { to_send -= count; }
};

/// A socket of somebody who is no world, and waits for answers a few seconds at most.
Descriptor plain_client(const Address& address) {
    auto place = resolve(address, Purpose::connect)->front();
    Descriptor made(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(made.number(), place.data(), place.size), 0);
    timeval patience{5, 0};
    ::setsockopt(made.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return made;
}

TEST_P(PollingTest, AnswersInTheSameTurn) {
    Replier server;
    auto listener = listen([&](std::unique_ptr<Stream> stream) {
        server.stream = std::move(stream);
        server.stream->drive(server);
    });
    auto client = plain_client(listener->address());
    std::array<char, 10> words{};
    for (int round = 1; round <= 100; ++round) {
        ASSERT_EQ(::send(client.number(), words.data(), words.size(), 0), 10);
        auto all_heard = [&] { return server.heard == round * words.size(); };
        if (round % 2 == 0) poll_until(all_heard);
        while (!all_heard()) world->turn(Wait::until_something_happens);
        // Nobody drives the world now: what has not left will not come.
        ASSERT_EQ(::recv(client.number(), words.data(), words.size(), MSG_WAITALL), 10);
    }
}

TEST_P(PollingTest, SendsWhatWasBegunBetweenTwoTurns) {
    Replier server;
    auto listener = listen([&](std::unique_ptr<Stream> stream) {
        server.stream = std::move(stream);
        server.stream->drive(server);
    });
    auto client = plain_client(listener->address());
    poll_until([&] { return server.stream != nullptr; });
    std::array<char, 10> words{};
    for (int round = 0; round < 3 * static_cast<int>(limits::tries_between_looks); ++round) {
        server.to_send = words.size();
        server.stream->wake();
        round % 2 == 0 ? world->poll() : world->turn(Wait::until_something_happens);
        ASSERT_EQ(server.to_send, 0u);
        ASSERT_EQ(::recv(client.number(), words.data(), words.size(), MSG_WAITALL), 10);
    }
}

TEST_P(PollingTest, HearsNewcomersTimersAndTasksWhileAConnectionIsHot) {
    Pattern pattern(1);
    Echo server(1000, 2);
    Checker client(pattern, ~std::uint64_t{0}, 64, 3);  // never ends
    meet(client, server);
    poll_until([&] { return client.received > 10'000; });
    int accepted = 0, rung = 0, ran = 0;
    auto listener = listen([&](std::unique_ptr<Stream>) { ++accepted; });
    auto newcomer = plain_client(listener->address());
    auto timer = world->make_timer([&] { ++rung; });
    timer->set(world->now() + 1ms);
    world->defer([&] { ++ran; });
    poll_until([&] { return accepted == 1 && rung == 1 && ran == 1; });
    auto before = client.received;
    poll_until([&] { return client.received > before; });
}

TEST_P(PollingTest, MayLoseAStreamInTheMiddleOfIt) {
    struct Quitter final : TestEngine {
        std::array<std::byte, 8> place{};
        int heard = 0;
        Buffer want() override { return place; }
        void filled(std::size_t) override {
            if (++heard == 20) stream.reset();
        }
    } server;
    auto listener = listen([&](std::unique_ptr<Stream> stream) {
        server.stream = std::move(stream);
        server.stream->drive(server);
    });
    auto client = plain_client(listener->address());
    std::array<char, 8> words{};
    for (int round = 1; round <= 20; ++round) {
        ASSERT_EQ(::send(client.number(), words.data(), words.size(), 0), 8);
        poll_until([&] { return server.heard == round; });
    }
    for (int i = 0; i < 100; ++i) world->poll();
    EXPECT_EQ(server.heard, 20);
    EXPECT_EQ(::recv(client.number(), words.data(), words.size(), 0), 0);
}

TEST_P(PollingTest, FinishesADiskRequestMadeBetweenTwoTurns) {
    // Without the ring's or threads' part of the work done first, this would wait for ever.
    auto disk = std::move(*world->open_disk({.path = "/proc/self/exe", .read_only = true}));
    for (bool polled : {false, true}) {
        test::TestRequest request(BlockOperation::read, 0, 4);
        disk->submit(request);
        while (!request.done() && world->now() < too_late)
            polled ? world->poll() : world->turn(Wait::until_something_happens);
        EXPECT_TRUE(request.succeeded());
    }
}

INSTANTIATE_TEST_SUITE_P(Sockets, PollingTest, testing::Values(Family::ipv4, Family::unix_socket),
                         [](const auto& family) {
                             return family.param == Family::ipv4 ? "Ipv4" : "Unix";
                         });

struct LoopTest : testing::Test {
    std::unique_ptr<EventLoop> loop = std::move(*EventLoop::make());
};

TEST_F(LoopTest, TakesATurnWithoutWaiting) {
    int ran = 0;
    loop->turn(Wait::not_at_all);  // the test is that it returns
    loop->defer([&] { ++ran; });
    loop->turn(Wait::not_at_all);
    EXPECT_EQ(ran, 1);
}

TEST_F(LoopTest, WaitsForNothingElseIfATaskIsThere) {
    int ran = 0;
    loop->defer([&] { ++ran; });
    loop->turn(Wait::until_something_happens);
    EXPECT_EQ(ran, 1);
}

/// Tried for ever, as one who always receives.
struct AlwaysHot final : HotItem {
    explicit AlwaysHot(EventLoop& its_loop) : loop(its_loop) { loop.make_hot(*this); }
    void try_now() override {
        ++tries;
        loop.make_hot(*this);
    }
    EventLoop& loop;
    std::size_t tries = 0;
};

/// Always ready, so it counts how often epoll was asked.
struct LookCounter final : DescriptorHandler {
    explicit LookCounter(EventLoop& its_loop) : loop(its_loop) {
        int both[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
        one = Descriptor(both[0]), other = Descriptor(both[1]);
        EXPECT_TRUE(loop.watch(one.number(), EPOLLOUT, *this));
    }
    ~LookCounter() { loop.forget(one.number(), *this); }
    void ready(std::uint32_t) override { ++looks; }
    EventLoop& loop;
    Descriptor one, other;
    std::size_t looks = 0;
};

TEST_F(LoopTest, AsksEpollSeldomWhilePollingTheHotAndAlwaysOtherwise) {
    LookCounter counter(*loop);
    for (int i = 0; i < 100; ++i) loop->poll();
    EXPECT_EQ(counter.looks, 100u) << "nobody was hot";
    counter.looks = 0;
    std::size_t polls = 100 * limits::tries_between_looks;
    {
        AlwaysHot item(*loop);
        for (std::size_t i = 0; i < polls; ++i) loop->poll();
        EXPECT_GE(counter.looks, 90u);
        EXPECT_LE(counter.looks, 100u);
        EXPECT_EQ(item.tries + counter.looks, polls);

        counter.looks = 0;
        AlwaysHot another(*loop);
        for (std::size_t i = 0; i < polls; ++i) loop->poll();
        EXPECT_GE(counter.looks, 180u) << "the more are tried, the fewer polls between looks";
    }
    counter.looks = 0;
    loop->poll();
    EXPECT_EQ(counter.looks, 1u);
}

}  // namespace
}  // namespace weft::linux
