// SPDX-License-Identifier: Apache-2.0
// RDMA on streams that spoke something else before, or that someone else accepted; and memory that
// is sent without being registered.
#include <chrono>

#include "support/rdma_fixture.hpp"
#include "support/recording_engine.hpp"
#include "support/seeds.hpp"
#include "support/stranger.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::RdmaSide;
using test::RecordingEngine;
using test::Stranger;
using test::Told;
using verbs::Operation;

/// Two machines, one of which accepts streams without saying what they are for.
struct Adoption {
    explicit Adoption(std::uint64_t seed) : world(seed) {
        listener = std::move(*world.host("elm").listen(elm, [this](std::unique_ptr<Stream> stream) {
            accepted = std::move(stream);
            accepted->drive(first);
        }));
        responder = there->make_responder(
            [this](std::unique_ptr<verbs::ConnectionRequest> asked) {
                request = std::move(asked);
                EXPECT_TRUE(b.accept(*request));
            },
            [this] { ++abandoned; });
    }
    void expect_that_it_works() {
        EXPECT_EQ(a.record.told, Told{"established"});
        EXPECT_EQ(b.record.told, Told{"established"});
        ASSERT_TRUE(b.receive(1));
        a.memory[0] = std::byte{42};
        ASSERT_TRUE(a.send(2));
        ASSERT_TRUE(world.run_until_quiet(plenty));
        EXPECT_EQ(b.memory[1024], std::byte{42});
    }

    static constexpr std::uint64_t plenty = 10'000'000;
    const Address elm = Address::tcp("elm", 3260);
    sim::World world;
    std::unique_ptr<verbs::Device> here = verbs::make_device(world.host("oak"), {});
    std::unique_ptr<verbs::Device> there = verbs::make_device(world.host("elm"), {});
    RdmaSide a{*here}, b{*there};
    RecordingEngine first;
    std::unique_ptr<Stream> accepted;
    std::unique_ptr<Listener> listener;
    std::unique_ptr<verbs::Responder> responder;
    std::unique_ptr<verbs::ConnectionRequest> request;
    int abandoned = 0;
};

TEST(RdmaAdoption, TakesAStreamWithTheOctetsThatToldItApart) {
    test::for_each_seed(100, [](std::uint64_t seed) {
        Adoption both(seed);
        both.first.room = 1 + seed % 20;  // from one octet to the whole frame
        auto& first = both.first;
        first.on_filled = [&] {
            if (first.received.size() < first.room) return;
            ASSERT_TRUE(both.responder->respond(std::move(both.accepted), first.received));
            first.closed_count = 1;  // from now on every call is one too many
        };
        ASSERT_TRUE(both.a.connect(both.elm));
        ASSERT_TRUE(both.world.run_until_quiet(both.plenty));
        both.expect_that_it_works();
    });
}

TEST(RdmaAdoption, RefusesWhatIsNoRequest) {
    Adoption both(1);
    both.first.room = 20;
    Stranger stranger(std::vector<std::byte>(20, std::byte{0x43}));
    Result<void> outcome;
    both.first.on_filled = [&] {
        if (!both.accepted || both.first.received.size() < 20) return;
        outcome = both.responder->respond(std::move(both.accepted), both.first.received);
    };
    stranger.stream = std::move(*both.world.host("oak").connect(both.elm, stranger));
    both.world.run_for(1s);
    EXPECT_FALSE(outcome);
    EXPECT_TRUE(stranger.is_closed);
}

TEST(RdmaAdoption, SaysSoIfTheRequestNeverComes) {
    Adoption both(1);
    both.first.room = 1;
    Stranger stranger(std::vector<std::byte>(1, std::byte{'M'}));
    both.first.on_filled = [&] {
        ASSERT_TRUE(both.responder->respond(std::move(both.accepted), both.first.received));
    };
    stranger.stream = std::move(*both.world.host("oak").connect(both.elm, stranger));
    both.world.run_for(1s);
    EXPECT_EQ(both.abandoned, 0);
    both.world.run_for(20s);
    EXPECT_EQ(both.abandoned, 1);
    EXPECT_TRUE(stranger.is_closed);
}

/// Both sides say something else first, as an iSCSI login is, and then turn to RDMA.
TEST(RdmaAdoption, FollowsAnotherProtocolOnTheSameStream) {
    test::for_each_seed(200, [](std::uint64_t seed) {
        Adoption both(seed);
        RecordingEngine login;
        std::unique_ptr<Stream> connected;
        auto& answers = both.first;
        answers.say(test::Stranger::Bytes(100 + seed, std::byte{'r'}));
        answers.room = 50;
        answers.on_filled = answers.on_sent = [&] {
            answers.room = 50 - answers.received.size();
            if (answers.room > 0 || answers.sent_count < answers.outgoing.size()) return;
            ASSERT_TRUE(both.responder->respond(std::move(both.accepted), {}));
            answers.closed_count = 1;  // from now on every call is one too many
        };
        login.say(test::Stranger::Bytes(50, std::byte{'q'}));
        login.room = 100 + seed;
        login.on_filled = login.on_sent = [&] {
            login.room = 100 + seed - login.received.size();
            if (login.room > 0 || login.sent_count < login.outgoing.size()) return;
            auto made = both.here->connect_over(std::move(connected), *both.a.queue_pair, {},
                                                both.a.record);
            ASSERT_TRUE(made);
            both.a.connection = std::move(*made);
            login.closed_count = 1;
        };
        connected = std::move(*both.world.host("oak").connect(both.elm, login));
        ASSERT_TRUE(both.world.run_until_quiet(both.plenty));
        both.expect_that_it_works();
        EXPECT_EQ(login.received.size(), 100 + seed);
        EXPECT_EQ(answers.received.size(), 50u);
    });
}

