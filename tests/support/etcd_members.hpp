// SPDX-License-Identifier: Apache-2.0
// Three etcd of the machine's own on loopback ports, which end with the test.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/world.hpp"

namespace weft::test {

class EtcdMembers {
public:
    static constexpr std::size_t count = 3;

    static bool is_installed() { return std::system("command -v etcd > /dev/null 2>&1") == 0; }

    EtcdMembers() {
        std::string name = testing::TempDir() + "/weft-etcd-XXXXXX";
        folder_ = ::mkdtemp(name.data());
        for (std::size_t i = 0; i < count; ++i) {
            clients_[i] = free_port();
            peers_[i] = free_port();
        }
        for (std::size_t i = 0; i < count; ++i) start(i);
    }
    ~EtcdMembers() {
        for (std::size_t i = 0; i < count; ++i) kill(i);
        std::filesystem::remove_all(folder_);
    }

    std::vector<Address> addresses() const {
        std::vector<Address> all;
        for (auto port : clients_) all.push_back(Address::tcp("127.0.0.1", port));
        return all;
    }
    void start(std::size_t which) {
        std::string cluster;
        for (std::size_t i = 0; i < count; ++i)
            cluster += (i ? "," : "") + name_of(i) + "=" + url(peers_[i]);
        const std::vector<std::string> words{
            "etcd", "--name", name_of(which), "--data-dir", folder_ + "/" + name_of(which),
            "--listen-client-urls", url(clients_[which]), "--advertise-client-urls",
            url(clients_[which]), "--listen-peer-urls", url(peers_[which]),
            "--initial-advertise-peer-urls", url(peers_[which]), "--initial-cluster", cluster,
            // A machine that is busy with other tests must not make it look for leaders.
            "--heartbeat-interval", "200", "--election-timeout", "2000"};
        std::vector<char*> arguments;
        for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
        arguments.push_back(nullptr);
        const auto parent = ::getpid();
        processes_[which] = ::fork();
        if (processes_[which] != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        ::freopen("/dev/null", "w", stdout);
        ::freopen((folder_ + "/" + name_of(which) + ".log").c_str(), "a", stderr);
        ::execvp("etcd", arguments.data());
        ::_exit(127);
    }
    void kill(std::size_t which) {
        if (processes_[which] <= 0) return;
        ::kill(processes_[which], SIGKILL);
        ::waitpid(processes_[which], nullptr, 0);
        processes_[which] = 0;
    }
    /// It is there, and takes no part: connections open, and nobody speaks.
    void pause(std::size_t which) { ::kill(processes_[which], SIGSTOP); }
    void resume(std::size_t which) { ::kill(processes_[which], SIGCONT); }

private:
    static std::string name_of(std::size_t which) { return "m" + std::to_string(which); }
    static std::string url(std::uint16_t port) {
        return "http://127.0.0.1:" + std::to_string(port);
    }
    static std::uint16_t free_port() {
        const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
        EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
        ::close(socket);
        return ntohs(address.sin_port);
    }

    std::string folder_;
    std::array<std::uint16_t, count> clients_{}, peers_{};
    std::array<pid_t, count> processes_{};
};

}  // namespace weft::test
