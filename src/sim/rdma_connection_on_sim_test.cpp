// SPDX-License-Identifier: Apache-2.0
// How connections of the software RNIC begin and end, in every order of things.
#include <chrono>

#include "support/rdma_fixture.hpp"
#include "support/stranger.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::RdmaSide;
using test::Stranger;
using test::Told;
using verbs::QueuePairState;

ConstBuffer octets(const std::string& text) {
    return std::as_bytes(std::span(text));
}
std::string text(ConstBuffer data) {
    return {reinterpret_cast<const char*>(data.data()), data.size()};
}

class RdmaConnection : public test::RdmaTest {
protected:
    /// Until the request is in the application's hands there.
    void request(const verbs::ConnectOptions& options = {}) {
        listen();
        ASSERT_TRUE(a.connect(elm, options));
        run_until([&] { return !requests.empty(); });
        ASSERT_EQ(requests.size(), 1u);
    }

    /// Whoever connects there meets a stranger.
    std::unique_ptr<Listener> be_at(const Address& address, Stranger& stranger) {
        return std::move(
            *world.host(address.host).listen(address, [&](std::unique_ptr<Stream> accepted) {
                stranger.stream = std::move(accepted);
                stranger.stream->drive(stranger);
            }));
    }

    RdmaSide a{*here}, b{*there};
};

TEST_F(RdmaConnection, CarriesPrivateDataBothWays) {
    request({.private_data = octets("may I?")});
    EXPECT_EQ(text(requests[0]->private_data()), "may I?");
    ASSERT_TRUE(b.accept(*requests[0], {.private_data = octets("do!")}));
    run();
    EXPECT_EQ(a.record.told, Told{"established"});
    EXPECT_EQ(b.record.told, Told{"established"});
    EXPECT_EQ(text(a.connection->peer_private_data()), "do!");
    EXPECT_EQ(text(b.connection->peer_private_data()), "may I?");
    EXPECT_EQ(a.state(), QueuePairState::running);
    EXPECT_EQ(b.state(), QueuePairState::running);
}

TEST_F(RdmaConnection, SaysWhatWasAgreedAndWithWhom) {
    request({.inbound_reads = 3, .outbound_reads = 5});
    EXPECT_EQ(requests[0]->inbound_reads(), 3);
    EXPECT_EQ(requests[0]->outbound_reads(), 5);
    EXPECT_EQ(requests[0]->local(), elm);
    EXPECT_EQ(requests[0]->remote().host, "oak");
    ASSERT_TRUE(b.accept(*requests[0], {.inbound_reads = 4, .outbound_reads = 2}));
    run();
    auto &ours = a.connection->facts(), &theirs = b.connection->facts();
    EXPECT_TRUE(ours.checksums && theirs.checksums);
    EXPECT_TRUE(ours.extended && theirs.extended);
    EXPECT_EQ(ours.outbound_reads, 5) << "the other side raised what it serves";
    EXPECT_EQ(theirs.inbound_reads, 5);
    EXPECT_EQ(ours.inbound_reads, 3);
    EXPECT_EQ(theirs.outbound_reads, 2);
    EXPECT_EQ(ours.remote, elm);
    EXPECT_EQ(ours.local, theirs.remote);
}

TEST_F(RdmaConnection, PassesIpv6AddressesThrough) {
    auto six = Address::tcp("2001:db8::7", 7174);
    auto listening = there->listen(six, [&](std::unique_ptr<verbs::ConnectionRequest> request) {
        requests.push_back(std::move(request));
    });
    ASSERT_TRUE(listening);
    EXPECT_EQ((*listening)->address(), six);
    ASSERT_TRUE(a.connect(six));
    run_until([&] { return !requests.empty(); });
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_EQ(requests[0]->local(), six);
    ASSERT_TRUE(b.accept(*requests[0]));
    run();
    EXPECT_EQ(a.connection->facts().remote, six);
    EXPECT_EQ(b.connection->facts().local, six);
}

