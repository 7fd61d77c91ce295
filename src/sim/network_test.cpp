// SPDX-License-Identifier: Apache-2.0
// What can go wrong with connections, one kind at a time, and who reaches whom.
#include "sim/network.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <deque>
#include <map>
#include <memory>

#include "base/bytes.hpp"
#include "sim/world.hpp"
#include "support/recording_engine.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using test::RecordingEngine;

constexpr std::uint64_t plenty = 1'000'000;  // events

/// The machine "oak" is connected to "elm", and nothing is under way.
struct NetworkTest : ::testing::Test {
    NetworkTest() {
        listener = listen(elm, Address::tcp("::", 3260));
        client_stream = std::move(*oak.connect(Address::tcp("elm", 3260), client));
        EXPECT_TRUE(world.run_until_quiet(plenty));
        EXPECT_EQ(client.opened_count, 1);
        link = link_of(*client_stream);
    }

    std::unique_ptr<Listener> listen(Host& host, const Address& address) {
        return std::move(*host.listen(address, [this](std::unique_ptr<Stream> stream) {
            server_stream = std::move(stream);
            server_stream->drive(server);
        }));
    }
    void client_says(std::string_view text) {
        client.say(bytes_of(text));
        client_stream->wake();
    }
    void server_says(std::string_view text) {
        server.say(bytes_of(text));
        server_stream->wake();
    }

    World world{1};
    Network& network = world.network();
    Host& oak = world.host("oak");
    Host& elm = world.host("elm");
    RecordingEngine client, server;
    std::unique_ptr<Listener> listener;
    std::unique_ptr<Stream> client_stream, server_stream;
    LinkId link{};
};

TEST_F(NetworkTest, ResolvesTheNamesOfItsMachinesAndListenersOnly) {
    auto extra = listen(elm, Address::tcp("10.0.0.1", 7));
    for (auto& known : {Address::tcp("elm", 1), Address::tcp("local", 2), Address::tcp("::1", 3),
                        Address::tcp("10.0.0.1", 4), Address::unix_socket("/anything")})
        EXPECT_EQ(*oak.resolve(known), std::vector{known});
    EXPECT_EQ(*world.resolve(Address::tcp("", 5)), std::vector{Address::tcp("localhost", 5)});
    EXPECT_EQ(world.resolve(Address::tcp("ash", 1)).error(), Error{.code = Code::not_found});
}

TEST_F(NetworkTest, ResetsALinkAndBothEndsHearOfIt) {
    client_says("lost");
    world.run_for(Duration(0));
    network.reset(link);
    EXPECT_EQ(client.closed_count, 0) << "not from inside the call";
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(client.closed_count, 1);
    EXPECT_EQ(client.why->code, Code::disconnected);
    EXPECT_EQ(server.closed_count, 1);
    EXPECT_EQ(server.why->code, Code::disconnected);
    EXPECT_TRUE(server.received.empty());
    EXPECT_TRUE(network.links().empty());
    network.reset(link);  // is over: nothing happens
}

TEST_F(NetworkTest, LeavesTheOtherEndOfAHalfOpenLinkWaiting) {
    network.half_open(link, Side::acceptor);
    world.run_for(24h);
    EXPECT_EQ(server.closed_count, 1);
    EXPECT_EQ(client.closed_count, 0);
    EXPECT_EQ(network.links().size(), 1u);
}

TEST_F(NetworkTest, TimesOutWhoSendsIntoAHalfOpenLink) {
    network.half_open(link, Side::acceptor);
    client_says("anyone?");
    world.run_for(19s);
    EXPECT_EQ(client.closed_count, 0);
    world.run_for(2s);
    EXPECT_EQ(client.closed_count, 1);
    EXPECT_EQ(client.why->code, Code::timed_out);
    EXPECT_TRUE(world.run_until_quiet(plenty));
    EXPECT_TRUE(network.links().empty());
}

TEST_F(NetworkTest, TimesOutWhoHasFilledTheWindowOfAHalfOpenLink) {
    server.room = 0;
    client_says(std::string(LinkOptions{}.window_bytes + 1, 'x'));
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(client.sent_count, LinkOptions{}.window_bytes);
    network.half_open(link, Side::acceptor);
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(client.closed_count, 1);
    EXPECT_EQ(client.why->code, Code::timed_out);
}

