// SPDX-License-Identifier: Apache-2.0
#include "linux/socket_address.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "linux/world.hpp"

namespace weft::linux {
namespace {

TEST(SocketAddress, IsTheAddressItWasMadeFrom) {
    for (auto& address : {Address::tcp("192.0.2.7", 10809), Address::tcp("2001:db8::7", 1),
                          Address::tcp("fe80::1%lo", 3260), Address::unix_socket("/run/weft.sock")})
        EXPECT_EQ(resolve(address, Purpose::connect)->front().address(), address);
}

TEST(SocketAddress, IsEmptyForAUnixSocketWithoutAName) {
    int both[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    Descriptor one(both[0]), other(both[1]);
    EXPECT_EQ(own_address(one.number()).address(), Address());
}

TEST(World, ResolvesNamesToNumbers) {
    auto world = std::move(*World::make());
    auto found = world->resolve(Address::tcp("localhost", 7));
    ASSERT_TRUE(found);
    EXPECT_TRUE(std::all_of(found->begin(), found->end(), [](auto& each) {
        return each == Address::tcp("127.0.0.1", 7) || each == Address::tcp("::1", 7);
    }));
    EXPECT_FALSE(found->empty());
    auto path = Address::unix_socket("/run/weft.sock");
    EXPECT_EQ(*world->resolve(path), std::vector{path});
    EXPECT_EQ(world->resolve(Address::tcp("no.such.host.invalid", 1)).error().code,
              Code::not_found);
}

std::string congestion_control(const Descriptor& socket) {
    std::array<char, 16> name{};
    socklen_t size = name.size();
    EXPECT_EQ(::getsockopt(socket.number(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &size), 0);
    return name.data();
}

int buffer_bytes(const Descriptor& socket, int which) {
    int bytes = 0;
    socklen_t size = sizeof bytes;
    EXPECT_EQ(::getsockopt(socket.number(), SOL_SOCKET, which, &bytes, &size), 0);
    return bytes / 2;  // the kernel doubles what it is told, for its own use
}

TEST(WorldOptions, HoldForConnectedAndAcceptedSockets) {
    auto place = resolve(Address::tcp("127.0.0.1", 0), Purpose::listen)->front();
    auto usual = congestion_control(*make_socket(place, {}));
    // Reno is the one that every kernel has and everybody may use.
    LinuxWorldOptions options{
        .congestion_control = "reno", .send_buffer_bytes = 50'000, .receive_buffer_bytes = 60'000};
    auto listening = make_socket(place, options);
    ASSERT_EQ(::bind(listening->number(), place.data(), place.size), 0);
    ASSERT_EQ(::listen(listening->number(), 1), 0);
    auto bound = own_address(listening->number());
    auto connected = make_socket(bound, options);
    ::connect(connected->number(), bound.data(), bound.size);
    Descriptor accepted(::accept4(listening->number(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted.is_open());
    for (auto* socket : {&*connected, &accepted}) {
        EXPECT_EQ(congestion_control(*socket), "reno");
        EXPECT_EQ(buffer_bytes(*socket, SO_SNDBUF), 50'000);
        EXPECT_EQ(buffer_bytes(*socket, SO_RCVBUF), 60'000);
    }
    EXPECT_EQ(congestion_control(*make_socket(place, {})), usual) << "empty: the system's";
}

TEST(WorldOptions, MustNameACongestionControlTheKernelHas) {
    EXPECT_TRUE(World::make({.congestion_control = "reno"}));
    for (const char* name : {"no such", "no such name, and a long one"}) {
        auto made = World::make({.congestion_control = name});
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error(), (Error{.code = Code::not_found, .detail = ENOENT}));
    }
    EXPECT_EQ(open_linux_world({.congestion_control = "no such"}).error().code, Code::not_found);
}

}  // namespace
}  // namespace weft::linux