TEST_F(RdmaConnection, IsRefusedWithPrivateDataThatSaysWhy) {
    request();
    ASSERT_TRUE(requests[0]->reject(octets("not today")));
    EXPECT_FALSE(requests[0]->reject({})) << "it has been answered";
    EXPECT_FALSE(b.accept(*requests[0]));
    run();
    EXPECT_EQ(a.record.told, Told{"rejected"});
    EXPECT_EQ(text(a.connection->peer_private_data()), "not today");
    EXPECT_EQ(a.state(), QueuePairState::idle) << "it may ask somewhere else";
    EXPECT_TRUE(world.network().links().empty());
}

TEST_F(RdmaConnection, IsRefusedByARequestThatIsDroppedUnanswered) {
    request();
    requests.clear();
    run();
    EXPECT_EQ(a.record.told, Told{"failed"});
}

TEST_F(RdmaConnection, TakesNoMorePrivateDataThanFits) {
    std::string most(508, 'x'), more(509, 'x');
    EXPECT_EQ(a.connect(elm, {.private_data = octets(more)}).error().code, Code::out_of_range);
    request({.private_data = octets(most)});
    EXPECT_EQ(text(requests[0]->private_data()), most);
    EXPECT_EQ(b.accept(*requests[0], {.private_data = octets(more)}).error().code,
              Code::out_of_range);
    EXPECT_EQ(requests[0]->reject(octets(more)).error().code, Code::out_of_range);
    ASSERT_TRUE(b.accept(*requests[0], {.private_data = octets(most)})) << "it is still there";
    run();
    EXPECT_EQ(text(a.connection->peer_private_data()), most);
}

TEST_F(RdmaConnection, FailsWhereNobodyListens) {
    ASSERT_TRUE(a.connect(elm));
    EXPECT_EQ(a.record.told, Told{}) << "never from inside the call";
    run();
    EXPECT_EQ(a.record.told, Told{"failed"});
    EXPECT_EQ(a.record.failure.code, Code::io_failed);
    EXPECT_EQ(a.state(), QueuePairState::idle);
    listen();
    ASSERT_TRUE(a.connect(elm)) << "the queue pair is free for another attempt";
}

TEST_F(RdmaConnection, FailsWhereSomethingElseAnswers) {
    std::string words = "220 mail.example ready for your most esteemed letters\r\n";
    Stranger babbler({octets(words).begin(), octets(words).end()});
    auto listening = be_at(elm, babbler);
    ASSERT_TRUE(a.connect(elm));
    run();
    EXPECT_EQ(a.record.told, Told{"failed"});
    EXPECT_EQ(a.record.failure.code, Code::malformed);
}

TEST_F(RdmaConnection, ExplainsWhyItWillNotHaveWhatThePeerAnswers) {
    // More reads than we serve, and no message to say that we are ready with.
    for (auto terms : {"\x80\x10\x80\x81"s, "\x80\x10\x00\x10"s}) {
        for (int round = 0; round < 20; ++round) {
            // Now and then the answer is there before the network has let go of the request.
            world.network().set_options({.kept_lent_percent = 100});
            auto words = "MPA ID Rep Frame\x50\x02\x00\x04"s + terms;
            Stranger responder({octets(words).begin(), octets(words).end()});
            auto listening = be_at(elm, responder);
            RdmaSide one(*here);
            ASSERT_TRUE(one.connect(elm));
            run();
            EXPECT_EQ(one.record.told, Told{"failed"});
            EXPECT_NE(one.record.failure.code, Code::disconnected);
            EXPECT_TRUE(responder.is_closed);
            EXPECT_GT(responder.heard, Stranger::request({}).size()) << "a Terminate followed";
        }
    }
}

TEST_F(RdmaConnection, IsGivenUpIfThePeerNeverAnswers) {
    Stranger mute;
    auto listening = be_at(elm, mute);
    ASSERT_TRUE(a.connect(elm));
    world.run_for(9s);
    EXPECT_EQ(a.record.told, Told{});
    world.run_for(2s);
    EXPECT_EQ(a.record.told, Told{"failed"});
    EXPECT_EQ(a.record.failure.code, Code::timed_out);
}

