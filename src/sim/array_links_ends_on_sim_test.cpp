// SPDX-License-Identifier: Apache-2.0
// How transfers between parties of an array end that cannot be done at once: the guilty are
// refused, and nobody else pays for them, nor for a network that is slow or cut.
#include "support/array_party.hpp"

namespace weft::sim {
namespace {

using node::ArrayLinkFacts;
using node::ArrayLinks;
using test::ArrayParty;
using test::box_end;
using test::secret_of;
using test::TestTransfer;
using Kind = ArrayLinks::Event::Kind;

class ArrayLinkEnds : public testing::Test {
protected:
    static constexpr std::uint64_t plenty = 30'000'000;
    using Transfers = std::vector<std::unique_ptr<TestTransfer>>;

    void SetUp() override {
        oak.meets(elm, secret_of(9));
        elm.meets(oak, secret_of(9));
    }
    void run() { ASSERT_TRUE(world.run_until_quiet(plenty)); }
    void run_until(const std::function<bool()>& done) {
        for (std::uint64_t i = 0; i < plenty && !done() && world.step(); ++i) {
        }
        ASSERT_TRUE(done());
    }
    TestTransfer& add(std::size_t at, std::size_t size, std::uint8_t fill) {
        transfers.push_back(std::make_unique<TestTransfer>(elm.access(), at, size, fill));
        return *transfers.back();
    }
    TestTransfer& add_dead(std::size_t size, std::uint32_t which) {
        auto& made = add(0, size, 0xdd);
        made.peer.tag = SteeringTag{static_cast<std::uint32_t>(made.peer.tag) ^ (1 + which % 255)};
        return made;
    }
    /// Of a half of the memory that is only read, or of the other, that is only written.
    void begin_some(std::size_t count, std::size_t size) {
        for (std::size_t i = 0; i < count; ++i) {
            const bool fetches = i % 2 == 0;
            begin(add(fetches ? 0 : elm.memory.size() / 2, size, std::uint8_t(i)), fetches);
        }
    }
    void begin(TestTransfer& transfer, bool fetches) {
        fetches ? oak.links->fetch(transfer) : oak.links->send(transfer);
    }
    std::size_t succeeded() const {
        return static_cast<std::size_t>(
            std::ranges::count_if(transfers, [](auto& each) { return each->succeeded(); }));
    }
    std::size_t ended_as(Code code) const {
        return static_cast<std::size_t>(std::ranges::count_if(
            transfers, [code](auto& each) { return each->ends == 1 && each->failure == code; }));
    }
    static std::size_t count(const ArrayParty& party, Kind kind) {
        return static_cast<std::size_t>(
            std::ranges::count(party.events, kind, &ArrayLinks::Event::kind));
    }

