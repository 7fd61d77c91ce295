// SPDX-License-Identifier: Apache-2.0
#include "linux/lingering_sockets.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>

#include "linux/loop_timer.hpp"

namespace weft::linux {
namespace {

using namespace std::chrono_literals;

class LingeringSocketsTest : public testing::Test {
protected:
    LingeringSocketsTest() {
        limit = make_timer(*loop, [this] {
            ADD_FAILURE() << "this took too long";
            loop->stop();
        });
        limit->set(loop->now() + 20s);
    }
    /// The peer of a socket that lingers from now on.
    Descriptor peer_of_a_new_one() {
        int both[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both), 0);
        Descriptor ours(both[0]);
        EXPECT_EQ(::send(both[0], "bye", 3, 0), 3);
        sockets.add(std::move(ours));
        return Descriptor(both[1]);
    }
    static bool can_send(const Descriptor& peer) {
        return ::send(peer.number(), "x", 1, MSG_NOSIGNAL) == 1;
    }
    void run_until_there_are(std::size_t count) {
        loop->run_until([&] { return sockets.size() == count; });
    }

    std::unique_ptr<EventLoop> loop = std::move(*EventLoop::make());
    std::vector<std::byte> trash = std::vector<std::byte>(65536);
    LingeringSockets sockets{*loop, trash};
    std::unique_ptr<Timer> limit;
};

TEST_F(LingeringSocketsTest, ShutTheirHalfAtOnceAndEndWithThePeers) {
    auto peer = peer_of_a_new_one();
    char words[8];
    EXPECT_EQ(::recv(peer.number(), words, sizeof words, 0), 3);
    EXPECT_EQ(::recv(peer.number(), words, sizeof words, 0), 0) << "that was all";
    EXPECT_TRUE(can_send(peer));
    loop->run_until([] { return true; });
    EXPECT_EQ(sockets.size(), 1u);
    auto begun = loop->now();
    peer.close();
    run_until_there_are(0);
    EXPECT_LT(loop->now() - begun, Duration(limits::linger_time));
}

TEST_F(LingeringSocketsTest, DoNotLingerWhereThePeerHasEnded) {
    int both[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both), 0);
    Descriptor ours(both[0]), peer(both[1]);
    ASSERT_TRUE(can_send(peer));
    peer.close();
    sockets.add(std::move(ours));
    EXPECT_EQ(sockets.size(), 0u);
}

TEST_F(LingeringSocketsTest, WaitForASilentPeerOnlySoLong) {
    auto peer = peer_of_a_new_one();
    auto begun = loop->now();
    run_until_there_are(0);
    EXPECT_GE(loop->now() - begun, Duration(limits::linger_time));
    EXPECT_FALSE(can_send(peer));
}

TEST_F(LingeringSocketsTest, TakeOnlySoMuchFromAPeerThatNeverStops) {
    auto peer = peer_of_a_new_one();
    std::vector<char> flood(256 * 1024);
    std::size_t taken = 0;
    loop->run_until([&] {
        auto count = ::send(peer.number(), flood.data(), flood.size(), MSG_NOSIGNAL);
        if (count > 0) taken += static_cast<std::size_t>(count);
        return sockets.size() == 0;
    });
    EXPECT_LE(taken, limits::linger_bytes + 4 * flood.size()) << "and a socket buffer";
}

TEST_F(LingeringSocketsTest, MakeRoomByEndingTheOldest) {
    std::vector<Descriptor> peers;
    for (std::size_t i = 0; i < limits::lingering_sockets; ++i)
        peers.push_back(peer_of_a_new_one());
    EXPECT_TRUE(can_send(peers.front()));
    peers.push_back(peer_of_a_new_one());
    EXPECT_EQ(sockets.size(), limits::lingering_sockets);
    EXPECT_FALSE(can_send(peers.front()));
    EXPECT_TRUE(can_send(peers[1]));
    EXPECT_TRUE(can_send(peers.back()));
}

}  // namespace
}  // namespace weft::linux
