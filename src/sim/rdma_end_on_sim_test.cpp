// SPDX-License-Identifier: Apache-2.0
// What becomes of work that is under way when its connection ends: when it completes, and as what.
#include "support/rdma_fixture.hpp"

namespace weft::sim {
namespace {

using test::RdmaSide;
using test::Told;
using verbs::AsyncEvent;
using verbs::Operation;
using verbs::QueuePairState;
using verbs::SendRequest;
using verbs::Status;

class RdmaEnd : public test::RdmaTest {
protected:
    RdmaSide a{*here}, b{*there};
};

TEST_F(RdmaEnd, IsOurOwnFaultWhereTheMemoryOfAReadIsGone) {
    for (auto operation : {Operation::read, Operation::fetch_and_add}) {
        RdmaSide one(*here), other(*there);
        events_here.clear();
        events_there.clear();
        join(one, other);
        ASSERT_TRUE(one.act(1, operation, other.region->remote()));
        for (int i = 0; i < 3; ++i) world.step();  // its request is under way
        one.region.reset();
        ASSERT_TRUE(one.queue_pair->post(SendRequest{.id = 2, .fenced = true}));
        run();
        EXPECT_EQ(one.ends(), "1:local_protection 2:flushed");
        EXPECT_EQ(count(events_here, AsyncEvent::Kind::queue_pair_failed), 1u);
        EXPECT_EQ(events_here.size(), 1u) << "the peer has violated nothing";
        EXPECT_EQ(count(events_there, AsyncEvent::Kind::queue_pair_failed), 1u);
    }
}

/// Good work and bad work behind it: the peer says which was bad.
class RdmaBlame : public RdmaEnd {
protected:
    static constexpr SteeringTag bad{0x7fffff00};

    /// A read whose answer takes so long that what follows it is found fault with before.
    void post_long_read(std::uint64_t id) {
        std::array local{sink->local(0, much)};
        ASSERT_TRUE(a.queue_pair->post(SendRequest{
            .id = id, .operation = Operation::read, .local = local, .remote = source->remote()}));
    }

    static constexpr std::uint32_t much = 2'000'000;
    std::vector<std::byte> from = std::vector<std::byte>(much), into = from;
    std::unique_ptr<verbs::MemoryRegion> source =
        std::move(*b.domain->register_memory(from, test::every_right));
    std::unique_ptr<verbs::MemoryRegion> sink =
        std::move(*a.domain->register_memory(into, test::every_right));
};

TEST_F(RdmaBlame, FallsOnTheWriteThatThePeerRefused) {
    join(a, b);
    post_long_read(1);
    ASSERT_TRUE(a.act(2, Operation::write, b.region->remote()));
    ASSERT_TRUE(a.act(3, Operation::write, {5, bad}));
    ASSERT_TRUE(a.act(4, Operation::write, b.region->remote()));
    run();
    EXPECT_EQ(a.ends(), "1:flushed 2:success 3:remote_access 4:flushed");
}

TEST_F(RdmaBlame, FallsOnTheReadThatThePeerRefused) {
    join(a, b);
    post_long_read(1);
    ASSERT_TRUE(a.act(2, Operation::read, b.region->remote()));
    ASSERT_TRUE(a.act(3, Operation::read, {5, bad}));
    ASSERT_TRUE(a.act(4, Operation::fetch_and_add, b.region->remote()));
    run();
    EXPECT_EQ(a.ends(), "1:flushed 2:flushed 3:remote_access 4:flushed");
}

TEST_F(RdmaBlame, FallsOnTheAtomicThatThePeerRefused) {
    join(a, b);
    post_long_read(1);
    ASSERT_TRUE(a.act(2, Operation::fetch_and_add, b.region->remote()));
    ASSERT_TRUE(a.act(3, Operation::fetch_and_add, {0, bad}));
    run();
    EXPECT_EQ(a.ends(), "1:flushed 2:flushed 3:remote_access");
}

TEST_F(RdmaBlame, FallsOnTheSendThatWasTooLong) {
    for (bool ready : {true, false}) {  // a message of the connection's own comes first, or none
        RdmaSide one(*here), other(*there);
        join(one, other, {.peer_to_peer = ready});
        ASSERT_TRUE(other.receive(1, 64));
        ASSERT_TRUE(other.receive(2, 16));
        std::vector<std::byte> place(much);
        auto region = std::move(*one.domain->register_memory(place, test::every_right));
        auto distant = std::move(*other.domain->register_memory(from, test::every_right));
        std::array local{region->local(0, much)};
        ASSERT_TRUE(one.queue_pair->post(SendRequest{
            .id = 1, .operation = Operation::read, .local = local, .remote = distant->remote()}));
        ASSERT_TRUE(one.send(2, 17));
        ASSERT_TRUE(one.send(3, 17));
        ASSERT_TRUE(one.send(4, 17));
        run();
        EXPECT_EQ(one.ends(), "1:flushed 2:success 3:remote_invalid 4:flushed");
    }
}

TEST_F(RdmaBlame, FallsOnTheOldestIfTheGuiltyHasCompleted) {
    join(a, b);
    world.network().set_options({.shortest_delay = std::chrono::milliseconds(1),
                                 .longest_delay = std::chrono::milliseconds(1)});
    ASSERT_TRUE(a.act(1, Operation::write, {5, bad}));
    run_until([&] { return a.ends() == "1:success"; });
    ASSERT_TRUE(a.act(2, Operation::read, b.region->remote()));
    run();
    EXPECT_EQ(a.ends(), "2:remote_access");
}

/// A Write so long that much of it is lent to the network when its connection ends.
class RdmaEndAmidAWrite : public RdmaEnd, public testing::WithParamInterface<int> {
protected:
    static constexpr std::uint32_t size = 400'000;

