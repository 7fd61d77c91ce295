// SPDX-License-Identifier: Apache-2.0
// What people are told of the connections between boxes, hosts and the controller.
#include <gtest/gtest.h>

#include "support/array_cluster.hpp"

namespace weft::sim {
namespace {

using node::ArrayLinkFacts;
using test::ArrayCluster;

class LinkReportsOnSim : public testing::Test {
protected:
    void SetUp() override {
        array.start_controller();
        for (const auto* name : {"oak", "elm", "ash", "fir"}) array.add_box(name);
        const auto refusal = array.create("photos", raid::Level::raid5, {"oak", "elm", "ash"});
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(array.becomes("photos", raid::VolumeState::healthy));
        disk = &array.attach("photos");
        array.write(*disk, 0, std::vector<std::byte>(1 << 20, std::byte{7}));
    }
    node::LinkReports ask(const std::string& volume) {
        std::optional<node::LinkReports> said;
        array.controller->links(volume, [&](auto refusal, const node::LinkReports& reports) {
            EXPECT_FALSE(refusal) << *refusal;
            said = reports;
        });
        EXPECT_TRUE(array.run_until([&] { return said.has_value(); }));
        return said.value_or(node::LinkReports{});
    }
    bool has_event(const std::string& box, const std::string& part) {
        return std::ranges::any_of(array.controller->events().events(), [&](const auto& event) {
            return event.box == box && event.what.find(part) != std::string::npos;
        });
    }

    ArrayCluster array{3};
    BlockDevice* disk = nullptr;
};

TEST_F(LinkReportsOnSim, ComeFromEveryBoxAndNameBothEnds) {
    const auto said = ask("photos");
    EXPECT_TRUE(said.silent.empty());
    std::uint64_t done = 0;
    std::size_t to_hosts = 0;
    for (const auto& [from, to, link] : said.links) {
        if (link.direction != ArrayLinkFacts::Direction::outbound) continue;
        EXPECT_EQ(link.state, ArrayLinkFacts::State::idle) << from << " to " << to;
        EXPECT_EQ(link.counters.ended, 0u);
        EXPECT_EQ(link.remote.host.empty(), false);
        to_hosts += to == array.controller->hosts().front().name;
        done += link.counters.done;
    }
    EXPECT_EQ(to_hosts, 3u);
    EXPECT_GT(done, 0u);
    EXPECT_EQ(ask("").links.size(), said.links.size());
}

TEST_F(LinkReportsOnSim, AreRefusedOfAVolumeThatIsNotThere) {
    std::optional<std::string> refused;
    array.controller->links("music", [&](auto refusal, const auto&) { refused = refusal; });
    EXPECT_EQ(refused, "there is no volume music");
}

TEST_F(LinkReportsOnSim, TellAfterAWhileWhichBoxDidNotSay) {
    for (auto link : array.world.network().links())
        array.world.network().partition(link, Side::acceptor);
    const auto said = ask("photos");
    EXPECT_EQ(said.silent, (std::vector<std::string>{"ash", "elm", "oak"}));
    for (auto link : array.world.network().links()) array.world.network().heal(link);
}

TEST_F(LinkReportsOnSim, MakeAnEventOfConnectionsThatWereCutAndOfNothingWorse) {
    const auto before = array.controller->events().events().size();
    array.world.run_for(std::chrono::seconds(12));
    EXPECT_EQ(array.controller->events().events().size(), before);
    for (const auto& [from, to, link] : ask("photos").links)
        if (link.direction == ArrayLinkFacts::Direction::outbound && from == "oak")
            if (auto found = array.world.network().find(link.local))
                array.world.network().reset(*found);
    array.world.run_for(std::chrono::seconds(12));
    EXPECT_TRUE(has_event("oak", "connection to"));
    EXPECT_EQ(array.status("photos").state, raid::VolumeState::healthy);
}

}  // namespace
}  // namespace weft::sim
