// SPDX-License-Identifier: Apache-2.0
// Whatever the messages, wherever their bytes lie and however the stream takes them: what comes out
// is read back as the same messages.
#include <gtest/gtest.h>

#include <random>

#include "iwarp/fpdu_sender.hpp"
#include "support/fpdu_sender_fixture.hpp"
#include "support/seeds.hpp"

namespace weft::iwarp {
namespace {

using test::Bytes;
using test::OutgoingMessage;
using test::SenderFixture;
using test::WireMessage;
using wire::RdmapOpcode;

class Chance {
public:
    explicit Chance(std::uint64_t seed) : generator_(seed) {}
    std::size_t between(std::size_t least, std::size_t most) {
        return std::uniform_int_distribution<std::size_t>(least, most)(generator_);
    }
    bool one_in(std::size_t count) { return between(1, count) == 1; }

private:
    std::mt19937_64 generator_;
};

OutgoingMessage draw_message(Chance& chance) {
    WireMessage message;
    message.opcode = static_cast<RdmapOpcode>(chance.between(0x0, 0xb));
    if (message.opcode == RdmapOpcode::terminate) message.opcode = RdmapOpcode::send;
    if (wire::is_tagged(message.opcode) || wire::invalidates(message.opcode))
        message.tag = SteeringTag{static_cast<std::uint32_t>(chance.between(1, ~0u))};
    if (wire::is_tagged(message.opcode)) message.offset = chance.between(0, ~std::uint64_t{0});

    // Long ones, short ones, empty ones; in a few pieces, in crumbs, in none.
    constexpr std::array<std::size_t, 4> piece_sizes{1, 5, 100, 30'000};
    auto piece_size = piece_sizes[chance.between(0, piece_sizes.size() - 1)];
    std::vector<std::vector<std::size_t>> pieces(chance.between(0, ranges_per_message));
    std::size_t size = 0;
    for (auto& range : pieces) {
        range.resize(chance.between(0, piece_size > 1000 ? 2 : 12));
        for (auto& piece : range) size += piece = chance.between(0, piece_size);
    }
    message.payload.resize(size);
    auto first = chance.between(0, 255);
    for (auto& octet : message.payload) octet = static_cast<std::byte>(first = first * 5 + 3);
    OutgoingMessage outgoing(std::move(message), pieces);
    for (std::size_t i = 0; i < pieces.size(); ++i)
        outgoing.hold_under(i, SteeringTag{static_cast<std::uint32_t>(chance.between(0, 3))});
    return outgoing;
}

FpduSenderOptions draw_options(Chance& chance) {
    FpduSenderOptions options{.checksum = !chance.one_in(4), .markers = chance.one_in(3)};
    constexpr std::array<std::size_t, 5> largest{128, 140, 1442, 9000, wire::ulpdu_limit};
    options.ulpdu_max = chance.between(128, largest[chance.between(0, largest.size() - 1)]);
    return options;
}

/// Asks and sends a few times, any number of pieces and octets, until nothing is left.
void drain(SenderFixture& fixture, Chance& chance) {
    for (;;) {
        auto lent = fixture.ask(chance.between(1, chance.one_in(2) ? 4 : 80));
        if (lent == 0) return;
        if (chance.one_in(4)) lent = std::max(lent, fixture.ask(chance.between(1, 80)));
        auto count = chance.one_in(3) ? lent : chance.between(0, lent);
        fixture.send(chance.one_in(4) ? std::min<std::size_t>(count, 5) : count);
        if (testing::Test::HasFailure()) return;
    }
}

TEST(FpduSender, SendsWhatItWasGivenHoweverItIsAsked) {
    test::for_each_seed(300, [](std::uint64_t seed) {
        Chance chance(seed);
        SenderFixture fixture(draw_options(chance));
        auto count = chance.between(1, 40);
        for (std::size_t i = 0; i < count; ++i) fixture.source.add(draw_message(chance));
        drain(fixture, chance);
        fixture.expect_all_messages();
    });
}

TEST(FpduSender, StopsCleanlyWhereverItIsStopped) {
    test::for_each_seed(200, [](std::uint64_t seed) {
        Chance chance(seed);
        SenderFixture fixture(draw_options(chance));
        for (int i = 0; i < 10; ++i) fixture.source.add(draw_message(chance));
        for (auto turns = chance.between(0, 20); turns > 0; --turns)
            fixture.send(chance.between(0, fixture.ask(chance.between(1, 80))));
        OutgoingMessage last({RdmapOpcode::terminate, {}, 0, Bytes(chance.between(4, 52))});
        bool speaks = chance.one_in(2);
        if (speaks)
            fixture.sender().wind_up(last.message());
        else
            fixture.sender().wind_up(std::nullopt);
        auto begun = fixture.source.begun;
        drain(fixture, chance);
        EXPECT_TRUE(fixture.sender().is_wound_up());
        EXPECT_EQ(fixture.source.begun, begun);

        auto stream = fixture.decoded();
        ASSERT_EQ(stream.messages().size(), fixture.source.ended + (speaks ? 1 : 0));
        for (std::size_t i = 0; i < fixture.source.ended; ++i)
            EXPECT_EQ(stream.messages()[i], fixture.source.waiting[i].expected());
        if (speaks) {
            EXPECT_EQ(stream.messages().back(), last.expected());
        }
        EXPECT_EQ(fixture.source.ended + (stream.unfinished() ? 1 : 0), begun);
    });
}

}  // namespace
}  // namespace weft::iwarp
