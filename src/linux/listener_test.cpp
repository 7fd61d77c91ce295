// SPDX-License-Identifier: Apache-2.0
#include "linux/listener.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "linux/socket_address.hpp"
#include "linux/unix_path.hpp"
#include "linux/world.hpp"
#include "support/stream_engines.hpp"

namespace weft::linux {
namespace {

using namespace std::chrono_literals;
using test::TestEngine;

class ListenerTest : public testing::Test {
protected:
    ListenerTest() {
        std::filesystem::create_directory(folder);
        limit = world->make_timer([this] {
            ADD_FAILURE() << "this took too long";
            world->stop();
        });
        limit->set(world->now() + 20s);
    }
    ~ListenerTest() override {
        limit.reset();
        std::filesystem::remove_all(folder);
    }
    static void ignore(std::unique_ptr<Stream>) {}

    std::unique_ptr<World> world = std::move(*World::make());
    std::unique_ptr<Timer> limit;
    std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                   ("weft_listener_test_" + std::to_string(::getpid()));
    Address path = Address::unix_socket(folder / "socket");
};

TEST_F(ListenerTest, KnowsThePortItWasGiven) {
    auto listener = world->listen(Address::tcp("127.0.0.1", 0), ignore);
    ASSERT_TRUE(listener);
    auto address = (*listener)->address();
    EXPECT_EQ(address.host, "127.0.0.1");
    EXPECT_NE(address.port, 0);
    auto second = world->listen(address, ignore);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error(), (Error{.code = Code::io_failed, .detail = EADDRINUSE}));
}

TEST_F(ListenerTest, AnswersOnEveryAddressOfAName) {
    auto listener = world->listen(Address::tcp("", 0), [](auto) {});
    ASSERT_TRUE(listener);
    auto port = (*listener)->address().port;
    bool has_ipv6 = world->listen(Address::tcp("::1", 0), ignore).has_value();
    for (const char* host : {"127.0.0.1", "::1"}) {
        if (host[0] == ':' && !has_ipv6) continue;
        TestEngine client;
        auto stream = world->connect(Address::tcp(host, port), client);
        ASSERT_TRUE(stream);
        world->run_until([&] { return client.was_opened || client.was_closed; });
        EXPECT_TRUE(client.was_opened) << host;
    }
}

TEST_F(ListenerTest, FindsTheAddressesOfALocalName) {
    auto listener = world->listen(Address::tcp("localhost", 0), ignore);
    ASSERT_TRUE(listener);
    TestEngine client;
    auto stream = world->connect((*listener)->address(), client);
    ASSERT_TRUE(stream);
    world->run_until([&] { return client.was_opened || client.was_closed; });
    EXPECT_TRUE(client.was_opened);
}

TEST_F(ListenerTest, RefusesANameThatIsNobodys) {
    EXPECT_EQ(world->listen(Address::tcp("no.such.host.invalid", 0), ignore).error().code,
              Code::not_found);
    TestEngine client;
    EXPECT_EQ(world->connect(Address::tcp("no.such.host.invalid", 1), client).error().code,
              Code::not_found);
}

int option(const Descriptor& socket, int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(socket.number(), level, name, &value, &size), 0);
    return value;
}

TEST_F(ListenerTest, GivesConnectedAndAcceptedSocketsTheSameOptions) {
    // Accepted ones inherit them from the listening socket; asked of the kernel itself.
    auto made = resolve(Address::tcp("127.0.0.1", 0), Purpose::listen);
    auto listening = make_socket(made->front(), {});
    ASSERT_EQ(::bind(listening->number(), made->front().data(), made->front().size), 0);
    ASSERT_EQ(::listen(listening->number(), 1), 0);
    SocketAddress bound;
    bound.size = sizeof bound.storage;
    ::getsockname(listening->number(), bound.data(), &bound.size);
    auto connected = make_socket(bound, {});
    ::connect(connected->number(), bound.data(), bound.size);
    Descriptor accepted(::accept4(listening->number(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted.is_open());
    for (auto* socket : {&*connected, &accepted}) {
        EXPECT_NE(option(*socket, IPPROTO_TCP, TCP_NODELAY), 0) << "messages are whole";
        EXPECT_NE(option(*socket, SOL_SOCKET, SO_KEEPALIVE), 0) << "a peer may vanish";
        auto noticed_after_s =
            option(*socket, IPPROTO_TCP, TCP_KEEPIDLE) +
            option(*socket, IPPROTO_TCP, TCP_KEEPINTVL) * option(*socket, IPPROTO_TCP, TCP_KEEPCNT);
        EXPECT_EQ(noticed_after_s, 120);
    }
}

TEST_F(ListenerTest, GivesUnixSocketsRoomForALongReply) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    Descriptor one(ends[0]), other(ends[1]);
    auto usual = option(one, SOL_SOCKET, SO_SNDBUF);
    make_room_to_send(one);
    EXPECT_GT(option(one, SOL_SOCKET, SO_SNDBUF), usual);
    auto made = make_socket(resolve(path, Purpose::connect)->front(), {});
    EXPECT_EQ(option(*made, SOL_SOCKET, SO_SNDBUF), option(one, SOL_SOCKET, SO_SNDBUF));
}

TEST_F(ListenerTest, RemovesItsUnixPathAtTheEnd) {
    {
        auto listener = world->listen(path, ignore);
        ASSERT_TRUE(listener);
        EXPECT_TRUE(std::filesystem::exists(path.path));
        EXPECT_EQ((*listener)->address(), path);
    }
    EXPECT_FALSE(std::filesystem::exists(path.path));
}

TEST_F(ListenerTest, LeavesAPathThatIsSomeoneElsesByNow) {
    {
        auto listener = world->listen(path, ignore);
        ASSERT_TRUE(listener);
        std::filesystem::remove(path.path);
        std::ofstream(path.path) << "mine";
    }
    EXPECT_TRUE(std::filesystem::exists(path.path));
}

TEST_F(ListenerTest, RefusesAUnixPathWhereSomebodyAnswers) {
    auto first = world->listen(path, ignore);
    ASSERT_TRUE(first);
    auto second = world->listen(path, ignore);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().detail, EADDRINUSE);
    EXPECT_TRUE(std::filesystem::exists(path.path)) << "the first must not lose its path";
}