TEST_F(RdmaConnection, IsGivenUpIfThePeerNeverSaysThatItIsReady) {
    Stranger initiator(Stranger::request({}));
    listen();
    initiator.stream = std::move(*world.host("oak").connect(elm, initiator));
    run_until([&] { return !requests.empty(); });
    ASSERT_TRUE(b.accept(*requests[0]));
    ASSERT_TRUE(b.receive(1));
    world.run_for(9s);
    EXPECT_EQ(b.record.told, Told{});
    world.run_for(2s);
    EXPECT_EQ(b.record.told, Told{"failed"});
    EXPECT_TRUE(initiator.is_closed);
    EXPECT_EQ(b.ends(), "1:flushed");
    EXPECT_TRUE(b.queue_pair->reset());
}

TEST_F(RdmaConnection, IsNotKeptForThoseWhoConnectAndSayNothing) {
    listen();
    std::vector<std::unique_ptr<Stranger>> crowd;
    constexpr std::size_t limit = 1024, extra = 10;
    for (std::size_t i = 0; i < limit + extra; ++i) {
        crowd.push_back(std::make_unique<Stranger>());
        crowd.back()->stream = std::move(*world.host("oak").connect(elm, *crowd.back()));
    }
    world.run_for(1s);
    auto closed = [&] {
        return std::ranges::count(crowd, true, [](auto& each) { return each->is_closed; });
    };
    EXPECT_EQ(closed(), static_cast<std::ptrdiff_t>(extra)) << "no more than so many are let in";
    world.run_for(11s);
    EXPECT_EQ(closed(), static_cast<std::ptrdiff_t>(limit + extra));
    EXPECT_TRUE(requests.empty());
    ASSERT_TRUE(a.connect(elm)) << "and then there is room again";
    run_until([&] { return !requests.empty(); });
    EXPECT_EQ(requests.size(), 1u);
}

TEST_F(RdmaConnection, EndsWithTheListenerUnlessTheApplicationHasTheRequest) {
    RdmaSide second(*here);
    request();
    ASSERT_TRUE(second.connect(elm));
    run_until([&] { return world.network().links().size() == 2; });
    listener.reset();
    run_until([&] { return !second.record.told.empty(); });
    EXPECT_EQ(second.record.told, Told{"failed"});
    ASSERT_TRUE(b.accept(*requests[0]));
    run();
    EXPECT_EQ(a.record.told, Told{"established"});
}

TEST_F(RdmaConnection, MayBeRequestedOfAListenerThatEndsItselfWhenAsked) {
    auto token = std::make_shared<int>(5);
    int seen = 0;
    listener = std::move(*there->listen(
        elm, [this, &seen, token](std::unique_ptr<verbs::ConnectionRequest> request) {
            listener.reset();
            seen = *token;
            requests.push_back(std::move(request));
        }));
    ASSERT_TRUE(a.connect(elm));
    run_until([&] { return !requests.empty(); });
    EXPECT_EQ(seen, 5);
    ASSERT_TRUE(b.accept(*requests[0]));
    run();
    EXPECT_EQ(b.record.told, Told{"established"});
}

TEST_F(RdmaConnection, CannotBeAcceptedOnceThePeerIsGone) {
    request();
    a.connection.reset();
    run();
    EXPECT_EQ(b.accept(*requests[0]).error().code, Code::disconnected);
    EXPECT_EQ(requests[0]->reject({}).error().code, Code::disconnected);
    EXPECT_EQ(a.record.told, Told{}) << "who destroys it hears nothing more";
}

TEST_F(RdmaConnection, FailsForTheAcceptingSideIfThePeerGoesBeforeItIsReady) {
    request();
    ASSERT_TRUE(b.accept(*requests[0]));
    a.connection.reset();
    run();
    EXPECT_EQ(b.record.told, Told{"failed"});
}