    World world{11};
    ArrayLinks::Options options;
    ArrayParty oak{world, "oak", box_end(1), options};
    ArrayParty elm{world, "elm", box_end(2), options};
    Transfers transfers;
};

TEST_F(ArrayLinkEnds, RefuseEveryDeadTagAndFailNoOther) {
    for (bool fetches : {false, true}) {
        transfers.clear();
        for (unsigned i = 0; i < 100; ++i)
            begin(i % 10 == 3 ? add_dead(3000, i) : add(i * 10'000, 9000, std::uint8_t(i)),
                  fetches);
        run();
        for (unsigned i = 0; i < 100; ++i) {
            EXPECT_EQ(transfers[i]->ends, 1);
            if (i % 10 == 3)
                EXPECT_EQ(transfers[i]->failure, Code::access_denied) << i;
            else
                EXPECT_FALSE(transfers[i]->failure) << i;
        }
    }
}

TEST_F(ArrayLinkEnds, SayWhatEndedAConnectionAndCountWhatBecameOfTransfers) {
    for (unsigned i = 0; i < 10; ++i) begin(add(i * 1000, 1000, 1), i < 5);
    auto& dead = add_dead(1000, 3);
    begin(dead, false);
    run();
    const auto facts = oak.links->facts();
    ASSERT_EQ(facts.size(), 1u);
    const auto& out = facts[0];
    EXPECT_EQ(out.direction, ArrayLinkFacts::Direction::outbound);
    EXPECT_EQ(out.peer, elm.end);
    EXPECT_EQ(out.state, ArrayLinkFacts::State::idle);
    EXPECT_EQ(out.counters.connections, 2u);
    EXPECT_EQ(out.counters.ended, 1u);
    EXPECT_EQ(out.counters.terminated, 1u);
    EXPECT_EQ(out.counters.done, 10u);
    EXPECT_EQ(out.counters.refused, 1u);
    EXPECT_EQ(out.counters.unreachable + out.counters.timed_out, 0u);
    EXPECT_GT(out.counters.retried, 0u);
    EXPECT_EQ(out.counters.octets_sent, 5000u);
    EXPECT_EQ(out.counters.octets_received, 5000u);
    std::array<char, 128> sentence{};
    std::snprintf(sentence.data(), sentence.size(),
                  " terminated the connection: invalid steering tag 0x%08x (RDMA Write, offset 0)",
                  static_cast<unsigned>(dead.peer.tag));
    EXPECT_EQ(out.last_end, std::string("the peer") + sentence.data());

    const auto there = elm.links->facts();
    ASSERT_EQ(there.size(), 1u);
    const auto& in = there[0];
    EXPECT_EQ(in.direction, ArrayLinkFacts::Direction::inbound);
    EXPECT_EQ(in.peer, oak.end);
    EXPECT_EQ(in.counters.connections, 2u);
    EXPECT_EQ(in.counters.terminated, 1u);
    EXPECT_GT(in.counters.octets_sent, 5000u);
    EXPECT_GT(in.counters.octets_received, 5000u);
    EXPECT_EQ(in.last_end, std::string("this side") + sentence.data());
}

TEST_F(ArrayLinkEnds, ShowALinkThatMovesSlowlyAsCongestedAndOneThatDoesNotAsStalled) {
    using State = ArrayLinkFacts::State;
    world.network().set_options({.bytes_per_second = 1 << 20});
    begin_some(20, 1 << 19);
    auto state = [&] { return oak.links->facts()[0].state; };
    world.run_for(std::chrono::milliseconds(500));
    EXPECT_EQ(state(), State::busy);
    world.run_for(std::chrono::seconds(3));
    EXPECT_EQ(state(), State::congested);
    EXPECT_GT(oak.links->facts()[0].oldest, std::chrono::seconds(1));
    world.network().lose("elm");
    world.run_for(std::chrono::seconds(4));
    EXPECT_EQ(state(), State::stalled);
    world.network().regain("elm");
    run();
    EXPECT_EQ(succeeded(), 20u);
    EXPECT_EQ(count(oak, Kind::failed), 0u);
    EXPECT_EQ(state(), State::idle);
}

TEST_F(ArrayLinkEnds, RefuseAllTransfersOfATagThatIsClosedUnderThem) {
    auto late = std::move(*elm.links->domain()->register_memory(
        elm.memory, Rights::local_write | Rights::remote_write, Addressing::from_zero));
    for (unsigned i = 0; i < 60; ++i) {
        auto& each = add(i * 10'000, 10'000, std::uint8_t(i));
        if (i % 2) each.peer.tag = late->tag();
        begin(each, false);
    }
    run_until([&] { return elm.memory[200'000] == std::byte{20}; });
    ASSERT_TRUE(late->deregister([] {}));
    run();
    for (unsigned i = 0; i < 60; i += 2) EXPECT_TRUE(transfers[i]->succeeded()) << i;
    EXPECT_GT(ended_as(Code::access_denied), 0u);
    EXPECT_EQ(ended_as(Code::access_denied) + succeeded(), 60u);
    EXPECT_EQ(count(oak, Kind::lost), 1u) << "one Terminate was enough";
}

TEST_F(ArrayLinkEnds, RefuseOnlyThoseThatReachOutOfTheMemory) {
    for (bool fetches : {false, true}) {
        transfers.clear();
        for (unsigned i = 0; i < 20; ++i)
            begin(add(i == 7 ? elm.memory.size() - 10 : i * 10'000, 9000, std::uint8_t(i)),
                  fetches);
        run();
        for (unsigned i = 0; i < 20; ++i) EXPECT_EQ(transfers[i]->failure.has_value(), i == 7) << i;
        EXPECT_EQ(transfers[7]->failure, Code::access_denied);
    }
}

TEST_F(ArrayLinkEnds, GoOnOverAFreshConnectionHoweverOftenOneIsCut) {
    for (unsigned i = 0; i < 200; ++i) begin(add(i * 5000, 5000, std::uint8_t(i)), i % 3 == 0);
    for (int cuts = 0; cuts < 12; ++cuts) {
        const auto before = succeeded();
        run_until([&] { return succeeded() > before && oak.links->links() == 1; });
        for (auto link : world.network().links()) world.network().reset(link);
    }
    run();
    EXPECT_EQ(succeeded(), 200u);
    EXPECT_GE(count(oak, Kind::lost), 6u);
    EXPECT_EQ(count(oak, Kind::failed), 0u);
}

TEST_F(ArrayLinkEnds, TakeASlowNetworkForNothingElse) {
    world.network().set_options({.bytes_per_second = 1 << 20});
    begin_some(60, 1 << 19);
    run();
    EXPECT_EQ(succeeded(), 60u);
    EXPECT_EQ(count(oak, Kind::lost), 0u);
}

TEST_F(ArrayLinkEnds, LeaveAConnectionThatMovesNothingForAFreshOne) {
    begin(add(0, 8, 1), false);
    run();
    for (auto link : world.network().links()) world.network().partition(link, Side::acceptor);
    begin_some(10, 1 << 16);
    run();
    EXPECT_EQ(succeeded(), 11u);
    EXPECT_EQ(oak.events[1].why, "it moved nothing, and another connection could be made");
}

TEST_F(ArrayLinkEnds, TimeOutWhereEveryConnectionMovesNothing) {
    const auto began = world.now();
    oak.links->on_event([&](const ArrayLinks::Event& event) {
        oak.events.push_back(event);
        if (event.kind != Kind::linked) return;
        for (auto link : world.network().links()) world.network().partition(link, Side::acceptor);
    });
    begin_some(10, 1 << 16);
    run_until([&] { return ended_as(Code::timed_out) == 10u; });
    EXPECT_GT(world.now() - began, options.link.retry_for);
    EXPECT_LT(world.now() - began, std::chrono::seconds(20));
}

TEST_F(ArrayLinkEnds, EndAsUnreachableOnlyWhenAFreshConnectionFailed) {
    begin_some(30, 1 << 18);
    run_until([&] { return succeeded() > 3; });
    world.network().separate("oak", "elm");
    run();
    EXPECT_EQ(ended_as(Code::disconnected) + succeeded(), 30u);
    EXPECT_EQ(count(oak, Kind::failed), 1u);
    world.network().unite("oak", "elm");
    begin(add(0, 8, 1), true);
    run();
    EXPECT_TRUE(transfers.back()->succeeded());
}

TEST_F(ArrayLinkEnds, PauseWhereConnectionsEndAtOnceAndTimeOutInTheEnd) {
    const auto began = world.now();
    oak.links->on_event([&](const ArrayLinks::Event& event) {
        oak.events.push_back(event);
        if (event.kind != Kind::linked) return;
        for (auto link : world.network().links()) world.network().reset(link);
    });
    begin_some(100, 1 << 18);
    run();
    EXPECT_EQ(ended_as(Code::timed_out), 100u);
    EXPECT_GE(world.now() - began, options.link.retry_for);
    EXPECT_LT(world.now() - began, options.link.retry_for + std::chrono::seconds(5));
    EXPECT_LT(count(oak, Kind::linked), 60u);
}

/// A Terminate can be lost with the connection it ends. Who is guilty then shows where each is
/// posted alone.
TEST_F(ArrayLinkEnds, FailNobodyElseWhereNothingSaysWhatEndsTheConnections) {
    const std::string poison(64, '\x66');
    std::string sent;
    world.network().watch([&](const Network::Sending& sending) {
        if (sending.sender != "oak") return;
        sent.append(reinterpret_cast<const char*>(sending.octets.data()), sending.octets.size());
        const bool is_poisoned = sent.find(poison) != std::string::npos;
        if (sent.size() > 64 || is_poisoned) sent.erase(0, sent.size() - 64);
        if (!is_poisoned) return;
        sent.clear();
        world.defer([this, link = sending.link] { world.network().reset(link); });
    });
    for (unsigned i = 0; i < 150; ++i) {
        begin(add(i * 6000, 6000, i == 20 ? 0x66 : 0x01), i != 20 && i % 3 == 0);
    }
    run();
    EXPECT_EQ(succeeded(), 149u);
    EXPECT_EQ(transfers[20]->failure, Code::timed_out);
}

}  // namespace
}  // namespace weft::sim