TEST_F(ListenerTest, RefusesAPathThatIsNoSocket) {
    std::ofstream(path.path) << "precious";
    EXPECT_EQ(world->listen(path, ignore).error().detail, EEXIST);
    EXPECT_TRUE(std::filesystem::exists(path.path));
}

TEST_F(ListenerTest, TakesOverTheSocketOfAProcessThatDied) {
    auto address = resolve(path, Purpose::listen);
    {
        auto left_behind = make_socket(address->front(), {});
        ASSERT_EQ(::bind(left_behind->number(), address->front().data(), address->front().size), 0);
        ::listen(left_behind->number(), 1);
    }
    ASSERT_TRUE(std::filesystem::exists(path.path));
    EXPECT_TRUE(world->listen(path, ignore));
}

TEST_F(ListenerTest, RefusesAPathTooLongForASocket) {
    auto long_path = Address::unix_socket(std::string(200, 'x'));
    EXPECT_EQ(world->listen(long_path, ignore).error().detail, ENAMETOOLONG);
}

TEST_F(ListenerTest, MayBeDroppedByWhatItCalls) {
    std::unique_ptr<Listener> listener;
    int accepted = 0;
    auto made = world->listen(path, [&](auto) {
        ++accepted;
        listener.reset();
    });
    listener = std::move(*made);
    std::array<TestEngine, 3> clients;
    for (auto& client : clients)
        client.stream = std::move(*world->connect(listener->address(), client));
    world->run_until([&] { return accepted > 0; });
    world->run_until([&] {
        return std::all_of(clients.begin(), clients.end(),
                           [](auto& client) { return client.was_opened || client.was_closed; });
    });
    EXPECT_EQ(accepted, 1);
}

/// Gives up when its time has come.
struct Impatient final : TestEngine {
    std::optional<Instant> when;
    bool gave_up = false;
    std::optional<Instant> deadline() const override { return when; }
    void tick(Instant) override { gave_up = true; }
    bool finished() const override { return gave_up; }
};

TEST_F(ListenerTest, MayBeTooBusyAndThenTheConnectingEngineIsToldTheTime) {
    auto place = std::move(resolve(Address::tcp("127.0.0.1", 0), Purpose::listen)->front());
    auto busy = make_socket(place, {});
    ASSERT_EQ(::bind(busy->number(), place.data(), place.size), 0);
    ASSERT_EQ(::listen(busy->number(), 0), 0);
    place.size = sizeof place.storage;
    ::getsockname(busy->number(), place.data(), &place.size);
    std::vector<Descriptor> crowd;  // more than its backlog: further calls are not answered
    for (int i = 0; i < 3; ++i) {
        crowd.push_back(std::move(*make_socket(place, {})));
        ::connect(crowd.back().number(), place.data(), place.size);
    }
    Impatient client;
    client.when = world->now() + 20ms;
    auto stream = world->connect(Address::tcp("127.0.0.1", place.port()), client);
    ASSERT_TRUE(stream);
    world->run_until([&] { return client.was_closed; });
    EXPECT_FALSE(client.was_opened);
    EXPECT_TRUE(client.gave_up);
    EXPECT_FALSE(client.why) << "it finished by itself";
}

TEST_F(ListenerTest, PausesWhenDescriptorsRunOutAndGoesOnWhenTheyAreBack) {
    std::vector<std::unique_ptr<Stream>> streams;
    auto listener = world->listen(path, [&](auto stream) { streams.push_back(std::move(stream)); });
    ASSERT_TRUE(listener);
    TestEngine client;
    client.stream = std::move(*world->connect(path, client));

    // The client takes the last descriptor; the listener then finds none.
    std::vector<Descriptor> hoard;
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    int next_free = ::dup(0);
    ::close(next_free);
    rlimit tight{static_cast<rlim_t>(next_free) + 1, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &tight);

    world->run_until([&] { return client.was_opened; });
    rusage start{}, end{};
    ::getrusage(RUSAGE_SELF, &start);
    auto timer = world->make_timer([&] { world->stop(); });
    timer->set(world->now() + 60ms);
    world->run();
    ::getrusage(RUSAGE_SELF, &end);
    EXPECT_TRUE(streams.empty());
    auto spent_us = [](const rusage& use) {
        return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1'000'000 + use.ru_utime.tv_usec +
               use.ru_stime.tv_usec;
    };
    EXPECT_LT(spent_us(end) - spent_us(start), 30'000) << "it must not spin";

    ::setrlimit(RLIMIT_NOFILE, &before);
    world->run_until([&] { return !streams.empty(); });
    EXPECT_EQ(streams.size(), 1u);
}

}  // namespace
}  // namespace weft::linux
