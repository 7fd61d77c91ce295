// SPDX-License-Identifier: Apache-2.0
// The sockets of librdmacm as a program would use them, in one thread.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "abi/counting.hpp"
#include "abi/scarcity.hpp"
#include "abi/sockets_fixture.hpp"
#include "abi/verbs_fixture.hpp"

namespace weft::test {
namespace {

TEST_F(SocketsTest, EndOneDirectionAfterTheOther) {
    connect();
    send(client, "hello");
    ASSERT_EQ(rshutdown(client, SHUT_WR), 0);
    EXPECT_EQ(receive(server, 10), "hello");
    EXPECT_EQ(receive(server, 10), "");
    send(server, "world");
    char seen[3];
    EXPECT_EQ(rrecv(client, seen, sizeof seen, MSG_PEEK), 3);
    EXPECT_EQ(receive(client, 5), "world");
    close(server);
    EXPECT_EQ(receive(client, 1), "");
    EXPECT_TRUE(fails_with(ECONNRESET, rsend(client, "x", 1, 0)));
}

TEST_F(SocketsTest, GatherAndScatter) {
    connect();
    char left[] = "left ", right[] = "right";
    iovec parts[] = {{left, 5}, {nullptr, 0}, {right, 5}};
    EXPECT_EQ(rwritev(client, parts, 3), 10);
    char first[3], second[7];
    iovec places[] = {{first, 3}, {second, 7}};
    EXPECT_EQ(rreadv(server, places, 2), 10);
    EXPECT_EQ(std::string(first, 3) + std::string(second, 7), "left right");
}

TEST_F(SocketsTest, ArePolledBesideOtherDescriptors) {
    connect();
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    pollfd all[] = {{server, POLLIN, 0}, {pipe_ends[0], POLLIN, 0}, {listener, POLLIN, 0}};
    EXPECT_EQ(rpoll(all, 3, 20), 0);
    send(client, "x");
    EXPECT_EQ(rpoll(all, 3, 5000), 1);
    EXPECT_EQ(all[0].revents, POLLIN);
    EXPECT_EQ(receive(server, 1), "x");
    ASSERT_EQ(write(pipe_ends[1], "x", 1), 1);
    EXPECT_EQ(rpoll(all, 3, 5000), 1);
    EXPECT_EQ(all[1].revents, POLLIN);
    char byte;
    ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
    dial();
    EXPECT_EQ(rpoll(all, 3, 5000), 1);
    EXPECT_EQ(all[2].revents, POLLIN);
    accept();
    ::close(pipe_ends[0]);
    ::close(pipe_ends[1]);
}

TEST_F(SocketsTest, ArePolledAlone) {
    connect();
    pollfd one{server, POLLIN, 0};
    EXPECT_EQ(rpoll(&one, 1, 20), 0);
    one.events = POLLIN | POLLOUT;
    EXPECT_EQ(rpoll(&one, 1, 5000), 1);
    EXPECT_EQ(one.revents, POLLOUT);
    send(client, "last");
    close(client);
    one.events = POLLIN;
    EXPECT_EQ(rpoll(&one, 1, 5000), 1);
    EXPECT_EQ(one.revents, POLLIN) << "no hang-up before the last bytes";
    EXPECT_EQ(receive(server, 4), "last");
    EXPECT_EQ(rpoll(&one, 1, 5000), 1);
    EXPECT_EQ(one.revents, POLLIN | POLLHUP);
}

TEST_F(SocketsTest, AreSelected) {
    connect();
    send(client, "x");
    fd_set reads, writes;
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_SET(server, &reads);
    FD_SET(client, &reads);
    FD_SET(client, &writes);
    timeval patience{5, 0};
    auto count = rselect(std::max(server, client) + 1, &reads, &writes, nullptr, &patience);
    EXPECT_TRUE(count == 1 || count == 2) << count;
    EXPECT_TRUE(FD_ISSET(client, &writes) || FD_ISSET(server, &reads));
    EXPECT_FALSE(FD_ISSET(client, &reads));
}

TEST_F(SocketsTest, NeedNotWait) {
    ASSERT_EQ(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
    EXPECT_TRUE(fails_with(EAGAIN, raccept(listener, nullptr, nullptr)));
    int socket = rsocket(AF_INET, SOCK_STREAM, 0);
    rfcntl(socket, F_SETFL, O_NONBLOCK);
    auto begun = rconnect(socket, address(), sizeof(sockaddr_in));
    EXPECT_TRUE(begun == 0 || errno == EINPROGRESS);
    pollfd one{socket, POLLOUT, 0};
    EXPECT_EQ(rpoll(&one, 1, 5000), 1);
    EXPECT_EQ(one.revents, POLLOUT);
    int error = -1;
    socklen_t size = sizeof error;
    EXPECT_EQ(rgetsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size), 0);
    EXPECT_EQ(error, 0);
    one.fd = listener, one.events = POLLIN;
    EXPECT_EQ(rpoll(&one, 1, 5000), 1);
    server = accept();

    char byte;
    EXPECT_TRUE(fails_with(EAGAIN, rrecv(socket, &byte, 1, 0)));
    std::string much(1 << 20, 'm');
    std::size_t taken = 0;
    ssize_t count = 0;
    while ((count = rsend(socket, much.data(), much.size(), 0)) > 0)
        taken += static_cast<std::size_t>(count);
    EXPECT_TRUE(fails_with(EAGAIN, count));
    EXPECT_EQ(receive(server, taken).size(), taken);
    rclose(socket);
}

TEST_F(SocketsTest, SayThatNobodyListens) {
    close(listener);
    listener = -1;
    int socket = rsocket(AF_INET, SOCK_STREAM, 0);
    EXPECT_TRUE(fails_with(ECONNREFUSED, rconnect(socket, address(), sizeof(sockaddr_in))));
    EXPECT_TRUE(fails_with(ENOTCONN, rsend(socket, "x", 1, 0)));
    rclose(socket);
}

TEST_F(SocketsTest, RefuseWhatTheyCannotBe) {
    EXPECT_TRUE(fails_with(EOPNOTSUPP, rsocket(AF_INET, SOCK_DGRAM, 0)));
    EXPECT_TRUE(fails_with(EAFNOSUPPORT, rsocket(AF_UNIX, SOCK_STREAM, 0)));
    char byte;
    EXPECT_TRUE(fails_with(EBADF, rrecv(12345, &byte, 1, 0)));
    EXPECT_TRUE(fails_with(EBADF, rclose(0)));
}

TEST_F(SocketsTest, FreeTheirPortWhenClosed) {
    for (int round = 0; round < 10; ++round) {
        connect();
        close(client);
        close(server);
        rclose(listener);
        listen();
    }
}

TEST_F(SocketsTest, MayBeMany) {
    std::vector<std::pair<int, int>> pairs;
    for (int i = 0; i < 50; ++i) {
        connect();
        pairs.emplace_back(client, server);
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) send(pairs[i].first, std::to_string(100 + i));
    for (std::size_t i = 0; i < pairs.size(); ++i)
        EXPECT_EQ(receive(pairs[i].second, 3), std::to_string(100 + i));
}

TEST_F(SocketsTest, WriteWhereThePeerHasMapped) {
    rclose(listener);
    listen(4);
    connect();
    std::vector<char> memory(100'000), bytes(100'000, 7);
    EXPECT_EQ(riomap(client, memory.data(), memory.size(), PROT_WRITE, 0, 5000), 5000);
    send(client, "m");
    EXPECT_EQ(receive(server, 1), "m");
    EXPECT_EQ(riowrite(server, bytes.data(), bytes.size(), 5000, 0), bytes.size());
    EXPECT_EQ(riowrite(server, bytes.data(), 1, 4999, 0), 0u) << "nothing is mapped there";
    send(server, "d");
    EXPECT_EQ(receive(client, 1), "d");
    EXPECT_EQ(memory, bytes);
    EXPECT_EQ(riounmap(client, memory.data(), memory.size()), 0);
    EXPECT_TRUE(fails_with(EINVAL, riounmap(client, memory.data(), memory.size())));
    EXPECT_TRUE(fails_with(ENOMEM, riomap(server, memory.data(), 10, PROT_WRITE, 0, 0)))
        << "the client has no room for mappings";
}

TEST_F(SocketsTest, NoticeThatThePeerWasKilled) {
    if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow into a child";
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    auto child = fork();
    if (child == 0) {
        send(dial(), "abc");
        if (write(ready[1], "x", 1) == 1) pause();
        _exit(0);
    }
    server = accept();
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    EXPECT_EQ(receive(server, 3), "abc");
    kill(child, SIGKILL);
    EXPECT_EQ(receive(server, 1), "");
    EXPECT_TRUE(fails_with(ECONNRESET, rsend(server, "x", 1, 0)));
    waitpid(child, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST_F(SocketsTest, OfAParentCanOnlyBeClosed) {
    if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow into a child";
    connect();
    auto child = fork();
    if (child == 0) {
        char byte;
        auto before = open_descriptors();
        bool good = fails_with(EIO, rrecv(server, &byte, 1, 0)) && rclose(server) == 0 &&
                    rclose(client) == 0 && rclose(listener) == 0;
        good = good && open_descriptors() + 6 == before;  // each has one for events and one more
        int fresh = rsocket(AF_INET, SOCK_STREAM, 0);
        good = good && fresh >= 0 && rconnect(fresh, address(), sizeof(sockaddr_in)) == 0;
        _exit(good && rclose(fresh) == 0 ? 0 : 1);
    }
    int status = -1;
    accept();
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    send(client, "z");
    EXPECT_EQ(receive(server, 1), "z");
}

TEST_F(SocketsTest, OfAParentMayBeClosedUnseen) {
    if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow into a child";
    connect();
    auto child = fork();
    if (child == 0) {
        // As daemons do. The numbers are free now, and are given to new sockets.
        for (int number = 3; number < 1024; ++number) ::close(number);
        bool good = true;
        std::vector<int> fresh;
        for (int i = 0; i < 40 && good; ++i) {
            fresh.push_back(rsocket(AF_INET, SOCK_STREAM, 0));
            good = fresh.back() >= 0;
        }
        for (int one : fresh) good = good && ::fcntl(one, F_GETFD) >= 0;
        _exit(good && rconnect(fresh[0], address(), sizeof(sockaddr_in)) == 0 ? 0 : 1);
    }
    int status = -1;
    accept();
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

/// In a child, which has no attendant yet: with so few descriptors left that something fails, and
/// then with enough.
bool listens_at_the_second_attempt(std::size_t left) {
    int socket = rsocket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (rbind(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) return false;
    {
        FewDescriptors few(left);
        if (rlisten(socket, 4) != 0 && errno != EMFILE) return false;
    }
    if (rlisten(socket, 4) != 0) return false;
    socklen_t size = sizeof at;
    rgetsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
    int caller = rsocket(AF_INET, SOCK_STREAM, 0);
    return rconnect(caller, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 &&
           raccept(socket, nullptr, nullptr) >= 0;
}

TEST_F(SocketsTest, ListenInTheEndWhateverFailedBefore) {
    if (watched_by_thread_sanitizer) GTEST_SKIP() << "it does not follow into a child";
    for (std::size_t left = 0; left < 6; ++left) {
        auto child = fork();
        if (child == 0) {
            ::alarm(10);
            _exit(listens_at_the_second_attempt(left) ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0) << left;
    }
}

TEST_F(SocketsTest, SayThatThereIsNoMemoryLeft) {
    if (watched_by_thread_sanitizer || watched_by_address_sanitizer)
        GTEST_SKIP() << "it has its own ideas of memory";
    auto child = fork();
    if (child == 0) {
        rclose(rsocket(AF_INET, SOCK_STREAM, 0));
        auto* channel = rdma_create_event_channel();
        rlimit none{};
        ::setrlimit(RLIMIT_AS, &none);
        rdma_cm_id* id = nullptr;
        int made = 0;
        for (int i = 0; i < 100'000'000 && made == 0; ++i)
            made = rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP);
        bool is_told = made == -1 && errno == ENOMEM;
        _exit(is_told && fails_with(ENOMEM, rsocket(AF_INET, SOCK_STREAM, 0)) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace weft::test
