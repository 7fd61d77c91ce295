// SPDX-License-Identifier: Apache-2.0
// What a test of the sockets starts from: a listener on the loopback, and pairs made of it.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace weft::test {

class SocketsTest : public testing::Test {
protected:
    SocketsTest() { listen(); }
    ~SocketsTest() override {
        for (int socket : opened_) rclose(socket);
        if (listener >= 0) rclose(listener);
    }

    /// On the port it has, or on any.
    void listen(int mappings = 0) {
        listener = rsocket(AF_INET, SOCK_STREAM, 0);
        ASSERT_GE(listener, 0);
        int yes = 1;
        rsetsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof mappings);
        ASSERT_EQ(rbind(listener, address(), sizeof address_), 0) << std::strerror(errno);
        ASSERT_EQ(rlisten(listener, 8), 0);
        socklen_t size = sizeof address_;
        ASSERT_EQ(rgetsockname(listener, address(), &size), 0);
    }
    sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }
    int dial() {
        int socket = rsocket(AF_INET, SOCK_STREAM, 0);
        EXPECT_EQ(rconnect(socket, address(), sizeof address_), 0) << std::strerror(errno);
        opened_.push_back(socket);
        return socket;
    }
    int accept() {
        pollfd asked{listener, POLLIN, 0};
        EXPECT_EQ(rpoll(&asked, 1, 10'000), 1) << "nobody came";
        rfcntl(listener, F_SETFL, asked.revents ? 0 : O_NONBLOCK);
        int socket = raccept(listener, nullptr, nullptr);
        EXPECT_GE(socket, 0) << std::strerror(errno);
        opened_.push_back(socket);
        return socket;
    }
    void connect() {
        client = dial();
        server = accept();
    }
    void close(int socket) {
        std::erase(opened_, socket);
        EXPECT_EQ(rclose(socket), 0);
    }

    static void send(int socket, const std::string& text) {
        EXPECT_EQ(rsend(socket, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    }
    /// All of so many bytes, or what came before the end.
    static std::string receive(int socket, std::size_t size) {
        std::string text(size, 0);
        auto count = rrecv(socket, text.data(), size, MSG_WAITALL);
        EXPECT_GE(count, 0) << std::strerror(errno);
        text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        return text;
    }
    static bool fails_with(int number, ssize_t result) { return result == -1 && errno == number; }

    int listener = -1, client = -1, server = -1;

private:
    sockaddr_in address_{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    std::vector<int> opened_;
};

}  // namespace weft::test
