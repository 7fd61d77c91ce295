// SPDX-License-Identifier: Apache-2.0
#include "iwarp/fpdu_sender.hpp"

#include <gtest/gtest.h>

#include "support/fpdu_sender_fixture.hpp"
#include "wire/terminate.hpp"

namespace weft::iwarp {
namespace {

using test::Bytes;
using test::from_hex;
using test::golden;
using test::OutgoingMessage;
using test::SenderFixture;
using test::to_hex;
using test::WireMessage;
using wire::RdmapOpcode;

constexpr std::size_t ethernet_ulpdu = wire::largest_ulpdu(1448, wire::Markers::absent);
constexpr FpduSenderOptions usual{.ulpdu_max = ethernet_ulpdu};

Bytes octets(std::size_t size, std::uint8_t first = 1) {
    Bytes bytes(size);
    for (auto& octet : bytes) octet = static_cast<std::byte>(first++);
    return bytes;
}
Bytes text(std::string_view words) {
    auto bytes = bytes_of(words);
    return {bytes.begin(), bytes.end()};
}
template <class Header>
Bytes body(const Header& header) {
    auto bytes = encoded(header);
    return {bytes.begin(), bytes.end()};
}
WireMessage send(Bytes payload) {
    return {RdmapOpcode::send, {}, 0, std::move(payload)};
}
WireMessage write(std::uint32_t tag, std::uint64_t offset, Bytes payload) {
    return {RdmapOpcode::write, SteeringTag{tag}, offset, std::move(payload)};
}

/// The stream that carries these messages and nothing else.
Bytes stream_of(const FpduSenderOptions& options, const std::vector<WireMessage>& messages) {
    SenderFixture fixture(options);
    for (const auto& message : messages) fixture.source.add(OutgoingMessage(message));
    fixture.send_all();
    fixture.expect_all_messages();
    return fixture.octets();
}
std::string hex_of(const WireMessage& message) {
    return to_hex(stream_of(usual, {message}));
}
std::string spaced(std::string_view hex) {
    return to_hex(from_hex(hex));
}

TEST(FpduSender, WritesWhatLinuxWrites) {
    EXPECT_EQ(hex_of(write(1, 0, {})), to_hex(golden("iwarp/write_ready.hex")));
    auto advertisement = golden("iwarp/send.hex");
    EXPECT_EQ(hex_of(send(Bytes(advertisement.begin() + 20, advertisement.end() - 4))),
              to_hex(advertisement));
    auto request = golden("iwarp/read_request.hex");
    EXPECT_EQ(
        hex_of({RdmapOpcode::read_request, {}, 0, Bytes(request.begin() + 20, request.end() - 4)}),
        to_hex(request));
    auto response = golden("iwarp/read_response.hex");
    EXPECT_EQ(hex_of({RdmapOpcode::read_response, SteeringTag{0xe6e6bf00}, 0x563fc3701bf0,
                      Bytes(response.begin() + 16, response.end() - 4)}),
              to_hex(response));
}

TEST(FpduSender, LeavesTheChecksumZeroIfNoneIsWanted) {
    auto golden_octets = golden("iwarp/send_invalidate.hex");  // the second message of its queue
    auto stream = stream_of({.checksum = false, .ulpdu_max = ethernet_ulpdu},
                            {send(text("hello")),
                             {RdmapOpcode::send_invalidate, SteeringTag{0x19e4d301}, 0,
                              Bytes(golden_octets.begin() + 20, golden_octets.end() - 4)}});
    auto first = spaced("0017 4143 00000000 00000000 00000001 00000000 68656c6c6f 000000 00000000");
    EXPECT_EQ(to_hex(ConstBuffer(stream).first(32)), first);
    EXPECT_EQ(to_hex(ConstBuffer(stream).subspan(32)), to_hex(golden_octets));
}

TEST(FpduSender, WritesEveryKindOfMessage) {
    EXPECT_EQ(hex_of(send(text("hello"))),
              spaced("0017 4143 00000000 00000000 00000001 00000000 68656c6c6f 000000 b990b10c"));
    EXPECT_EQ(hex_of(send({})), spaced("0012 4143 00000000 00000000 00000001 00000000 587be8c4"));
    EXPECT_EQ(hex_of(send(Bytes(24))).substr(44 * 3), "b7 24 3e c3");
    EXPECT_EQ(hex_of({RdmapOpcode::read_request,
                      {},
                      0,
                      body(wire::ReadRequest{.source_tag = SteeringTag{1}})}),
              spaced("002e 4141 00000000 00000001 00000001 00000000 00000000 0000000000000000"
                     "00000000 00000001 0000000000000000 ba10e3c9"));
    EXPECT_EQ(hex_of(write(0x11223344, 0x7f0000001000, text("abc"))),
              spaced("0011 c140 11223344 00007f0000001000 616263 00 7d5d4c77"));
    EXPECT_EQ(
        hex_of({RdmapOpcode::read_request,
                {},
                0,
                body(wire::ReadRequest{.sink_tag = SteeringTag{0x100},
                                       .sink_offset = wire::TaggedOffset{0x7f0000002000},
                                       .size = 4096,
                                       .source_tag = SteeringTag{0x11223344},
                                       .source_offset = wire::TaggedOffset{0x7f0000001000}})}),
        spaced("002e 4141 00000000 00000001 00000001 00000000 00000100 00007f0000002000"
               "00001000 11223344 00007f0000001000 b35b9c0c"));
    EXPECT_EQ(hex_of({RdmapOpcode::read_response, SteeringTag{0x100}, 0x7f0000002000, text("Z")}),
              spaced("000f c142 00000100 00007f0000002000 5a 000000 2517fd78"));
    EXPECT_EQ(
        hex_of(
            {RdmapOpcode::terminate, {}, 0, body(wire::terminate_for(wire::MpaError::checksum))}),
        spaced("0016 4147 00000000 00000002 00000001 00000000 20020000 7fe42585"));
}

TEST(FpduSender, PutsMarkersWhereTheRfcPutsThem) {
    // A Write between the two Sends brings the second to octet 0x1ec, where the RFC has it.
    auto stream = stream_of({.markers = true, .ulpdu_max = 1442},
                            {send(Bytes(24)), write(1, 0, octets(420)), send(Bytes(24))});
    EXPECT_EQ(to_hex(ConstBuffer(stream).first(52)),
              to_hex(golden("iwarp/fpdu_rfc5044_figure5.hex")));
    EXPECT_EQ(to_hex(ConstBuffer(stream).subspan(0x1ec)),
              to_hex(golden("iwarp/fpdu_rfc5044_figure6.hex")));
}

TEST(FpduSender, CutsMessagesAsLinuxDoes) {
    SenderFixture fixture(usual);
    fixture.source.add(OutgoingMessage(send(octets(3000))));
    fixture.source.add(OutgoingMessage(write(7, 0xffff'ffff'0000, octets(1428 * 2))));
    fixture.source.add(
        OutgoingMessage({RdmapOpcode::send_solicited_invalidate, SteeringTag{9}, 0, octets(1425)}));
    fixture.send_all();
    fixture.expect_all_messages();
    EXPECT_EQ(fixture.decoded().segments(),
              (std::vector<std::size_t>{1424, 1424, 152, 1428, 1428, 1424, 1}));
}

TEST(FpduSender, NumbersTheMessagesOfEachQueue) {
    // The stream's reader checks the numbers; here are all the queues, mixed.
    SenderFixture fixture(usual);
    for (int round = 0; round < 3; ++round)
        for (auto opcode :
             {RdmapOpcode::send, RdmapOpcode::write, RdmapOpcode::read_request,
              RdmapOpcode::send_invalidate, RdmapOpcode::send_solicited,
              RdmapOpcode::immediate_data, RdmapOpcode::immediate_data_solicited,
              RdmapOpcode::atomic_request, RdmapOpcode::atomic_response, RdmapOpcode::terminate}) {
            bool carries_tag = wire::is_tagged(opcode) || wire::invalidates(opcode);
            fixture.source.add(
                OutgoingMessage({opcode, SteeringTag{carries_tag ? 0x1234u : 0u}, 0, octets(28)}));
        }
    fixture.send_all();
    fixture.expect_all_messages();
}

TEST(FpduSender, LendsManyMessagesAtOnceForOneSystemCall) {
    SenderFixture fixture(usual);
    for (int i = 0; i < 100; ++i) fixture.source.add(OutgoingMessage(send(octets(100))));
    // A header, then 31 payloads, between them a trailer and a header in one, half of the last.
    EXPECT_EQ(fixture.ask(64), 124u * 32 - 4);
    EXPECT_EQ(fixture.lent().size(), 64u);
    EXPECT_EQ(fixture.source.begun, 32u);
    EXPECT_EQ(fixture.ask(300), 124u * limits::fpdus_lent);
    EXPECT_EQ(fixture.source.begun, limits::fpdus_lent) << "the bound holds";
    fixture.send(124u * 5);
    EXPECT_EQ(fixture.source.ended, 5u);
    EXPECT_EQ(fixture.ask(300), 124u * limits::fpdus_lent);
    fixture.send_all();
    fixture.expect_all_messages();
}

TEST(FpduSender, LendsAShortMessageAsOnePiece) {
    SenderFixture fixture(usual);
    for (int i = 0; i < 100; ++i)
        fixture.source.add(OutgoingMessage(send(octets(64)), {{30}, {4, 30}}));
    // Each with the trailer of the one before; and the last trailer.
    EXPECT_EQ(fixture.ask(300), 88u * limits::fpdus_lent);
    EXPECT_EQ(fixture.lent().size(), limits::fpdus_lent + 1);
    fixture.send_all();
    fixture.expect_all_messages();
}

TEST(FpduSender, LendsOnlySoMuchAtOnce) {
    SenderFixture fixture({.ulpdu_max = wire::ulpdu_limit});
    fixture.source.add(OutgoingMessage(write(1, 0, octets(1u << 20))));
    auto lent = fixture.ask(64);
    EXPECT_GE(lent, limits::lent_bytes);
    EXPECT_LT(lent, limits::lent_bytes + 65536);
    fixture.send_all();
    fixture.expect_all_messages();
}

TEST(FpduSender, TakesNoMessageItHasNoRoomFor) {
    SenderFixture fixture(usual);
    fixture.source.add(OutgoingMessage(send(octets(100))));
    EXPECT_EQ(fixture.ask(0), 0u);
    EXPECT_EQ(fixture.source.begun, 0u);
    EXPECT_EQ(fixture.ask(1), 20u);
    EXPECT_EQ(fixture.source.begun, 1u);
}

TEST(FpduSender, LendsTheMemoryItselfAndReadsItOnce) {
    SenderFixture fixture(usual);
    auto& message = fixture.source.add(OutgoingMessage(send(octets(124)), {{100}, {14, 10}}));
    fixture.ask(64);
    ASSERT_EQ(fixture.lent().size(), 5u);
    EXPECT_EQ(fixture.lent()[1].data(), message.memory(0, 0).data());
    EXPECT_EQ(fixture.lent()[2].data(), message.memory(1, 0).data());
    EXPECT_EQ(fixture.lent()[3].data(), message.memory(1, 1).data());
    auto trailer = to_hex(fixture.lent()[4]);
    // Were the checksum computed again whenever asked, it would now be another.
    message.memory(0, 0)[0] ^= std::byte{0xff};
    std::array<ConstBuffer, 64> pieces;
    ASSERT_EQ(fixture.sender().pending(pieces), 5u);
    EXPECT_EQ(to_hex(pieces[4]), trailer);
    message.memory(0, 0)[0] ^= std::byte{0xff};
}

TEST(FpduSender, MakesShorterFpdusOfMemoryInManyPieces) {
    SenderFixture fixture(usual);
    std::vector<std::size_t> crumbs(50, 1);
    crumbs[0] = 3;
    fixture.source.add(OutgoingMessage(send(octets(52)), {crumbs}));
    fixture.send_all();
    fixture.expect_all_messages();
    // Sixteen pieces are 18 octets, of which 16 go so that no padding is needed.
    EXPECT_EQ(fixture.decoded().segments(), (std::vector<std::size_t>{16, 16, 16, 4}));
}

TEST(FpduSender, SkipsRangesThatHoldNothing) {
    SenderFixture fixture(usual);
    fixture.source.add(OutgoingMessage(send(octets(10)), {{0}, {4}, {}, {6}, {0}}));
    fixture.source.add(OutgoingMessage(send({}), {{}, {0}}));
    fixture.send_all();
    fixture.expect_all_messages();
}

TEST(FpduSender, TellsOfAMessageWhenItsLastOctetIsSent) {
    SenderFixture fixture(usual);
    fixture.source.add(OutgoingMessage(send(octets(2000)))).hold_under(0, SteeringTag{0x100});
    auto& second = fixture.source.add(OutgoingMessage(send(octets(8)), {{4}, {4}}));
    second.hold_under(0, SteeringTag{0x200});
    second.hold_under(1, SteeringTag{0x200});
    EXPECT_FALSE(fixture.holds.is_held(SteeringTag{0x100}));
    auto all = fixture.ask(64);
    auto first = wire::fpdu_size(18 + 1424) + wire::fpdu_size(18 + 576);
    ASSERT_EQ(all, first + 32);
    EXPECT_TRUE(fixture.holds.is_held(SteeringTag{0x100}));
    EXPECT_TRUE(fixture.holds.is_held(SteeringTag{0x200}));

    EXPECT_FALSE(fixture.sender().amid_fpdu());
    fixture.send(first - 1);
    EXPECT_TRUE(fixture.sender().amid_fpdu());
    EXPECT_EQ(fixture.source.ended, 0u);
    EXPECT_TRUE(fixture.holds.is_held(SteeringTag{0x100}));
    fixture.send(1);
    EXPECT_FALSE(fixture.sender().amid_fpdu());
    EXPECT_EQ(fixture.source.ended, 1u);
    EXPECT_FALSE(fixture.holds.is_held(SteeringTag{0x100}));
    EXPECT_TRUE(fixture.holds.is_held(SteeringTag{0x200}));
    fixture.send(32);
    EXPECT_EQ(fixture.source.ended, 2u);
    EXPECT_FALSE(fixture.holds.is_held(SteeringTag{0x200}));
    fixture.ask(1);
    fixture.expect_all_messages();
}

TEST(FpduSender, ReleasesWhatItHeldWhenItIsDestroyed) {
    SenderFixture fixture({.ulpdu_max = wire::ulpdu_limit_floor});
    fixture.source.add(OutgoingMessage(send(octets(50)))).hold_under(0, SteeringTag{0x100});
    fixture.source.add(OutgoingMessage(send(octets(10'000)))).hold_under(0, SteeringTag{0x200});
    fixture.ask(64);
    EXPECT_TRUE(fixture.holds.is_held(SteeringTag{0x100}));
    EXPECT_TRUE(fixture.holds.is_held(SteeringTag{0x200}));
    fixture.destroy_sender();
    EXPECT_FALSE(fixture.holds.is_held(SteeringTag{0x100}));
    EXPECT_FALSE(fixture.holds.is_held(SteeringTag{0x200}));
    EXPECT_EQ(fixture.source.ended, 0u);
}

TEST(FpduSenderDeathTest, WillNotHaveSentMoreThanItLent) {
    SenderFixture fixture(usual);
    fixture.source.add(OutgoingMessage(send(octets(8))));
    auto lent = fixture.ask(64);
    EXPECT_DEATH(fixture.sender().sent(lent + 1), "this must hold");
}

TEST(FpduSender, GivesItsRoomBackOnlyWhenNothingIsLent) {
    for (bool markers : {false, true}) {
        SenderFixture fixture({.checksum = true, .markers = markers, .ulpdu_max = 1000});
        EXPECT_EQ(fixture.ask(64), 0u);
        EXPECT_FALSE(fixture.sender().has_room()) << "nothing was there to send";
        for (int round = 0; round < 3; ++round) {
            fixture.source.add(OutgoingMessage(send(octets(3000))));
            auto count = fixture.ask(64);
            EXPECT_TRUE(fixture.sender().has_room());
            fixture.send(count / 2);
            fixture.sender().rest();
            EXPECT_TRUE(fixture.sender().has_room());
            fixture.expect_lent_in_place();
            fixture.send_all();
            fixture.sender().rest();
            EXPECT_FALSE(fixture.sender().has_room());
        }
        fixture.expect_all_messages();
    }
}

}  // namespace
}  // namespace weft::iwarp
