// SPDX-License-Identifier: Apache-2.0
#include "linux/stream_condition.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weft::linux {
namespace {

TEST(AStreamsCondition, CountsTheSegmentsOfATcpConnection) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0),
              client = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(listener, generic, size), 0);
    ASSERT_EQ(::listen(listener, 1), 0);
    ASSERT_EQ(::getsockname(listener, generic, &size), 0);
    ASSERT_EQ(::connect(client, generic, size), 0);
    ASSERT_EQ(::send(client, "hello", 5, 0), 5);
    const auto condition = condition_of(client);
    ASSERT_TRUE(condition);
    EXPECT_EQ(condition->segments_sent, 1u);
    EXPECT_EQ(condition->segments_resent, 0u);
    EXPECT_GT(condition->round_trip, Duration{});
    ::close(client);
    ::close(listener);
}

TEST(AStreamsCondition, IsNotKnownOfWhatIsNoTcp) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    EXPECT_FALSE(condition_of(ends[0]));
    ::close(ends[0]);
    ::close(ends[1]);
}

}  // namespace
}  // namespace weft::linux