    void SetUp() override {
        world.network().set_options({.kept_lent_percent = 100});
        ASSERT_NO_FATAL_FAILURE(join(a, b));
        std::array local{source->local(0, size)};
        ASSERT_TRUE(a.queue_pair->post(SendRequest{
            .id = 1, .operation = Operation::write, .local = local, .remote = target->remote()}));
        ASSERT_TRUE(a.send(2));
        run_until([&] { return to[0] != std::byte{}; });
    }
    void end() {
        if (GetParam() == 0) a.connection->disconnect();
        if (GetParam() == 1) a.queue_pair->fail();
        if (GetParam() == 2) b.queue_pair->fail();
        if (GetParam() == 3) world.network().reset(world.network().links().at(0));
        if (GetParam() == 4) a.connection.reset();
    }

    std::vector<std::byte> from = std::vector<std::byte>(size, std::byte{'a'});
    std::vector<std::byte> to = std::vector<std::byte>(size);
    std::unique_ptr<verbs::MemoryRegion> source =
        std::move(*a.domain->register_memory(from, test::every_right));
    std::unique_ptr<verbs::MemoryRegion> target =
        std::move(*b.domain->register_memory(to, test::every_right));
};

TEST_P(RdmaEndAmidAWrite, CompletesItOnlyWhenNoByteOfItIsLent) {
    end();
    std::vector<std::uint64_t> ended;
    for (bool moving = true; moving;) {
        moving = world.step();
        for (auto& each : a.poll()) {
            EXPECT_NE(each.status, Status::success);
            ended.push_back(each.id);
            // Now it is the application's again. The simulated network looks whether lent bytes
            // have changed.
            if (each.id == 1) std::ranges::fill(from, std::byte{'#'});
        }
    }
    EXPECT_EQ(ended, (std::vector<std::uint64_t>{1, 2}));
    EXPECT_EQ(a.state(), QueuePairState::failed);
    EXPECT_EQ(std::ranges::count(to, std::byte{'#'}), 0);
}

TEST_P(RdmaEndAmidAWrite, CompletesWhatIsPostedThenBehindIt) {
    end();
    std::vector<std::uint64_t> ended;
    std::uint64_t posted = 2;
    for (bool moving = true; moving;) {
        if (a.state() != QueuePairState::running && posted < 10) {
            ASSERT_TRUE(a.send(++posted));
        }
        moving = world.step();
        for (auto& each : a.poll()) ended.push_back(each.id);
    }
    ASSERT_EQ(ended.size(), posted);
    for (std::uint64_t i = 0; i < posted; ++i) EXPECT_EQ(ended[i], i + 1);
    EXPECT_TRUE(a.connection == nullptr || a.queue_pair->reset());
}

INSTANTIATE_TEST_SUITE_P(Ends, RdmaEndAmidAWrite, testing::Range(0, 5));

}  // namespace
}  // namespace weft::sim
