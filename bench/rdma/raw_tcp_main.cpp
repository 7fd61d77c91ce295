// SPDX-License-Identifier: Apache-2.0
// What TCP sockets do with no protocol on top: the measure that RDMA over TCP is held against.
//
// send and write are one stream of messages to the serving side, which reads into a buffer of one
// message and answers one octet at the end; read is the same stream the other way, begun by one
// octet. A message is one send() where the kernel takes it whole. TCP_NODELAY is set and buffers
// are the kernel's choice, as with the peers. --depth means nothing here: the socket buffer rules.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "bench_options.hpp"

namespace weft::bench {
namespace {

using Bytes = std::span<std::byte>;

int check(int result, const char* what) {
    if (result < 0) give_up(what, std::strerror(errno));
    return result;
}

class Socket {
public:
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket() { ::close(descriptor_); }
    int descriptor() const { return descriptor_; }

private:
    int descriptor_;
};

sockaddr_in address_of(const BenchOptions& options) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options.port);
    if (::inet_pton(AF_INET, options.host.c_str(), &address.sin_addr) != 1)
        give_up(options.host.c_str(), "not an IPv4 address");
    return address;
}

int new_socket() {
    return check(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
}

int accept_one(const BenchOptions& options) {
    const Socket listener(new_socket());
    const int on = 1;
    check(::setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on),
          "SO_REUSEADDR");
    const sockaddr_in address = address_of(options);
    check(
        ::bind(listener.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
        "bind");
    check(::listen(listener.descriptor(), 1), "listen");
    return check(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC), "accept");
}

int connect_to(const BenchOptions& options) {
    const int descriptor = new_socket();
    const sockaddr_in address = address_of(options);
    check(::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address),
          "connect");
    return descriptor;
}

/// One connection and what both sides do with it, a phase at a time.
class Conversation {
public:
    Conversation(int descriptor, const BenchOptions& options)
        : socket_(descriptor),
          operation_(options.operation),
          flags_(options.waiting == Waiting::polling ? MSG_DONTWAIT : 0),
          message_(options.size) {
        const int on = 1;
        check(::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    }

    void drive(std::uint64_t count) {
        if (operation_ == Operation::ping_pong) {
            play(count);
        } else if (operation_ == Operation::read) {
            send(octet_);
            receive_messages(count);
        } else {
            send_messages(count);
            receive(octet_);
        }
    }

    void serve(std::uint64_t count) {
        if (operation_ == Operation::ping_pong) {
            for (std::uint64_t i = 0; i < count; ++i) {
                receive(message_);
                send(message_);
            }
        } else if (operation_ == Operation::read) {
            receive(octet_);
            send_messages(count);
        } else {
            receive_messages(count);
            send(octet_);
        }
    }

    /// Half of the round trips of the last game were quicker. perftest says the same of its own.
    const std::optional<std::chrono::nanoseconds>& middle_round_trip() const { return middle_; }

private:
    void play(std::uint64_t count) {
        std::vector<std::chrono::nanoseconds> taken(count);
        auto began = std::chrono::steady_clock::now();
        for (auto& each : taken) {
            send(message_);
            receive(message_);
            const auto now = std::chrono::steady_clock::now();
            each = now - std::exchange(began, now);
        }
        const auto middle = taken.begin() + static_cast<std::ptrdiff_t>(count / 2);
        std::nth_element(taken.begin(), middle, taken.end());
        middle_ = *middle;
    }

    void send_messages(std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) send(message_);
    }

    void receive_messages(std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) receive(message_);
    }

    void send(Bytes bytes) {
        while (!bytes.empty()) {
            const ssize_t sent =
                ::send(socket_.descriptor(), bytes.data(), bytes.size(), flags_ | MSG_NOSIGNAL);
            bytes = bytes.subspan(moved(sent, "send"));
        }
    }

    void receive(Bytes bytes) {
        while (!bytes.empty()) {
            const ssize_t received =
                ::recv(socket_.descriptor(), bytes.data(), bytes.size(), flags_);
            if (received == 0) give_up("receive", "the other side closed the connection");
            bytes = bytes.subspan(moved(received, "receive"));
        }
    }

    static std::size_t moved(ssize_t result, const char* what) {
        if (result >= 0) return static_cast<std::size_t>(result);
        if (errno != EAGAIN && errno != EINTR) give_up(what, std::strerror(errno));
        return 0;
    }

    Socket socket_;
    Operation operation_;
    int flags_;
    std::vector<std::byte> message_;
    std::vector<std::byte> octet_ = std::vector<std::byte>(1);
    std::optional<std::chrono::nanoseconds> middle_;
};

void run(const BenchOptions& options) {
    if (options.side == Side::serve) {
        Conversation conversation(accept_one(options), options);
        for (const std::uint64_t count : {options.warm_up_count(), options.count})
            conversation.serve(count);
        return;
    }
    Conversation conversation(connect_to(options), options);
    drive_measured(
        options, [&](std::uint64_t count) { conversation.drive(count); },
        conversation.middle_round_trip());
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) {
    const auto options = weft::bench::parse_bench_options(argc, argv, "Raw TCP, measured.");
    if (!options) return 2;
    weft::bench::run(*options);
    return 0;
}
