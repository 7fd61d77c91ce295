// SPDX-License-Identifier: Apache-2.0
// A Linux world with streams of each family between engines of a test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "linux/world.hpp"
#include "support/stream_engines.hpp"

namespace weft::linux {

enum class Family { ipv4, ipv6, unix_socket };

inline std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
        ++count;
    return count;
}

class StreamFixture : public testing::TestWithParam<Family> {
protected:
    void SetUp() override {
        world = std::move(*World::make());
        folder = std::filesystem::temp_directory_path() /
                 ("weft_stream_test_" + std::to_string(::getpid()));
        std::filesystem::create_directory(folder);
        limit = world->make_timer([this] {
            ADD_FAILURE() << "this took too long";
            world->stop();
        });
        limit->set(world->now() + std::chrono::seconds(60));
        // A machine may have no IPv6.
        if (GetParam() == Family::ipv6 && !world->listen(address(), [](auto) {}))
            GTEST_SKIP() << "no IPv6 here";
    }
    void TearDown() override {
        limit.reset();
        world.reset();
        std::filesystem::remove_all(folder);
    }

    Address address() const {
        switch (GetParam()) {
            case Family::ipv4:
                return Address::tcp("127.0.0.1", 0);
            case Family::ipv6:
                return Address::tcp("::1", 0);
            case Family::unix_socket:
                return Address::unix_socket(folder / "socket");
        }
        return {};
    }
    std::unique_ptr<Listener> listen(weft::World::Accepted accepted) {
        auto made = world->listen(address(), std::move(accepted));
        EXPECT_TRUE(made) << "errno " << made.error().detail;
        return std::move(*made);
    }
    void connect(const Listener& listener, test::TestEngine& engine) {
        auto made = world->connect(listener.address(), engine);
        ASSERT_TRUE(made);
        engine.stream = std::move(*made);
        EXPECT_FALSE(engine.was_opened);
        EXPECT_FALSE(engine.was_closed);
    }
    void run_until_closed(std::initializer_list<test::TestEngine*> engines) {
        world->run_until([&] {
            return std::all_of(engines.begin(), engines.end(),
                               [](test::TestEngine* engine) { return engine->was_closed; });
        });
    }
    /// Soon: the sockets of finished streams linger until they have seen their peers' end.
    void expect_open_descriptors(std::size_t count) {
        world->run_until([&] { return open_descriptors() <= count; });
        EXPECT_EQ(open_descriptors(), count);
    }
    /// One client and the stream accepted from it, which `server` drives.
    void meet(test::TestEngine& client, test::TestEngine& server) {
        auto listener = listen([&](std::unique_ptr<Stream> stream) {
            server.stream = std::move(stream);
            server.stream->drive(server);
        });
        connect(*listener, client);
        world->run_until([&] { return client.was_opened && server.stream; });
    }

    std::unique_ptr<World> world;
    std::unique_ptr<Timer> limit;
    std::filesystem::path folder;
};

}  // namespace weft::linux
