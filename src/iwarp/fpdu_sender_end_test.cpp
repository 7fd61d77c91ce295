// SPDX-License-Identifier: Apache-2.0
// How a sender stops: what it had lent goes out, then the last word, then nothing.
#include <gtest/gtest.h>

#include "iwarp/fpdu_sender.hpp"
#include "support/fpdu_sender_fixture.hpp"
#include "wire/terminate.hpp"

namespace weft::iwarp {
namespace {

using test::Bytes;
using test::OutgoingMessage;
using test::SenderFixture;
using test::WireMessage;
using wire::RdmapOpcode;

constexpr FpduSenderOptions usual{.ulpdu_max = wire::largest_ulpdu(1448, wire::Markers::absent)};

class AWindingUpSender : public testing::TestWithParam<bool> {
protected:
    SenderFixture fixture{{.markers = GetParam(), .ulpdu_max = 128}};
    OutgoingMessage terminate{
        WireMessage{RdmapOpcode::terminate, {}, 0, Bytes(4, std::byte{0x20})}};

    void add_send(std::size_t size, std::uint32_t tag) {
        fixture.source.add(OutgoingMessage({RdmapOpcode::send, {}, 0, Bytes(size)}))
            .hold_under(0, SteeringTag{tag});
    }
    bool is_held(std::uint32_t tag) const { return fixture.holds.is_held(SteeringTag{tag}); }
    /// After these of the source's messages comes the last word.
    void expect_whole_messages_and_terminate(std::size_t count) {
        auto stream = fixture.decoded();
        ASSERT_EQ(stream.messages().size(), count + 1);
        for (std::size_t i = 0; i < count; ++i)
            EXPECT_EQ(stream.messages()[i], fixture.source.waiting[i].expected());
        EXPECT_EQ(stream.messages().back(), terminate.expected());
    }
};
INSTANTIATE_TEST_SUITE_P(WithAndWithoutMarkers, AWindingUpSender, testing::Bool());

TEST_P(AWindingUpSender, WithNothingLentSendsTheLastWordAtOnce) {
    add_send(10, 0x100);
    EXPECT_FALSE(fixture.sender().is_wound_up());
    fixture.sender().wind_up(terminate.message());
    EXPECT_FALSE(fixture.sender().is_wound_up());
    fixture.send(fixture.ask(64) - 1);
    EXPECT_FALSE(fixture.sender().is_wound_up());
    fixture.send(1);
    EXPECT_TRUE(fixture.sender().is_wound_up());
    EXPECT_EQ(fixture.ask(64), 0u);
    EXPECT_EQ(fixture.source.begun, 0u);
    EXPECT_EQ(fixture.source.ended, 0u) << "the last word is not the source's";
    expect_whole_messages_and_terminate(0);
}

TEST_P(AWindingUpSender, WithNothingToSayIsDoneAtOnce) {
    add_send(10, 0x100);
    fixture.sender().wind_up(std::nullopt);
    EXPECT_TRUE(fixture.sender().is_wound_up());
    EXPECT_EQ(fixture.ask(64), 0u);
    EXPECT_EQ(fixture.source.begun, 0u);
}

TEST_P(AWindingUpSender, FirstSendsAllThatItHadLent) {
    // A stream may have sent it on already, and tell us later: it cannot be taken back.
    for (int i = 0; i < 3; ++i) add_send(10, 0x100);
    auto lent = fixture.ask(64);
    auto begun = fixture.source.begun;
    fixture.send(7);
    fixture.sender().wind_up(terminate.message());
    EXPECT_TRUE(fixture.sender().amid_fpdu());
    fixture.ask(64);
    fixture.send(lent - 7);
    EXPECT_EQ(fixture.source.ended, begun);
    EXPECT_FALSE(is_held(0x100));
    EXPECT_FALSE(fixture.sender().is_wound_up());
    fixture.send_all();
    EXPECT_TRUE(fixture.sender().is_wound_up());
    EXPECT_EQ(fixture.source.begun, begun);
    expect_whole_messages_and_terminate(begun);
}

TEST_P(AWindingUpSender, CompletesAnFpduOfWhichOnlyThePartThatFittedWasLent) {
    add_send(10, 0x100);
    auto lent = fixture.ask(1);
    fixture.sender().wind_up(terminate.message());
    fixture.send(lent);
    fixture.send_all();
    EXPECT_EQ(fixture.source.ended, 1u);
    expect_whole_messages_and_terminate(1);
}

TEST(FpduSender, ThatWindsUpLeavesAMessageUnfinished) {
    SenderFixture fixture({.ulpdu_max = 128});
    OutgoingMessage terminate({RdmapOpcode::terminate, {}, 0, Bytes(4)});
    fixture.source.add(OutgoingMessage({RdmapOpcode::send, {}, 0, Bytes(10)}));
    fixture.source.add(OutgoingMessage({RdmapOpcode::write, SteeringTag{5}, 0, Bytes(10'000)}))
        .hold_under(0, SteeringTag{0x200});
    auto lent = fixture.ask(64);
    fixture.sender().wind_up(terminate.message());
    EXPECT_TRUE(fixture.holds.is_held(SteeringTag{0x200})) << "it is still lent";
    fixture.send(lent);
    fixture.send_all();
    EXPECT_FALSE(fixture.holds.is_held(SteeringTag{0x200}));
    EXPECT_EQ(fixture.source.ended, 1u);
    EXPECT_TRUE(fixture.sender().is_wound_up());

    auto stream = fixture.decoded();
    ASSERT_EQ(stream.messages().size(), 2u);
    EXPECT_EQ(stream.messages()[1], terminate.expected());
    ASSERT_TRUE(stream.unfinished());
    EXPECT_EQ(stream.unfinished()->opcode, RdmapOpcode::write);
}

TEST(FpduSender, ThatWindsUpReleasesAMessageOfWhichNothingIsLentNow) {
    SenderFixture fixture({.ulpdu_max = 128});
    fixture.source.add(OutgoingMessage({RdmapOpcode::send, {}, 0, Bytes(10'000)}))
        .hold_under(0, SteeringTag{0x200});
    auto lent = fixture.ask(64);
    lent = std::max(lent, fixture.ask(300));
    fixture.send(lent);
    EXPECT_TRUE(fixture.holds.is_held(SteeringTag{0x200}));
    fixture.sender().wind_up(std::nullopt);
    EXPECT_FALSE(fixture.holds.is_held(SteeringTag{0x200}));
    EXPECT_TRUE(fixture.sender().is_wound_up());
    EXPECT_EQ(fixture.ask(64), 0u);
    EXPECT_EQ(fixture.source.ended, 0u);
}

TEST(FpduSender, WindsUpOnce) {
    SenderFixture fixture(usual);
    OutgoingMessage terminate({RdmapOpcode::terminate, {}, 0, Bytes(4)});
    fixture.sender().wind_up(terminate.message());
    fixture.sender().wind_up(terminate.message());
    fixture.send_all();
    fixture.sender().wind_up(terminate.message());
    EXPECT_EQ(fixture.ask(64), 0u);
    EXPECT_EQ(fixture.decoded().messages().size(), 1u);
}

TEST(FpduSender, BearsASourceThatGivesUpWhenAsked) {
    SenderFixture fixture(usual);
    OutgoingMessage terminate({RdmapOpcode::terminate, {}, 0, Bytes(4)});
    for (int i = 0; i < 3; ++i)
        fixture.source.add(OutgoingMessage({RdmapOpcode::send, {}, 0, Bytes(10)}));
    fixture.source.when_asked = [&] {
        if (fixture.source.begun == 2) fixture.sender().wind_up(terminate.message());
    };
    fixture.send_all();
    EXPECT_EQ(fixture.source.ended, 2u);
    auto stream = fixture.decoded();
    ASSERT_EQ(stream.messages().size(), 3u) << "the message named in the same breath does not go";
    EXPECT_EQ(stream.messages()[2], terminate.expected());
}

TEST(FpduSender, BearsASourceThatGivesUpWhenToldOfItsMessage) {
    SenderFixture fixture({.ulpdu_max = 128});
    OutgoingMessage terminate({RdmapOpcode::terminate, {}, 0, Bytes(4)});
    for (int i = 0; i < 3; ++i)
        fixture.source.add(OutgoingMessage({RdmapOpcode::send, {}, 0, Bytes(10)}));
    fixture.source.add(OutgoingMessage({RdmapOpcode::send, {}, 0, Bytes(10'000)}))
        .hold_under(0, SteeringTag{0x200});
    fixture.source.when_sent = [&] { fixture.sender().wind_up(std::nullopt); };
    fixture.send(fixture.ask(300));
    EXPECT_EQ(fixture.source.ended, 3u);
    EXPECT_TRUE(fixture.sender().is_wound_up());
    EXPECT_FALSE(fixture.holds.is_held(SteeringTag{0x200}));
    EXPECT_EQ(fixture.ask(64), 0u);
}

}  // namespace
}  // namespace weft::iwarp
