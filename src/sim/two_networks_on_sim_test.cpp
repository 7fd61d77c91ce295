// SPDX-License-Identifier: Apache-2.0
// Machines in two networks, of which one is lost: transfers and sessions go over the other, and
// come back by themselves.
#include "support/array_cluster.hpp"
#include "support/array_party.hpp"

namespace weft::sim {
namespace {

using node::ArrayLinkFacts;
using node::ArrayLinks;
using test::ArrayCluster;
using test::ArrayParty;
using test::box_end;
using test::secret_of;
using test::TestTransfer;

class LinksOverTwoNetworks : public testing::Test {
protected:
    void SetUp() override {
        further = std::move(
            *elm.device->listen(Address::tcp("elm-b", ArrayParty::port),
                                [this](auto request) { elm.links->take(std::move(request)); }));
        ASSERT_TRUE(
            oak.links->know(elm.end, secret_of(9),
                            std::vector{elm.where(), Address::tcp("elm-b", ArrayParty::port)}));
        ASSERT_TRUE(elm.links->know(oak.end, secret_of(9), std::nullopt));
    }
    /// A transfer every hundredth of a second, for so long.
    void work_for(Duration span) {
        for (const auto until = world.now() + span; world.now() < until;) {
            transfers.push_back(
                std::make_unique<TestTransfer>(elm.access(), 0, 5000, transfers.size() % 200));
            oak.links->send(*transfers.back());
            world.run_for(std::chrono::milliseconds(10));
        }
    }
    std::size_t succeeded() const {
        return static_cast<std::size_t>(
            std::ranges::count_if(transfers, [](auto& each) { return each->succeeded(); }));
    }
    std::size_t failed() const {
        return static_cast<std::size_t>(
            std::ranges::count_if(transfers, [](auto& each) { return each->failure.has_value(); }));
    }
    std::string network() const { return oak.links->facts().at(0).remote.host; }

    World world{5};
    ArrayParty oak{world, "oak", box_end(1), {}};
    ArrayParty elm{world, "elm", box_end(2), {}};
    std::unique_ptr<Listener> further;
    std::vector<std::unique_ptr<TestTransfer>> transfers;
};

TEST_F(LinksOverTwoNetworks, GoOverTheOtherWhenOneIsLostAndComeBack) {
    work_for(std::chrono::seconds(1));
    EXPECT_EQ(network(), "elm");
    world.network().lose("elm");
    work_for(std::chrono::seconds(6));
    EXPECT_EQ(network(), "elm-b");
    EXPECT_EQ(failed(), 0u);
    EXPECT_GT(succeeded() + 10, transfers.size());
    work_for(std::chrono::seconds(20));
    EXPECT_EQ(network(), "elm-b");
    world.network().regain("elm");
    work_for(std::chrono::seconds(16));
    EXPECT_EQ(network(), "elm");
    world.run_for(std::chrono::seconds(1));
    EXPECT_EQ(succeeded(), transfers.size());
    EXPECT_EQ(oak.links->facts().at(0).counters.unreachable, 0u);
}

TEST_F(LinksOverTwoNetworks, BeginOverTheOtherWhereTheFirstIsLost) {
    world.network().lose("elm");
    work_for(std::chrono::seconds(3));
    EXPECT_EQ(network(), "elm-b");
    EXPECT_EQ(failed(), 0u);
    EXPECT_GT(succeeded(), 50u);
}

TEST_F(LinksOverTwoNetworks, AreUnreachableWhereBothAreLostAndBackWhenOneIs) {
    work_for(std::chrono::seconds(1));
    world.network().lose("elm");
    world.network().lose("elm-b");
    transfers.clear();
    work_for(std::chrono::milliseconds(50));
    world.run_for(std::chrono::seconds(60));
    EXPECT_EQ(failed(), transfers.size());
    world.network().regain("elm-b");
    transfers.clear();
    work_for(std::chrono::seconds(5));
    EXPECT_EQ(failed(), 0u);
    EXPECT_GT(succeeded(), 100u);
    EXPECT_EQ(network(), "elm-b");
}

// ------------------------------------------------------------------------------ a whole array

const std::vector<std::string> four{"oak", "elm", "ash", "fir"};

class ArrayOverTwoNetworks : public testing::Test {
protected:
    static std::string further_machine_of(const std::string& name) {
        auto machine = ArrayCluster::machine_of(name);
        return "10.1." + machine.substr(std::string("10.0.").size());
    }
    void SetUp() override {
        array.start_controller();
        for (const auto& name : four) {
            array.start_box(name);
            ASSERT_TRUE(array.boxes[name]->listen(
                Address::tcp(further_machine_of(name), ArrayCluster::port)));
            const auto refusal = array.refusal_of([&](auto told) {
                array.controller->add_box(name, ArrayCluster::box_address(name), false,
                                          std::move(told));
            });
            ASSERT_FALSE(refusal) << *refusal;
        }
        const auto refusal = array.create("photos", raid::Level::raid5, four);
        ASSERT_FALSE(refusal) << *refusal;
        ASSERT_TRUE(array.becomes("photos", raid::VolumeState::healthy));
        disk = &array.attach("photos");
    }
    void write_for(Duration span) {
        const auto until = array.world.now() + span;
        for (std::uint64_t i = 0; array.world.now() < until; ++i) {
            array.write(*disk, i % 64 * 16384, std::vector<std::byte>(8192, std::byte(i)));
            array.world.run_for(std::chrono::milliseconds(50));
        }
    }
    std::set<std::string> networks_in_use() {
        std::set<std::string> found;
        std::optional<node::LinkReports> said;
        array.controller->links("photos",
                                [&](auto, const node::LinkReports& reports) { said = reports; });
        EXPECT_TRUE(array.run_until([&] { return said.has_value(); }));
        for (const auto& [from, to, link] : said->links)
            if (link.direction == ArrayLinkFacts::Direction::outbound &&
                link.state != ArrayLinkFacts::State::down &&
                std::ranges::find(four, to) != four.end())
                found.insert(link.remote.host.substr(0, 4));
        return found;
    }
    std::string events() const {
        std::string text;
        for (const auto& event : array.controller->events().events())
            text += event.volume + " " + event.box + ": " + event.what + "\n";
        return text;
    }