TEST_F(RdmaConnection, IsToldOverOnceOnEachSideWhoeverEndsIt) {
    for (int who = 0; who < 3; ++who) {
        RdmaSide one(*here), other(*there);
        join(one, other);
        if (who != 1) one.connection->disconnect();
        if (who != 0) other.connection->disconnect();
        run();
        one.connection->disconnect();
        run();
        EXPECT_EQ(one.record.told, (Told{"established", "disconnected"})) << who;
        EXPECT_EQ(other.record.told, (Told{"established", "disconnected"})) << who;
        EXPECT_EQ(one.state(), QueuePairState::failed);
        EXPECT_EQ(other.state(), QueuePairState::failed);
    }
    EXPECT_TRUE(events_here.empty()) << "an orderly end is no event";
}

TEST_F(RdmaConnection, IsLostAudiblyWhenTheNetworkResetsIt) {
    join(a, b);
    world.network().reset(world.network().links().at(0));
    run();
    EXPECT_EQ(a.record.told, (Told{"established", "disconnected"}));
    EXPECT_EQ(b.record.told, (Told{"established", "disconnected"}));
    EXPECT_EQ(count(events_here, verbs::AsyncEvent::Kind::queue_pair_failed), 1u);
    EXPECT_EQ(count(events_there, verbs::AsyncEvent::Kind::queue_pair_failed), 1u);
}

TEST_F(RdmaConnection, ClosesInTheEndEvenIfThePeerTakesNothingMore) {
    world.network().set_options({.give_up_after = 24h});
    std::vector<std::byte> much(1 << 20);
    auto large = std::move(*a.domain->register_memory(much, test::every_right));
    join(a, b);
    std::array local{large->local(0, 1 << 20)};
    ASSERT_TRUE(a.queue_pair->post(verbs::SendRequest{.id = 1, .local = local}));
    world.network().partition(world.network().links().at(0), Side::connector);
    world.run_for(1s);
    a.connection->disconnect();
    world.run_for(1s);
    EXPECT_EQ(a.record.told, Told{"established"}) << "it tries for a while";
    world.run_for(10s);
    EXPECT_EQ(a.record.told, (Told{"established", "disconnected"}));
    EXPECT_EQ(a.state(), QueuePairState::failed);
    EXPECT_EQ(a.ends(), "1:flushed");
}

TEST_F(RdmaConnection, CanBeAbandonedWhileItIsStillBeingMade) {
    listen();
    ASSERT_TRUE(a.connect(elm));
    a.connection->disconnect();
    run();
    EXPECT_EQ(a.record.told, Told{"failed"});
    EXPECT_EQ(a.record.failure.code, Code::disconnected);
    EXPECT_TRUE(requests.empty());
}

TEST_F(RdmaConnection, EndsIfItsQueuePairFailsBeforeItIsThere) {
    request();
    ASSERT_TRUE(a.receive(1));
    a.queue_pair->fail();
    EXPECT_EQ(a.state(), QueuePairState::failed);
    EXPECT_EQ(a.ends(), "1:flushed");
    world.run_for(100ms);  // before anybody's patience ends
    EXPECT_EQ(a.record.told, Told{"failed"});
    EXPECT_FALSE(b.accept(*requests[0]));
    EXPECT_TRUE(a.queue_pair->reset());
}

TEST_F(RdmaConnection, IsNotMadeForAQueuePairThatHasOne) {
    join(a, b);
    RdmaSide second(*here);
    EXPECT_EQ(a.device.connect(elm, *a.queue_pair, {}, a.record).error().code, Code::exhausted);
    ASSERT_TRUE(second.connect(elm));
    run_until([&] { return !requests.empty(); });
    EXPECT_EQ(requests[0]->accept(*b.queue_pair, {}, b.record).error().code, Code::exhausted);
    RdmaSide third(*there);
    EXPECT_TRUE(third.accept(*requests[0]));
}

TEST_F(RdmaConnection, OutlivesItsDeviceHandle) {
    join(a, b);
    ASSERT_TRUE(b.receive(1));
    here.reset();
    there.reset();
    ASSERT_TRUE(a.send(2));
    run();
    EXPECT_EQ(b.ends(), "1:success");
}

TEST_F(RdmaConnection, MayBeRejectedByARequestThatOutlivesItsDevice) {
    request();
    listener.reset();
    b.connection.reset();
    there.reset();
    EXPECT_TRUE(requests[0]->reject(octets("no device, no word")));
    run();
    EXPECT_EQ(a.record.told, Told{"failed"});
}

