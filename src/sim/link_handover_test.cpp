// SPDX-License-Identifier: Apache-2.0
// Streams that are given another engine while they are open: where one protocol turns into another.
#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "sim/link.hpp"
#include "sim/world.hpp"
#include "support/golden.hpp"
#include "support/recording_engine.hpp"
#include "support/seeds.hpp"

namespace weft::sim {
namespace {

using test::Bytes;
using test::for_each_seed;
using test::RecordingEngine;

constexpr std::uint64_t plenty = 1'000'000;  // events
const Address elm = Address::tcp("elm", 3260);

Bytes numbered_bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
    return bytes;
}

/// Takes so many bytes and sends what it has to say; then the other engine has the stream.
class FirstEngine final : public RecordingEngine {
public:
    FirstEngine(std::size_t takes, RecordingEngine& next) : takes_(takes), next_(next) {
        on_filled = on_sent = on_tick = [this] { hand_over(); };
    }
    Stream* stream = nullptr;
    bool waits_for_a_tick = false;

    Buffer want() override {
        auto place = RecordingEngine::want();
        return place.first(std::min(place.size(), takes_ - received.size()));
    }

private:
    void hand_over() {
        if (received.size() < takes_ || sent_count < outgoing.size()) return;
        if (waits_for_a_tick && ticks.empty()) return;
        stream->drive(next_);
        closed_count = 1;  // from now on every call is one too many
    }

    std::size_t takes_;
    RecordingEngine& next_;
};

TEST(LinkHandover, GivesTheSecondEngineWhatTheFirstDidNotTake) {
    for_each_seed(300, [](std::uint64_t seed) {
        World world(seed);
        world.network().set_options({.kept_lent_percent = 50});
        RecordingEngine client, second;
        FirstEngine first(1 + seed * 37 % 900, second);
        first.say(numbered_bytes(seed % 5 * 100));
        second.say(numbered_bytes(700));
        std::unique_ptr<Stream> stream;
        auto listener = world.listen(elm, [&](std::unique_ptr<Stream> accepted) {
            stream = std::move(accepted);
            first.stream = stream.get();
            stream->drive(first);
        });
        auto client_stream = world.connect(elm, client);
        client.say(numbered_bytes(1000));
        ASSERT_TRUE(world.run_until_quiet(plenty));

        auto heard = first.received;
        heard.insert(heard.end(), second.received.begin(), second.received.end());
        EXPECT_EQ(heard, numbered_bytes(1000));
        EXPECT_EQ(second.opened_count, 0);
        auto said = first.outgoing;
        said.insert(said.end(), second.outgoing.begin(), second.outgoing.end());
        EXPECT_EQ(client.received, said);
        client.finish = true;
        (*client_stream)->wake();
        ASSERT_TRUE(world.run_until_quiet(plenty));
        EXPECT_EQ(second.closed_count, 1) << "the end is the second's to hear";
    });
}

TEST(LinkHandover, WorksForTheSideThatConnectedAndFromATick) {
    World world(1);
    RecordingEngine server, second;
    FirstEngine first(5, second);
    first.waits_for_a_tick = true;
    first.wanted_tick = world.now() + std::chrono::seconds(1);
    std::unique_ptr<Stream> stream;
    auto listener = world.listen(elm, [&](std::unique_ptr<Stream> accepted) {
        stream = std::move(accepted);
        stream->drive(server);
    });
    auto client_stream = std::move(*world.connect(elm, first));
    first.stream = client_stream.get();
    server.say(bytes_of("firstsecond"));
    second.say(bytes_of("well"));
    ASSERT_TRUE(world.run_until_quiet(plenty));
    EXPECT_EQ(text_of(first.received), "first");
    EXPECT_EQ(text_of(second.received), "second");
    EXPECT_EQ(text_of(server.received), "well");
}

TEST(LinkHandover, StopsAnEngineThatStillLends) {
    auto hand_over_too_early = [] {
        World world(1);
        world.network().set_options({.kept_lent_percent = 100});
        RecordingEngine server, first, second;
        std::unique_ptr<Stream> stream;
        auto listener = world.listen(elm, [&](std::unique_ptr<Stream> accepted) {
            stream = std::move(accepted);
            stream->drive(server);
        });
        auto client_stream = std::move(*world.connect(elm, first));
        first.say(bytes_of("lent"));
        while (server.received.empty()) world.step();
        client_stream->drive(second);
    };
    EXPECT_DEATH(hand_over_too_early(), "lent");
}

}  // namespace
}  // namespace weft::sim
