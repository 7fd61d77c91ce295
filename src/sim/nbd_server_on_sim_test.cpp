// SPDX-License-Identifier: Apache-2.0
// The NBD server as those who run it see it: who comes and goes, how many may, and how it stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <list>

#include "node/nbd_disk.hpp"
#include "node/nbd_server.hpp"
#include "sim/world.hpp"
#include "support/recording_engine.hpp"
#include "support/test_request.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using node::NbdServer;
using test::TestRequest;
using testing::ElementsAre;

constexpr std::uint64_t plenty = 1'000'000;  // events
const Address elm = Address::tcp("elm", 10809);

class NbdServerTest : public testing::Test {
protected:
    struct Visitor {
        std::unique_ptr<node::NbdDisk> disk;
        std::optional<Result<void>> opened;

        bool is_in() const { return opened && *opened; }
        std::optional<Code> refused() const {
            if (!opened || *opened) return std::nullopt;
            return opened->error().code;
        }
    };

    NbdServerTest() {
        world.make_disk("disk", {.size = 64 * 1024});
        disk = std::move(*world.host("elm").open_disk({.path = "disk"}));
        start({});
    }
    ~NbdServerTest() override {
        visitors.clear();
        server->stop();
        settle();
        EXPECT_TRUE(server->quiet());
        server.reset();
    }

    void start(NbdServer::Options options) {
        server = std::make_unique<NbdServer>(world.host("elm"), options);
        server->on_event([this](const NbdServer::Event& event) { note(event); });
        EXPECT_TRUE(server->add({"disk", "", disk.get(), false}));
        EXPECT_TRUE(server->listen(elm));
    }
    void note(const NbdServer::Event& event) {
        constexpr const char* names[] = {"connected", "left", "refused"};
        std::string words = names[static_cast<std::size_t>(event.kind)];
        if (!event.export_name.empty()) words += " " + event.export_name;
        if (event.fault) words += " fault " + std::to_string(static_cast<int>(event.fault->code));
        events.push_back(words);
    }
    static std::string fault(Code code) {
        return " fault " + std::to_string(static_cast<int>(code));
    }
    Visitor& visit(const std::string& name) {
        auto& visitor = visitors.emplace_back();
        visitor.disk = std::move(*node::NbdDisk::connect(
            world.host("oak"), elm, name, [&visitor](Result<void> how) { visitor.opened = how; }));
        return visitor;
    }
    void settle() { EXPECT_TRUE(world.run_until_quiet(plenty)); }

    World world{1};
    std::unique_ptr<BlockDevice> disk;
    std::unique_ptr<NbdServer> server;
    std::vector<std::string> events;
    std::list<Visitor> visitors;
};

TEST_F(NbdServerTest, TellsWhoComesAndGoes) {
    auto& visitor = visit("disk");
    settle();
    EXPECT_TRUE(visitor.is_in());
    EXPECT_THAT(events, ElementsAre("connected"));
    visitor.disk->device().disconnect();
    settle();
    EXPECT_THAT(events, ElementsAre("connected", "left disk"));
    EXPECT_TRUE(server->quiet());
    EXPECT_EQ(server->statistics().connections, 1u);
}

TEST_F(NbdServerTest, LetsAClientLeaveThatAskedForWhatIsNotThere) {
    auto& visitor = visit("nothere");
    settle();
    EXPECT_EQ(visitor.refused(), Code::not_found);
    EXPECT_THAT(events, ElementsAre("connected", "left"));
    EXPECT_TRUE(server->quiet());
}

TEST_F(NbdServerTest, HoldsNoMoreConnectionsThanItMay) {
    server->stop();
    settle();
    start({.connections_max = 2});
    auto& one = visit("");
    auto& two = visit("");
    settle();
    auto& three = visit("");
    settle();
    EXPECT_TRUE(one.is_in());
    EXPECT_TRUE(two.is_in());
    EXPECT_TRUE(three.opened && !three.is_in());
    EXPECT_EQ(server->connection_count(), 2u);
    EXPECT_THAT(events, ElementsAre("connected", "connected", "refused" + fault(Code::exhausted)));

    one.disk->device().disconnect();
    settle();
    auto& four = visit("");
    settle();
    EXPECT_TRUE(four.is_in()) << "where one has left there is room";
}