TEST_F(NetworkTest, TellsWhoHasFilledTheWindowThatThePeerHasLeft) {
    server.room = 0;
    client.finish = true;  // so that it does not go as soon as it hears goodbye
    client_says(std::string(LinkOptions{}.window_bytes + 1, 'x'));
    ASSERT_TRUE(world.run_until_quiet(plenty));
    server.finish = true;
    server_stream->wake();
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(server.closed_count, 1);
    EXPECT_EQ(client.closed_count, 1);
    EXPECT_TRUE(network.links().empty());
}

TEST_F(NetworkTest, ShowsItsWatcherEveryOctetAndWhoseItIs) {
    std::map<std::string, std::string> seen;
    network.watch([&](const Network::Sending& sending) {
        EXPECT_EQ(sending.link, link);
        EXPECT_EQ(sending.sender, sending.from == Side::connector ? "oak" : "elm");
        seen[sending.sender + " to " + sending.receiver] += text_of(sending.octets);
    });
    client_says("how are you");
    server_says("well");
    ASSERT_TRUE(world.run_until_quiet(plenty));
    client_says(" today?");
    ASSERT_TRUE(world.run_until_quiet(plenty));
    const std::map<std::string, std::string> expected{{"oak to elm", "how are you today?"},
                                                      {"elm to oak", "well"}};
    EXPECT_EQ(seen, expected);
}

TEST_F(NetworkTest, CorruptsOneBitOfWhatIsSentNext) {
    EXPECT_EQ(network.find(client_stream->local()), link);
    EXPECT_EQ(network.find(Address::tcp("oak", 1)), std::nullopt);
    network.corrupt(link, Side::connector);
    server_says("untouched");
    client_says("touched");
    ASSERT_TRUE(world.run_until_quiet(plenty));
    client_says(" once");
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(text_of(client.received), "untouched");
    auto expected = bytes_of("touched once");
    ASSERT_EQ(server.received.size(), expected.size());
    int bits = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
        bits += std::popcount(std::to_integer<unsigned>(server.received[i] ^ expected[i]));
    EXPECT_EQ(bits, 1);
}

TEST_F(NetworkTest, LetsADeadlineEndAHalfOpenLink) {
    network.half_open(link, Side::acceptor);
    client.wanted_tick = world.now() + 5s;
    client.on_tick = [this] { client.finish = true; };
    client_stream->wake();
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(client.closed_count, 1);
    EXPECT_FALSE(client.why);
}

TEST_F(NetworkTest, HoldsOneDirectionOfAPartitionAndDeliversAfterHealing) {
    network.partition(link, Side::connector);
    client_says("held");
    server_says("passes");
    world.run_for(10s);
    EXPECT_EQ(text_of(client.received), "passes");
    EXPECT_TRUE(server.received.empty());
    network.heal(link);
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(text_of(server.received), "held");
    EXPECT_EQ(client.closed_count, 0);
}

TEST_F(NetworkTest, GivesUpOnAPartitionThatLastsTooLong) {
    network.partition(link, Side::connector);
    client_says("held");
    world.run_for(21s);
    EXPECT_EQ(client.closed_count, 1);
    EXPECT_EQ(client.why->code, Code::timed_out);
    EXPECT_EQ(server.closed_count, 0) << "nobody can tell it";
    network.heal(link);
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(server.closed_count, 1);
    EXPECT_TRUE(server.received.empty()) << "what was given up never comes";
}

TEST_F(NetworkTest, DoesNotGiveUpOnAReceiverThatIsOnlySlow) {
    server.room = 0;
    client_says("patience");
    world.run_for(24h);
    EXPECT_EQ(client.closed_count, 0);
    server.room = 100;
    server_stream->wake();
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(text_of(server.received), "patience");
}

TEST_F(NetworkTest, IsSlowWhileClogged) {
    network.clog(link, 3s);
    client_says("slow");
    world.run_for(2900ms);
    EXPECT_TRUE(server.received.empty());
    world.run_for(200ms);
    EXPECT_EQ(text_of(server.received), "slow");
    network.clog(link, Duration(0));
    client_says(" fast");
    world.run_for(10ms);
    EXPECT_EQ(text_of(server.received), "slow fast");
}

