// SPDX-License-Identifier: Apache-2.0
#include "node/host_releases.hpp"

#include <gtest/gtest.h>

namespace weft::node {
namespace {

using wire::HostRelease;

TEST(HostReleases, AreToldInOrderUntilTheHostHasHeardOfThem) {
    HostReleases releases;
    for (std::uint64_t command : {70, 50, 60}) EXPECT_TRUE(releases.add(command));
    const std::vector<HostRelease> all{
        {.number = 1, .command = 70}, {.number = 2, .command = 50}, {.number = 3, .command = 60}};
    EXPECT_EQ(releases.next(9), all);
    releases.heard(0);
    EXPECT_EQ(releases.next(2), (std::vector{all[0], all[1]}));
    releases.heard(2);
    EXPECT_EQ(releases.next(9), std::vector{all[2]});
    releases.heard(1);
    EXPECT_EQ(releases.waiting(), 1u) << "an answer that came late";
    releases.heard(3);
    releases.heard(3);
    EXPECT_EQ(releases.waiting(), 0u);
}

TEST(HostReleases, GoOnWhenTheirNumbersComeRound) {
    HostReleases releases;
    for (std::uint32_t i = 1; i < wire::host_release_numbers - 2; ++i) {
        ASSERT_TRUE(releases.add(i));
        releases.heard(i);
    }
    for (std::uint64_t command = 0; command < 5; ++command) EXPECT_TRUE(releases.add(command));
    EXPECT_EQ(releases.next(9).back().number, 2u);
    releases.heard(wire::host_release_numbers - 1);
    EXPECT_EQ(releases.waiting(), 3u);
    releases.heard(1);
    EXPECT_EQ(releases.next(9), (std::vector<HostRelease>{{.number = 2, .command = 4}}));
}

TEST(HostReleases, AreSoManyAtMost) {
    HostReleases releases;
    for (std::size_t i = 0; i < HostReleases::waiting_max; ++i) EXPECT_TRUE(releases.add(i));
    EXPECT_FALSE(releases.add(1));
    releases.heard(static_cast<std::uint32_t>(HostReleases::waiting_max + 5));
    EXPECT_EQ(releases.waiting(), HostReleases::waiting_max) << "nobody has said that yet";
    releases.heard(1);
    EXPECT_TRUE(releases.add(1));
}

}  // namespace
}  // namespace weft::node
