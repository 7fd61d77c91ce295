// SPDX-License-Identifier: Apache-2.0
#include "node/array_link_report.hpp"

#include <gtest/gtest.h>

namespace weft::node {
namespace {

ArrayLinkFacts some_link() {
    ArrayLinkFacts link;
    link.direction = ArrayLinkFacts::Direction::outbound;
    link.state = ArrayLinkFacts::State::congested;
    link.peer = wire::host_end(wire::HostSession{7});
    link.local = Address::tcp("10.0.0.1", 40000);
    link.remote = Address::tcp("fd00::2", 7001);
    link.counters = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    link.last_end = "the other side is gone";
    link.since_last_end = std::chrono::seconds(3);
    link.under_way = 12;
    link.waiting = 13;
    link.oldest = std::chrono::milliseconds(1500);
    link.network = StreamCondition{std::chrono::microseconds(250), 100, 7};
    link.resent_per_mille = 70;
    return link;
}

TEST(ALinkReport, ComesOutAsItWentIn) {
    const std::vector links{some_link(), ArrayLinkFacts{}};
    const auto parsed = parse_links(encode_links(links));
    ASSERT_TRUE(parsed);
    ASSERT_EQ(parsed->size(), 2u);
    const auto& link = (*parsed)[0];
    EXPECT_EQ(link.state, links[0].state);
    EXPECT_EQ(link.peer, links[0].peer);
    EXPECT_EQ(link.local, links[0].local);
    EXPECT_EQ(link.remote, links[0].remote);
    EXPECT_EQ(link.counters.connections, 1u);
    EXPECT_EQ(link.counters.octets_received, 11u);
    EXPECT_EQ(link.last_end, links[0].last_end);
    EXPECT_EQ(link.since_last_end, links[0].since_last_end);
    EXPECT_EQ(link.waiting, 13u);
    EXPECT_EQ(link.oldest, links[0].oldest);
    ASSERT_TRUE(link.network);
    EXPECT_EQ(link.network->segments_resent, 7u);
    EXPECT_EQ(link.network->round_trip, links[0].network->round_trip);
    EXPECT_EQ(encode_links(*parsed), encode_links(links));
    EXPECT_FALSE((*parsed)[1].network);
    EXPECT_EQ((*parsed)[1].remote, Address{});
}

TEST(ALinkReport, KeepsItsBounds) {
    std::vector<ArrayLinkFacts> links(links_told_max + 5, some_link());
    links[0].last_end = std::string(500, 'x');
    const auto octets = encode_links(links);
    EXPECT_LE(octets.size(), link_list_bytes_max);
    const auto parsed = parse_links(octets);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->size(), links_told_max);
    EXPECT_EQ((*parsed)[0].last_end, std::string(127, 'x'));
}

TEST(ALinkReport, IsRefusedIfItIsCutOrSaysWhatCannotBe) {
    const auto good = encode_links(std::vector{some_link()});
    for (std::size_t size = 0; size < good.size(); ++size)
        EXPECT_FALSE(parse_links(ConstBuffer(good).first(size))) << size;
    auto bad = good;
    bad[16] = std::byte{2};  // the direction
    EXPECT_FALSE(parse_links(bad));
    bad = good;
    bad[17] = std::byte{99};  // the state
    EXPECT_FALSE(parse_links(bad));
}

}  // namespace
}  // namespace weft::node