TEST_F(NbdServerTest, HangsUpTheOldestUnfinishedHandshakeForANewcomer) {
    server->stop();
    settle();
    start({.connections_max = 8, .handshakes_max = 2});
    auto& early = visit("disk");
    settle();
    std::array<test::RecordingEngine, 3> silent;
    std::vector<std::unique_ptr<Stream>> streams;
    for (auto& each : silent) {
        streams.push_back(std::move(*world.host("oak").connect(elm, each)));
        world.run_for(1s);
    }
    EXPECT_EQ(silent[0].closed_count, 1);
    EXPECT_EQ(silent[1].closed_count, 0);
    auto& late = visit("disk");
    world.run_for(1s);
    EXPECT_TRUE(late.is_in());
    EXPECT_TRUE(early.is_in());
    EXPECT_EQ(silent[1].closed_count, 1);
    EXPECT_EQ(silent[2].closed_count, 0);
    world.run_for(31s);
    EXPECT_EQ(silent[2].closed_count, 1) << "and in its time";
}

TEST_F(NbdServerTest, LetsSilentVisitorsFillUpNoMoreThanTheirShare) {
    server->stop();
    settle();
    start({.connections_max = 4, .handshakes_max = 4});
    auto& early = visit("disk");
    settle();
    std::array<test::RecordingEngine, 8> silent;
    std::vector<std::unique_ptr<Stream>> streams;
    for (auto& each : silent) streams.push_back(std::move(*world.host("oak").connect(elm, each)));
    world.run_for(1s);
    EXPECT_EQ(server->connection_count(), 4u);
    auto& late = visit("disk");
    world.run_for(1s);
    EXPECT_TRUE(early.is_in());
    EXPECT_TRUE(late.is_in()) << "where nobody is served yet, there is room";
}

TEST_F(NbdServerTest, MayBeStoppedByWhoHearsThatSomebodyMadeRoom) {
    server->stop();
    settle();
    start({.handshakes_max = 1});
    test::RecordingEngine silent;
    auto stream = world.host("oak").connect(elm, silent);
    world.run_for(1s);
    server->on_event([this](const NbdServer::Event& event) {
        if (event.kind == NbdServer::Event::Kind::left) server->stop();
    });
    auto& visitor = visit("disk");
    settle();
    EXPECT_TRUE(visitor.opened && !visitor.is_in());
    EXPECT_TRUE(server->quiet());
}

TEST_F(NbdServerTest, DropsAVisitorWhoSaysNothing) {
    test::RecordingEngine silent;
    auto stream = world.host("oak").connect(elm, silent);
    ASSERT_TRUE(stream);
    world.run_for(29s);
    EXPECT_EQ(server->connection_count(), 1u);
    world.run_for(2s);
    EXPECT_TRUE(server->quiet());
    EXPECT_EQ(silent.closed_count, 1);
    EXPECT_THAT(events, ElementsAre("connected", "left" + fault(Code::timed_out)));
}

TEST_F(NbdServerTest, ShowsEveryClientTheSameDisk) {
    auto& writer = visit("disk");
    auto& reader = visit("");
    TestRequest write(BlockOperation::write, 512, 1024);
    std::fill(write.octets.begin(), write.octets.end(), std::byte{0x5a});
    writer.disk->device().submit(write);
    settle();
    ASSERT_TRUE(write.succeeded());
    TestRequest read(BlockOperation::read, 512, 1024);
    reader.disk->device().submit(read);
    settle();
    EXPECT_TRUE(read.succeeded());
    EXPECT_EQ(read.octets, write.octets);
    EXPECT_EQ(server->statistics().bytes_written, 1024u);
    EXPECT_EQ(server->statistics().bytes_read, 1024u);
}

TEST_F(NbdServerTest, StopsAtAnyMomentOfAWrite) {
    int heard = 0, written_unheard = 0;
    for (int round = 1; round <= 200; ++round) {
        SCOPED_TRACE(round);
        auto& visitor = visit("disk");
        settle();
        ASSERT_TRUE(visitor.is_in());
        TestRequest write(BlockOperation::write, 0, 4096);
        std::fill(write.octets.begin(), write.octets.end(), static_cast<std::byte>(round));
        visitor.disk->device().submit(write);
        for (int steps = round % 8; steps > 0; --steps) world.step();
        server->stop();
        settle();
        EXPECT_TRUE(server->quiet());
        EXPECT_TRUE(write.done());

        TestRequest read(BlockOperation::read, 0, 4096);
        disk->submit(read);
        settle();
        bool written = read.octets == write.octets;
        EXPECT_TRUE(written || !write.succeeded());
        if (write.succeeded())
            ++heard;
        else if (written)
            ++written_unheard;
        visitors.clear();
        start({});
    }
    EXPECT_GT(heard, 0);
    EXPECT_GT(written_unheard, 0) << "at some moment the disk has it and the client does not know";
}