/// In each of the news something is destroyed: the connection, or its queue pair.
class RdmaDestruction : public RdmaConnection,
                        public testing::WithParamInterface<std::tuple<int, bool>> {
protected:
    void destroy(RdmaSide& side) {
        side.record.then = [&side] {
            std::get<1>(GetParam()) ? side.queue_pair.reset() : side.connection.reset();
        };
    }
};

TEST_P(RdmaDestruction, IsFineInEveryNewsOfAConnection) {
    bool whole = !std::get<1>(GetParam());
    switch (std::get<0>(GetParam())) {
        case 0:  // established, here
            destroy(a);
            request();
            ASSERT_TRUE(b.accept(*requests[0]));
            run();
            EXPECT_EQ(a.record.told,
                      whole ? Told{"established"} : (Told{"established", "disconnected"}));
            EXPECT_EQ(b.record.told.back(), b.record.told.size() == 2 ? "disconnected" : "failed");
            break;
        case 1:  // established, there
            destroy(b);
            request();
            ASSERT_TRUE(b.accept(*requests[0]));
            run();
            EXPECT_EQ(b.record.told,
                      whole ? Told{"established"} : (Told{"established", "disconnected"}));
            EXPECT_EQ(a.record.told, (Told{"established", "disconnected"}));
            break;
        case 2:  // rejected
            destroy(a);
            request();
            ASSERT_TRUE(requests[0]->reject({}));
            run();
            EXPECT_EQ(a.record.told, Told{"rejected"});
            break;
        case 3:  // failed
            destroy(a);
            ASSERT_TRUE(a.connect(elm));
            run();
            EXPECT_EQ(a.record.told, Told{"failed"});
            break;
        default:  // disconnected
            join(a, b);
            destroy(a);
            destroy(b);
            b.connection->disconnect();
            run();
            EXPECT_EQ(a.record.told, (Told{"established", "disconnected"}));
            EXPECT_EQ(b.record.told, (Told{"established", "disconnected"}));
    }
    EXPECT_TRUE(world.network().links().empty());
}

INSTANTIATE_TEST_SUITE_P(News, RdmaDestruction,
                         testing::Combine(testing::Range(0, 5), testing::Bool()));

/// Whatever the moment: something goes, and the other side hears of it once and is left usable.
TEST_F(RdmaConnection, MayLoseAnyPartAtAnyMoment) {
    for (int part = 0; part < 5; ++part) {
        for (std::uint64_t moment = 0; moment < 60; moment += 3) {
            requests.clear();
            listener.reset();
            listener = std::move(*there->listen(
                elm, [this](auto request) { requests.push_back(std::move(request)); }));
            RdmaSide one(*here), other(*there);
            ASSERT_TRUE(one.receive(1) && other.receive(1));
            ASSERT_TRUE(one.connect(elm));
            bool accepted = false;
            for (std::uint64_t i = 0; i < moment; ++i) {
                world.step();
                if (!requests.empty() && !accepted)
                    accepted = other.accept(*requests[0]).has_value();
                if (one.state() == QueuePairState::running) (void)one.send(2);
            }
            if (part == 0) one.connection.reset();
            if (part == 1) one.queue_pair.reset();
            if (part == 2) other.connection.reset();
            if (part == 3) other.queue_pair.reset();
            if (part == 4) requests.clear(), listener.reset();
            run();
            requests.clear();
            run();
            for (auto* side : {&one, &other}) {
                auto& told = side->record.told;
                ASSERT_LE(told.size(), 2u);
                if (told.size() == 2) {
                    ASSERT_EQ(told, (Told{"established", "disconnected"}));
                }
                if (!side->queue_pair || !side->connection) continue;
                bool is_over = !told.empty() && told.back() != "established";
                if (is_over && side->state() == QueuePairState::failed) {
                    ASSERT_TRUE(side->queue_pair->reset());
                }
            }
        }
    }
}

}  // namespace
}  // namespace weft::sim
