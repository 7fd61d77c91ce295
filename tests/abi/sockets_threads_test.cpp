// SPDX-License-Identifier: Apache-2.0
// Several threads at one socket: what one of them waits for must not be lost to another.
#include <pthread.h>

#include <atomic>
#include <chrono>

#include "abi/sockets_fixture.hpp"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

class SocketsThreads : public SocketsTest {
protected:
    static char byte_at(std::size_t offset) { return static_cast<char>(offset * 31 >> 3); }

    static void send_pattern(int socket, std::size_t size) {
        std::string piece;
        for (std::size_t sent = 0, round = 0; sent < size; ++round) {
            piece.resize(std::min(1 + round * 7919 % 100'000, size - sent));
            for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = byte_at(sent + i);
            send(socket, piece);
            sent += piece.size();
        }
    }
    static void expect_pattern(int socket, std::size_t size) {
        std::vector<char> piece(70'000);
        for (std::size_t got = 0, round = 0; got < size; ++round) {
            auto count = rrecv(socket, piece.data(), 1 + round * 104'729 % piece.size(), 0);
            ASSERT_GT(count, 0);
            for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
                ASSERT_EQ(piece[i], byte_at(got + i)) << got + i;
            got += static_cast<std::size_t>(count);
        }
    }
};

TEST_F(SocketsThreads, SendAndReceiveAtOnce) {
    constexpr std::size_t size = 16 << 20;
    connect();
    std::vector<std::thread> threads;
    for (int socket : {client, server}) {
        threads.emplace_back([=] { send_pattern(socket, size); });
        threads.emplace_back([=] { expect_pattern(socket, size); });
    }
    for (auto& thread : threads) thread.join();
}

TEST_F(SocketsThreads, PollWhileAnotherReceives) {
    connect();
    constexpr int rounds = 200;
    std::thread poller([&] {
        for (int round = 0; round < rounds; ++round) {
            pollfd all[] = {{client, POLLIN, 0}, {listener, POLLIN, 0}};
            ASSERT_EQ(rpoll(all, 2, 10'000), 1);
            ASSERT_EQ(receive(client, 1), "a");
        }
    });
    std::thread receiver([&] {
        for (int round = 0; round < rounds; ++round) {
            ASSERT_EQ(receive(server, 1), "b");
            send(server, "a");
        }
    });
    for (int round = 0; round < rounds; ++round) send(client, "b");
    poller.join();
    receiver.join();
}

TEST_F(SocketsThreads, AreCancelledInTheirSleep) {
    connect();
    auto sleep = [](void* socket) -> void* {
        char byte;
        rrecv(*static_cast<int*>(socket), &byte, 1, 0);
        return nullptr;
    };
    pthread_t first, second;
    ASSERT_EQ(pthread_create(&first, nullptr, sleep, &server), 0);
    std::this_thread::sleep_for(50ms);
    pthread_cancel(first);
    void* outcome = nullptr;
    pthread_join(first, &outcome);
    EXPECT_EQ(outcome, PTHREAD_CANCELED);
    send(client, "y");
    EXPECT_EQ(receive(server, 1), "y");

    ASSERT_EQ(pthread_create(&second, nullptr, sleep, &server), 0);
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(rshutdown(server, SHUT_RDWR), 0) << "and a shutdown wakes as well";
    pthread_join(second, &outcome);
    EXPECT_EQ(outcome, nullptr);
}

TEST_F(SocketsThreads, AreWokenWhenTheirListenerIsClosed) {
    std::atomic<int> accepted = 0;
    std::thread acceptor([&] { accepted = raccept(listener, nullptr, nullptr); });
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(rclose(listener), 0);
    acceptor.join();
    EXPECT_EQ(accepted, -1);
    listener = -1;
}

}  // namespace
}  // namespace weft::test
