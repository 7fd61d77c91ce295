// SPDX-License-Identifier: Apache-2.0
// One port for three protocols, told apart however their first octets are cut.
#include "node/first_octets.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "base/bytes.hpp"
#include "sim/world.hpp"
#include "support/recording_engine.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using node::FirstOctets;
using node::Spoken;
using test::RecordingEngine;

constexpr std::uint64_t plenty = 1'000'000;
const Address elm = Address::tcp("elm", 3260);

struct Port {
    explicit Port(std::uint64_t seed, FirstOctets::Options options = {})
        : world(seed),
          first(world, options,
                [this](std::unique_ptr<Stream> accepted, Spoken what, ConstBuffer read_already) {
                    spoken = what;
                    read = read_already.size();
                    EXPECT_TRUE(node::feed(engine, read_already));
                    stream = std::move(accepted);
                    stream->drive(engine);
                }) {
        listener = std::move(*world.listen(
            elm, [this](std::unique_ptr<Stream> accepted) { first.add(std::move(accepted)); }));
    }
    std::unique_ptr<Stream> connect(RecordingEngine& client) {
        return std::move(*world.connect(elm, client));
    }

    World world;
    RecordingEngine engine;
    std::unique_ptr<Stream> stream;
    std::optional<Spoken> spoken;
    std::size_t read = 0;
    FirstOctets first;
    std::unique_ptr<Listener> listener;
};

TEST(FirstOctets, TellWhatIsSpokenAndLoseNone) {
    struct Case {
        std::string words;
        Spoken spoken;
        std::size_t read_at_most;
    };
    for (auto& each : {Case{"MPA ID Req Frame and the rest", Spoken::mpa, 16},
                       Case{"MPA ID Rep Frame is an answer", Spoken::iscsi, 16},
                       Case{"\x43\x87 a login request", Spoken::iscsi, 1},
                       Case{"GET / HTTP/1.1", Spoken::iscsi, 1},
                       Case{"{\"do\": \"list boxes\"}\n", Spoken::json, 1}})
        test::for_each_seed(50, [&](std::uint64_t seed) {
            Port port(seed);
            RecordingEngine client;
            auto stream = port.connect(client);
            client.say(bytes_of(each.words));
            ASSERT_TRUE(port.world.run_until_quiet(plenty));
            ASSERT_EQ(port.spoken, each.spoken) << each.words;
            EXPECT_LE(port.read, each.read_at_most);
            EXPECT_EQ(text_of(port.engine.received), each.words);
            EXPECT_EQ(port.first.waiting(), 0u);
        });
}

TEST(FirstOctets, AreNotWaitedForForEver) {
    Port port(1, {.patience = 5s});
    RecordingEngine silent, slow;
    auto one = port.connect(silent), other = port.connect(slow);
    slow.say(bytes_of("MPA ID"));
    port.world.run_for(4s);
    EXPECT_EQ(port.first.waiting(), 2u);
    EXPECT_EQ(silent.closed_count + slow.closed_count, 0);
    port.world.run_for(2s);
    EXPECT_EQ(port.first.waiting(), 0u);
    EXPECT_EQ(silent.closed_count + slow.closed_count, 2);
    EXPECT_FALSE(port.spoken);
}

TEST(FirstOctets, AreForgottenWithWhoLeaves) {
    Port port(1);
    RecordingEngine client;
    auto stream = port.connect(client);
    client.say(bytes_of("MPA"));
    client.finish = true;
    ASSERT_TRUE(port.world.run_until_quiet(plenty));
    EXPECT_EQ(port.first.waiting(), 0u);
    EXPECT_FALSE(port.spoken);
}

TEST(FirstOctets, AreWaitedForFromTheLatestOnly) {
    Port port(1, {.waiting_max = 2});
    std::array<RecordingEngine, 3> clients;
    std::vector<std::unique_ptr<Stream>> streams;
    for (auto& each : clients) {
        streams.push_back(port.connect(each));
        port.world.run_for(1s);
    }
    EXPECT_EQ(port.first.waiting(), 2u);
    EXPECT_EQ(clients[0].closed_count, 1);
    EXPECT_EQ(clients[2].closed_count, 0);
    port.first.clear();
    port.world.run_for(1s);
    for (auto& each : clients) EXPECT_EQ(each.closed_count, 1);
}

}  // namespace
}  // namespace weft::sim