TEST(RdmaAdoption, IsRefusedForAQueuePairInUse) {
    Adoption both(1);
    auto& first = both.first;
    first.on_filled = [&] {
        if (first.received.size() < 20) return;
        ASSERT_TRUE(both.responder->respond(std::move(both.accepted), first.received));
    };
    first.room = 20;
    ASSERT_TRUE(both.a.connect(both.elm));
    ASSERT_TRUE(both.world.run_until_quiet(both.plenty));
    Stranger stranger;
    auto stream = std::move(*both.world.host("oak").connect(both.elm, stranger));
    auto refused =
        both.here->connect_over(std::move(stream), *both.a.queue_pair, {}, both.a.record);
    EXPECT_EQ(refused.error().code, Code::exhausted);
}

class OwnMemory : public test::RdmaTest {
protected:
    void meet(bool allowed) {
        a.make_queue_pair({.sends_own_memory = allowed});
        join(a, b);
    }
    verbs::LocalMemory own(std::vector<std::byte>& bytes) {
        return {reinterpret_cast<std::uintptr_t>(bytes.data()),
                static_cast<std::uint32_t>(bytes.size()), own_memory};
    }

    RdmaSide a{*here}, b{*there};
    std::vector<std::byte> unregistered = std::vector<std::byte>(100, std::byte{7});
};

TEST_F(OwnMemory, IsSentAndWrittenFromUnregisteredPlaces) {
    meet(true);
    std::array local{a.region->local(0, 4), own(unregistered), own(unregistered)};
    ASSERT_TRUE(a.queue_pair->post(verbs::SendRequest{
        .id = 1, .operation = Operation::write, .local = local, .remote = b.region->remote(50)}));
    ASSERT_TRUE(b.receive(2, 300));
    ASSERT_TRUE(a.queue_pair->post(verbs::SendRequest{.id = 3, .local = local}));
    EXPECT_EQ(a.queue_pair->sends_ended(), 0u);
    run();
    EXPECT_EQ(a.ends(), "1:success 3:success");
    EXPECT_EQ(a.queue_pair->sends_ended(), 2u);
    EXPECT_EQ(b.ends(), "2:success");
    EXPECT_EQ(std::count(b.memory.begin() + 50, b.memory.begin() + 254, std::byte{7}), 200);
    EXPECT_EQ(std::count(b.memory.begin() + 1024, b.memory.end(), std::byte{7}), 200);
}

TEST_F(OwnMemory, IsForThoseQueuePairsOnlyThatWereMadeForIt) {
    meet(false);
    std::array local{own(unregistered)};
    ASSERT_TRUE(a.queue_pair->post(verbs::SendRequest{.id = 1, .local = local}));
    run();
    EXPECT_EQ(a.ends(), "1:local_protection");
}

TEST_F(OwnMemory, TakesNothingIn) {
    meet(true);
    std::array local{own(unregistered)};
    ASSERT_TRUE(a.queue_pair->post(verbs::SendRequest{
        .id = 1, .operation = Operation::read, .local = local, .remote = b.region->remote()}));
    run();
    EXPECT_EQ(a.ends(), "1:local_protection");
    EXPECT_EQ(unregistered, std::vector<std::byte>(100, std::byte{7}));
}

TEST_F(OwnMemory, TakesNothingInByAReceiveEither) {
    meet(true);
    std::array local{own(unregistered)};
    ASSERT_TRUE(a.queue_pair->post(verbs::ReceiveRequest{1, local}));
    ASSERT_TRUE(b.send(2));
    run();
    EXPECT_EQ(a.ends(), "1:local_protection");
    EXPECT_EQ(unregistered, std::vector<std::byte>(100, std::byte{7}));
}

TEST_F(OwnMemory, IsNoPeersToWriteOrToInvalidate) {
    for (auto operation : {Operation::write, Operation::send_invalidate}) {
        RdmaSide victim(*here), attacker(*there);
        victim.make_queue_pair({.sends_own_memory = true});
        listener.reset();
        join(victim, attacker);
        ASSERT_TRUE(victim.receive(9));
        std::array local{attacker.region->local(0, 8)};
        verbs::RemoteMemory target{reinterpret_cast<std::uintptr_t>(unregistered.data()),
                                   own_memory};
        ASSERT_TRUE(attacker.queue_pair->post(
            verbs::SendRequest{.id = 1, .operation = operation, .local = local, .remote = target}));
        run();
        EXPECT_EQ(victim.state(), verbs::QueuePairState::failed);
        EXPECT_EQ(attacker.state(), verbs::QueuePairState::failed);
        EXPECT_EQ(unregistered, std::vector<std::byte>(100, std::byte{7}));
    }
}

}  // namespace
}  // namespace weft::sim