TEST_F(NetworkTest, KeepsTwoMachinesApartThatOthersReach) {
    std::deque<RecordingEngine> servers;
    std::vector<std::unique_ptr<Stream>> streams;
    listener.reset();
    listener = std::move(*elm.listen(Address::tcp("::", 3260), [&](std::unique_ptr<Stream> stream) {
        streams.push_back(std::move(stream));
        streams.back()->drive(servers.emplace_back());
    }));
    network.separate("elm", "oak");
    world.run_for(1s);
    EXPECT_EQ(client.closed_count, 1);
    EXPECT_EQ(server.closed_count, 1);
    RecordingEngine refused, third, again;
    auto refused_stream = std::move(*oak.connect(Address::tcp("elm", 3260), refused));
    auto third_stream = std::move(*world.host("ash").connect(Address::tcp("elm", 3260), third));
    world.run_for(1s);
    EXPECT_EQ(refused.opened_count, 0);
    EXPECT_EQ(refused.closed_count, 1);
    EXPECT_EQ(third.opened_count, 1);
    network.unite("oak", "elm");
    auto again_stream = std::move(*oak.connect(Address::tcp("elm", 3260), again));
    world.run_for(1s);
    EXPECT_EQ(again.opened_count, 1);
}

TEST_F(NetworkTest, CutsAMachineOffOneWayOnly) {
    network.cut_off("elm", "oak");
    world.run_for(1s);
    EXPECT_EQ(client.closed_count, 0) << "oak began it";
    network.cut_off("oak", "elm");
    world.run_for(1s);
    EXPECT_EQ(client.closed_count, 1);
    RecordingEngine refused, again, accepted;
    auto refused_stream = std::move(*oak.connect(Address::tcp("elm", 3260), refused));
    world.run_for(1s);
    EXPECT_EQ(refused.opened_count, 0);
    network.reach_again("oak", "elm");
    auto others = std::move(*elm.listen(Address::tcp("::", 3261), [&](auto stream) {
        server_stream = std::move(stream);
        server_stream->drive(accepted);
    }));
    auto again_stream = std::move(*oak.connect(Address::tcp("elm", 3261), again));
    world.run_for(1s);
    EXPECT_EQ(again.opened_count, 1);
}

TEST_F(NetworkTest, TakesBytesForAMachineThatStandsStillAndTellsItLater) {
    elm.pause();
    client_says("early");
    world.run_for(5s);
    EXPECT_TRUE(server.received.empty());
    EXPECT_GT(client.sent_count, 0u) << "its kernel has taken them";
    elm.resume();
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(text_of(server.received), "early");
    EXPECT_EQ(client.closed_count, 0);
}

TEST_F(NetworkTest, ConnectsToAMachineThatStandsStill) {
    server_stream.reset();
    client_stream.reset();
    ASSERT_TRUE(world.run_until_quiet(plenty));
    RecordingEngine late, accepted;
    listener.reset();
    listener = std::move(*elm.listen(Address::tcp("::", 3260), [&](auto stream) {
        server_stream = std::move(stream);
        server_stream->drive(accepted);
    }));
    elm.pause();
    auto stream = std::move(*oak.connect(Address::tcp("elm", 3260), late));
    world.run_for(1s);
    EXPECT_EQ(late.opened_count, 1) << "by its kernel";
    EXPECT_EQ(accepted.opened_count, 0);
    elm.resume();
    late.say(bytes_of("hello"));
    stream->wake();
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(text_of(accepted.received), "hello");
    stream.reset();
    server_stream.reset();
    ASSERT_TRUE(world.run_until_quiet(plenty));
}