TEST_F(NbdServerTest, AnswersWhatIsUnderWayWhenItDrains) {
    int answered = 0;
    for (int round = 1; round <= 200; ++round) {
        SCOPED_TRACE(round);
        auto& visitor = visit("disk");
        settle();
        ASSERT_TRUE(visitor.is_in());
        TestRequest write(BlockOperation::write, 0, 4096);
        std::fill(write.octets.begin(), write.octets.end(), static_cast<std::byte>(round));
        visitor.disk->device().submit(write);
        for (int steps = round % 20; steps > 0; --steps) world.step();
        server->drain();
        settle();
        EXPECT_TRUE(server->quiet());
        EXPECT_TRUE(write.done());

        TestRequest read(BlockOperation::read, 0, 4096);
        disk->submit(read);
        settle();
        EXPECT_EQ(read.octets == write.octets, write.succeeded()) << "what is done is answered";
        if (write.succeeded()) ++answered;
        visitors.clear();
        start({});
    }
    EXPECT_GT(answered, 0);
}

TEST_F(NbdServerTest, AcceptsNobodyAfterItStopped) {
    server->stop();
    auto& visitor = visit("disk");
    settle();
    EXPECT_TRUE(visitor.opened && !visitor.is_in());
    EXPECT_TRUE(events.empty());
}

TEST_F(NbdServerTest, OffersWhatIsAddedWhileOthersAreConnected) {
    auto& early = visit("disk");
    settle();
    for (int i = 0; i < 200; ++i)
        ASSERT_TRUE(server->add({"later " + std::to_string(i), "", disk.get(), true}));
    auto& late = visit("later 7");
    settle();
    EXPECT_TRUE(late.is_in());
    EXPECT_TRUE(late.disk->device().traits().read_only);
    TestRequest flush(BlockOperation::flush, 0, 0);
    early.disk->device().submit(flush);
    settle();
    EXPECT_TRUE(flush.succeeded());
    early.disk->device().disconnect();
    settle();
    EXPECT_EQ(events.back(), "left disk");
}

TEST_F(NbdServerTest, SurvivesAClientThatVanishesWhileOpening) {
    for (int steps = 0; steps < 40; ++steps) {
        visit("disk");
        for (int i = 0; i < steps; ++i) world.step();
        visitors.clear();
    }
    settle();
    EXPECT_TRUE(server->quiet());
}

TEST_F(NbdServerTest, MayBeDestroyedBeforeTheWorldForgetsItsConnections) {
    auto& visitor = visit("disk");
    settle();
    visitor.disk->device().disconnect();
    while (events.back() != "left disk" && world.step()) continue;
    server = std::make_unique<NbdServer>(world.host("elm"), NbdServer::Options{});
    settle();
}

TEST_F(NbdServerTest, MayBeStoppedByWhoHearsOfAVisitor) {
    server->on_event([this](const NbdServer::Event& event) {
        note(event);
        if (event.kind == NbdServer::Event::Kind::connected) server->stop();
    });
    auto& visitor = visit("disk");
    settle();
    EXPECT_TRUE(visitor.opened && !visitor.is_in());
    EXPECT_THAT(events, ElementsAre("connected", "left"));
    EXPECT_TRUE(server->quiet());
}

TEST_F(NbdServerTest, LosesAVisitorWhoDropsItsDiskInTheLastCompletion) {
    auto& visitor = visit("disk");
    TestRequest write(BlockOperation::write, 0, 512), read(BlockOperation::read, 0, 512);
    read.then = [&] { visitor.disk.reset(); };
    write.then = [&] { visitor.disk->device().submit(read); };
    visitor.disk->device().submit(write);
    settle();
    EXPECT_TRUE(read.succeeded());
    EXPECT_EQ(visitor.disk, nullptr);
    EXPECT_TRUE(server->quiet());
}

TEST_F(NbdServerTest, LosesAVisitorWhoDropsItsDiskWhenRefused) {
    std::unique_ptr<node::NbdDisk> disk_there;
    std::optional<Result<void>> opened;
    disk_there =
        std::move(*node::NbdDisk::connect(world.host("oak"), elm, "nothere", [&](Result<void> how) {
            opened = how;
            disk_there.reset();
        }));
    settle();
    ASSERT_TRUE(opened && !*opened);
    EXPECT_EQ(opened->error().code, Code::not_found);
    EXPECT_EQ(disk_there, nullptr);
    EXPECT_TRUE(server->quiet());
}

}  // namespace
}  // namespace weft::sim