    ArrayCluster array{9};
    BlockDevice* disk = nullptr;
};

/// Between the boxes; the controller's sessions are not concerned.
TEST_F(ArrayOverTwoNetworks, MovesDataBetweenBoxesOverTheOtherWithoutFencingABox) {
    write_for(std::chrono::seconds(2));
    EXPECT_EQ(networks_in_use(), std::set<std::string>{"10.0"});
    const auto generation = array.status("photos").volume.generation;
    for (const auto& from : four)
        for (const auto& to : four)
            array.world.network().lose_from(ArrayCluster::machine_of(from),
                                            ArrayCluster::machine_of(to));
    write_for(std::chrono::seconds(30));
    EXPECT_EQ(array.status("photos").state, raid::VolumeState::healthy) << events();
    EXPECT_EQ(array.status("photos").volume.generation, generation) << events();
    EXPECT_EQ(array.controller->volumes().front().relayed_octets, 0u) << events();
    // A link that nobody needed meanwhile has not noticed.
    EXPECT_TRUE(networks_in_use().contains("10.1"));
    array.world.network().regain_all();
    write_for(std::chrono::seconds(20));
    EXPECT_EQ(networks_in_use(), std::set<std::string>{"10.0"});
    EXPECT_EQ(array.status("photos").volume.generation, generation) << events();
}

/// The controller's sessions, too: boxes are lost for a moment, and no request fails.
TEST_F(ArrayOverTwoNetworks, FailsNoRequestWhenTheControllersSessionsAreLostWithOne) {
    write_for(std::chrono::seconds(2));
    for (const auto& name : four) array.world.network().lose(ArrayCluster::machine_of(name));
    write_for(std::chrono::seconds(30));
    ASSERT_TRUE(array.becomes("photos", raid::VolumeState::healthy)) << events();
    array.world.network().regain_all();
    write_for(std::chrono::seconds(5));
}

}  // namespace
}  // namespace weft::sim