TEST_F(NetworkTest, TakesItsTimeOverANarrowLine) {
    network.set_lines("elm", {.bytes_per_second = 1'000'000});
    client.say(std::vector<std::byte>(50'000));
    client_stream->wake();
    world.run_for(20ms);
    EXPECT_LT(server.received.size(), 50'000u);
    world.run_for(10s);
    EXPECT_EQ(server.received.size(), 50'000u);
}

TEST_F(NetworkTest, SilencesAMachineWithoutPower) {
    elm.power_cut();
    world.run_for(1h);
    EXPECT_EQ(server.closed_count, 0) << "nobody is there to hear it";
    EXPECT_EQ(client.closed_count, 0) << "nobody is there to say it";
    server_says("into the void");
    client_says("hello?");
    world.run_for(21s);
    EXPECT_EQ(client.why->code, Code::timed_out);
    EXPECT_TRUE(client.received.empty());

    RecordingEngine second;
    auto second_stream = std::move(*oak.connect(Address::tcp("elm", 3260), second));
    world.run_for(21s);
    EXPECT_EQ(second.opened_count, 0);
    EXPECT_EQ(second.why->code, Code::timed_out);
}

TEST_F(NetworkTest, ResetsWhatAMachineDoesNotRememberAfterAPowerCut) {
    elm.power_cut();
    client_says("are you there?");
    world.run_for(5s);
    elm.power_on();
    world.run_for(1s);
    EXPECT_EQ(client.closed_count, 1);
    EXPECT_EQ(client.why->code, Code::disconnected);
    EXPECT_EQ(server.closed_count, 0);
}

TEST_F(NetworkTest, ReachesAMachineThatComesBackInTime) {
    elm.power_cut();
    listener.reset();
    server_stream.reset();
    RecordingEngine second, restarted;
    auto second_stream = std::move(*oak.connect(Address::tcp("elm", 3260), second));
    world.run_for(5s);
    elm.power_on();
    std::unique_ptr<Stream> restarted_stream;
    auto again = elm.listen(Address::tcp("::", 3260), [&](std::unique_ptr<Stream> stream) {
        restarted_stream = std::move(stream);
        restarted_stream->drive(restarted);
    });
    world.run_for(1s);
    EXPECT_EQ(second.opened_count, 1);
    EXPECT_TRUE(restarted_stream);
}

TEST_F(NetworkTest, FindsListenersByMachineNameLoopbackAndPath) {
    struct Case {
        Host& from;
        Address listening, wanted;
        bool reached;
    };
    auto tcp = [](const char* host) { return Address::tcp(host, 99); };
    std::vector<Case> cases{
        {oak, tcp("::"), tcp("elm"), true},
        {oak, tcp("elm"), tcp("elm"), true},
        {oak, tcp("10.0.0.7"), tcp("10.0.0.7"), true},
        {oak, tcp("::"), tcp("oak"), false},
        {oak, tcp("::"), tcp("::1"), false},
        {elm, tcp("::"), tcp("localhost"), true},
        {elm, tcp("127.0.0.1"), tcp("localhost"), true},
        {oak, tcp("127.0.0.1"), tcp("127.0.0.1"), false},
        {oak, tcp("elm"), Address::tcp("elm", 98), false},
        {elm, Address::unix_socket("/run/x"), Address::unix_socket("/run/x"), true},
        {oak, Address::unix_socket("/run/x"), Address::unix_socket("/run/x"), false},
    };
    for (Case& example : cases) {
        RecordingEngine engine;
        std::vector<std::unique_ptr<Stream>> accepted;
        auto listening = elm.listen(example.listening, [&](std::unique_ptr<Stream> stream) {
            accepted.push_back(std::move(stream));
        });
        auto stream = example.from.connect(example.wanted, engine);
        world.run_for(1s);
        EXPECT_EQ(engine.opened_count == 1, example.reached)
            << to_text(example.wanted) << " from " << example.from.name() << " to "
            << to_text(example.listening);
    }
}

TEST_F(NetworkTest, GivesAFreePortToWhoAsksForNone) {
    auto one = elm.listen(Address::tcp("elm", 0), [](auto) {});
    auto two = elm.listen(Address::tcp("elm", 0), [](auto) {});
    EXPECT_NE((*one)->address().port, 0);
    EXPECT_NE((*one)->address().port, (*two)->address().port);
    auto taken = elm.listen((*one)->address(), [](auto) {});
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Code::io_failed);
}

TEST_F(NetworkTest, LetsAcceptedStreamsOutliveTheirListener) {
    listener.reset();
    client_says("still here");
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(text_of(server.received), "still here");
    RecordingEngine second;
    auto stream = oak.connect(Address::tcp("elm", 3260), second);
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(second.why->code, Code::io_failed);
}

TEST_F(NetworkTest, UsesTheOptionsOfTheAddress) {
    LinkOptions slow;
    slow.shortest_delay = slow.longest_delay = 1s;
    network.set_options(Address::tcp("elm", 3260), slow);
    RecordingEngine second;
    auto stream = oak.connect(Address::tcp("elm", 3260), second);
    world.run_for(1900ms);
    EXPECT_EQ(second.opened_count, 0);
    world.run_for(200ms);
    EXPECT_EQ(second.opened_count, 1);
}

}  // namespace
}  // namespace weft::sim
