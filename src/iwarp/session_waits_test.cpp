// SPDX-License-Identifier: Apache-2.0
// What a session waits for, when it speaks, and whose turn it is: one session, call by call.
#include "iwarp/session.hpp"

#include <gtest/gtest.h>

#include "iwarp/fault.hpp"
#include "iwarp/memory_faults.hpp"
#include "support/buffer_hoard.hpp"
#include "support/session_words.hpp"

namespace weft::iwarp {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using namespace test;
using wire::RdmapOpcode;

// Receives that are not posted yet.

TEST(Session, StopsReadingUntilAReceiveIsPosted) {
    SessionSide side(terms(Role::responder));
    auto stream = FpduWriter(true, false)
                      .add(send_header, pattern(500, 1))
                      .add(write_to(SteeringTag{1}, 0))
                      .octets();
    auto taken = side.hear(stream);
    EXPECT_LT(taken, stream.size());
    EXPECT_TRUE(side.session().want().empty());
    EXPECT_TRUE(side.session().waits_for_receive());
    auto wakes = side.wakes;
    side.post_receive(0, 600);
    EXPECT_GT(side.wakes, wakes) << "the stream must be read again";
    side.hear(ConstBuffer(stream).subspan(taken));
    EXPECT_FALSE(side.session().waits_for_receive());
    ASSERT_EQ(side.received.size(), 1u);
    EXPECT_EQ(side.received[0].bytes, 500u);
    EXPECT_FALSE(side.failure);
}

TEST(Session, LosesPatienceWithAnApplicationThatPostsNoReceive) {
    SessionSide side(terms(Role::responder), {.receive_patience = seconds(5)});
    auto stream = stream_of(send_header, pattern(50, 1));
    side.hear(stream);
    EXPECT_LE(side.session().deadline().value(), start);
    side.session().tick(start);
    EXPECT_FALSE(side.failure);
    side.session().tick(start + milliseconds(4999));
    EXPECT_FALSE(side.failure);
    side.session().tick(side.session().deadline().value());
    expect_failure(side, fault(wire::UntaggedBufferError::no_buffer));
    auto said = side.say();
    FpduStream decoded(said, {});
    EXPECT_EQ(to_hex(terminate_in(decoded).segment_header), to_hex(octets_of(send_header)));
}

TEST(Session, CanBeGivenTheNextReceiveFromInsideTheEndOfOne) {
    for (bool checksum : {true, false}) {
        auto agreed = terms(Role::responder);
        agreed.checksum = checksum;
        SessionSide side(agreed);
        side.on_received = [&] {
            if (side.received.size() < 3) side.post_receive(100 * side.received.size(), 100);
        };
        FpduWriter peer(checksum, false);
        for (std::uint32_t i = 1; i <= 3; ++i)
            peer.add(
                wire::UntaggedSegment{
                    .last = true, .opcode = RdmapOpcode::send, .message_number = i},
                pattern(50 + i, i));
        auto taken = side.hear(peer.octets());
        side.post_receive(0, 100);
        side.hear(ConstBuffer(peer.octets()).subspan(taken));
        EXPECT_FALSE(side.failure);
        ASSERT_EQ(side.received.size(), 3u);
        for (std::uint32_t i = 1; i <= 3; ++i) EXPECT_EQ(side.received[i - 1].bytes, 50 + i);
    }
}

TEST(Session, WakesNobodyAfterAReceiveThatIsTooSmall) {
    SessionSide side(terms(Role::responder));
    side.hear(stream_of(send_header, pattern(50, 1)));
    side.post_receive(0, 10);  // the owner counts what comes after the failure
    expect_failure(side, fault(wire::UntaggedBufferError::message_too_long));
}

// Who may speak, and when.

TEST(Session, HoldsARespondersTongueUntilTheInitiatorHasSpoken) {
    auto agreed = terms(Role::responder);
    agreed.ready = ReadyMessage::write;
    SessionSide side(agreed);
    side.post_send(pattern(10, 1));
    EXPECT_TRUE(side.say().empty());
    side.session().tick(start);
    side.session().tick(start + limits::silent_initiator_grace);
    EXPECT_TRUE(side.say().empty()) << "the ready message will come";
    side.hear(stream_of(write_to(SteeringTag{1}, 0), {}));
    EXPECT_EQ(side.spoke, 1);
    EXPECT_EQ(opcodes(side.say()), std::vector{RdmapOpcode::send});
    for (int i = 1; i < 4; ++i) side.session().tick(start + i * limits::ready_patience);
    EXPECT_FALSE(side.failure);
    EXPECT_EQ(side.session().deadline(), std::nullopt);
}

TEST(Session, LosesPatienceWithAnInitiatorThatPromisedAReadyMessage) {
    auto agreed = terms(Role::responder);
    agreed.ready = ReadyMessage::write;
    SessionSide side(agreed);
    ASSERT_TRUE(side.session().deadline());
    side.session().tick(start);
    side.session().tick(start + (limits::ready_patience - milliseconds(1)));
    EXPECT_FALSE(side.failure);
    side.session().tick(side.session().deadline().value());
    expect_failure(side, fault(wire::MpaError::connection_lost));
    EXPECT_EQ(opcodes(side.say()), std::vector{RdmapOpcode::terminate});
}

TEST(Session, SpeaksAtLastToAnInitiatorThatPromisedNothing) {
    SessionSide side(terms(Role::responder));
    side.post_send(pattern(10, 1));
    side.session().tick(start);
    EXPECT_TRUE(side.say().empty());
    EXPECT_EQ(side.session().deadline(), start + limits::silent_initiator_grace);
    auto wakes = side.wakes;
    side.session().tick(start + limits::silent_initiator_grace);
    EXPECT_GT(side.wakes, wakes);
    EXPECT_EQ(opcodes(side.say()), std::vector{RdmapOpcode::send});
    for (int i = 1; i < 4; ++i) side.session().tick(start + i * seconds(1));
    EXPECT_EQ(side.session().deadline(), std::nullopt);
}

TEST(Session, LetsAForeignPeerTurnItsEarsOnBeforeTheFirstWord) {
    for (auto ready : {ReadyMessage::none, ReadyMessage::write}) {
        for (auto peer : {Peer::unknown, Peer::siw}) {
            auto agreed = terms(Role::initiator);
            agreed.peer = peer;
            agreed.ready = ready;
            SessionSide side(agreed);
            side.post_send(pattern(10, 1));
            EXPECT_TRUE(side.say().empty());
            side.session().tick(start);
            EXPECT_TRUE(side.say().empty());
            EXPECT_EQ(side.session().deadline(), start + limits::first_word_delay);
            auto wakes = side.wakes;
            side.session().tick(start + limits::first_word_delay);
            EXPECT_GT(side.wakes, wakes);
            EXPECT_EQ(opcodes(side.say()).back(), RdmapOpcode::send);
            for (int i = 1; i < 4; ++i) side.session().tick(start + i * seconds(1));
            EXPECT_EQ(side.session().deadline(), std::nullopt);
        }
    }
}

TEST(Session, SpeaksAtOnceToAForeignPeerThatHasSpoken) {
    auto agreed = terms(Role::initiator);
    agreed.peer = Peer::siw;
    SessionSide side(agreed);
    side.post_send(pattern(10, 1));
    EXPECT_TRUE(side.say().empty());
    side.hear(stream_of(write_to(SteeringTag{1}, 0), {}));
    EXPECT_EQ(opcodes(side.say()), std::vector{RdmapOpcode::send});
}

TEST(Session, SpeaksAtOnceToWeft) {
    SessionSide side(terms(Role::initiator));
    side.post_send(pattern(10, 1));
    EXPECT_EQ(side.session().deadline(), std::nullopt);
    EXPECT_EQ(opcodes(side.say()), std::vector{RdmapOpcode::send});
}

TEST(Session, BeginsWithTheReadyMessageThatWasAgreedOn) {
    for (auto [ready, opcode] : {std::pair{ReadyMessage::send, RdmapOpcode::send},
                                 std::pair{ReadyMessage::write, RdmapOpcode::write},
                                 std::pair{ReadyMessage::read, RdmapOpcode::read_request}}) {
        auto agreed = terms(Role::initiator);
        agreed.ready = ready;
        SessionSide side(agreed);
        side.post_send(pattern(10, 1));
        auto said = side.say();
        FpduStream stream(said, {});
        ASSERT_EQ(stream.messages().size(), 2u);
        EXPECT_EQ(stream.messages()[0].opcode, opcode);
        EXPECT_EQ(stream.messages()[1].payload, pattern(10, 1));
        EXPECT_EQ(side.works_sent, 1u) << "the ready message is nobody's work";
        if (ready != ReadyMessage::read) {
            EXPECT_TRUE(stream.messages()[0].payload.empty());
            continue;
        }
        EXPECT_FALSE(side.session().reads().empty());
        side.hear(stream_of(
            wire::TaggedSegment{true, RdmapOpcode::read_response, SteeringTag{1}, {}}, {}));
        EXPECT_TRUE(side.session().reads().empty());
        EXPECT_TRUE(side.originals.empty()) << "nor is its answer anybody's";
        EXPECT_FALSE(side.failure);
    }
}

TEST(Session, TakesAnEmptySendForTheReadyMessageOnlyOnce) {
    auto agreed = terms(Role::responder);
    agreed.ready = ReadyMessage::send;
    SessionSide side(agreed);
    side.hear(stream_of(send_header, {}));
    EXPECT_EQ(side.spoke, 1);
    EXPECT_TRUE(side.received.empty());
    side.post_receive(0, 10);
    auto second = send_header;
    second.message_number = 2;
    side.hear(stream_of(second, {}));
    ASSERT_EQ(side.received.size(), 1u);
    EXPECT_EQ(side.received[0].bytes, 0u);
}

TEST(Session, TellsThatThePeerSpokeBeforeWhatItSaid) {
    SessionSide side(terms(Role::responder));
    side.post_receive(0, 100);
    side.hear(stream_of(send_header, pattern(10, 1)));
    EXPECT_EQ(side.events, (std::vector<std::string>{"spoke", "received 10"}));
}

// Turns, waits and bounds.

TEST(Session, TakesTurnsBetweenAnswersAndWork) {
    SessionSide side(terms(Role::responder));
    auto tag = side.add_region(1000, 5000, all_rights);
    for (std::uint32_t i = 1; i <= 4; ++i) {
        auto header = read_header;
        header.message_number = i;
        side.hear(stream_of(header, octets_of(read_of(tag, base + 1000, 100))));
        side.post_send(pattern(10, i));
    }
    auto said = opcodes(side.say());
    ASSERT_EQ(said.size(), 8u);
    for (std::size_t i = 1; i < said.size(); ++i) EXPECT_NE(said[i], said[i - 1]) << i;
}

TEST(Session, AnswersReadsAndAtomicsInTheirOrder) {
    SessionSide side(terms(Role::responder));
    auto tag = side.add_region(1000, 4000, all_rights);
    std::uint64_t number = 40;
    std::memcpy(side.arena.data() + 1000, &number, sizeof number);
    FpduWriter peer(true, false);
    peer.add(read_header, octets_of(read_of(tag, base + 1008, 8)));
    auto atomic_header = read_header;
    atomic_header.opcode = RdmapOpcode::atomic_request;
    atomic_header.message_number = 2;
    peer.add(atomic_header,
             octets_of(wire::AtomicRequest{.operation = wire::AtomicOperation::fetch_add,
                                           .request_identifier = 77,
                                           .remote_tag = tag,
                                           .remote_offset = wire::TaggedOffset{base + 1000},
                                           .add_or_swap = 2}));
    auto last = read_header;
    last.message_number = 3;
    peer.add(last, octets_of(read_of(SteeringTag{0xdead}, 5, 0)));
    side.hear(peer.octets());
    EXPECT_FALSE(side.failure) << "a read of nothing may name any tag";
    auto said = side.say();
    FpduStream stream(said, {});
    ASSERT_EQ(stream.messages().size(), 3u);
    EXPECT_EQ(stream.messages()[0].opcode, RdmapOpcode::read_response);
    EXPECT_EQ(stream.messages()[0].tag, SteeringTag{0x500});
    EXPECT_EQ(stream.messages()[0].offset, 0x1000u);
    EXPECT_EQ(stream.messages()[1].payload,
              octets_of(wire::AtomicResponse{.request_identifier = 77, .original_value = 40}));
    EXPECT_EQ(stream.messages()[2].opcode, RdmapOpcode::read_response);
    EXPECT_TRUE(stream.messages()[2].payload.empty());
    std::memcpy(&number, side.arena.data() + 1000, sizeof number);
    EXPECT_EQ(number, 42u);
}

TEST(Session, LosesPatienceWithAnFpduThatDoesNotEnd) {
    SessionSide side(terms(Role::responder));
    auto stream = stream_of(send_header, pattern(5000, 1));
    side.post_receive(0, 5000);
    side.hear(ConstBuffer(stream).first(100));
    side.session().want();
    side.session().tick(start);
    side.session().tick(start + (limits::fpdu_patience - milliseconds(1)));
    EXPECT_FALSE(side.failure);
    side.session().tick(start + limits::fpdu_patience);
    expect_failure(side, fault(wire::MpaError::connection_lost));
}

TEST(Session, BlamesNoPeerForABufferThatIsMissing) {
    SessionSide side(terms(Role::responder));
    Hoard hoard(side.buffers);
    auto stream = stream_of(send_header, pattern(5000, 1));
    side.post_receive(0, 5000);
    auto taken = side.hear(stream);
    EXPECT_LT(taken, stream.size());
    side.session().tick(start);
    side.session().tick(start + 2 * limits::fpdu_patience);
    side.session().tick(start + 4 * limits::fpdu_patience);
    EXPECT_FALSE(side.failure);
    auto wakes = side.wakes;
    hoard.give_back();
    EXPECT_GT(side.wakes, wakes);
    side.hear(ConstBuffer(stream).subspan(taken));
    EXPECT_EQ(side.received.size(), 1u);
}

TEST(Session, LeavesTheQueueForBuffersWhenItEnds) {
    for (bool closes : {true, false}) {
        SessionSide side(terms(Role::responder));
        struct Other final : FpduBufferWaiter {
            void buffer_available() override { ++told; }
            int told = 0;
        } behind;
        Hoard hoard(side.buffers);
        side.hear(stream_of(send_header, pattern(5000, 1)));
        EXPECT_TRUE(side.buffers.take(1, behind).empty());
        closes ? side.session().close() : side.session().fail(local_fault());
        hoard.give_back();
        EXPECT_GT(behind.told, 0) << "an ended session asks for no buffer, and must not be first";
        side.buffers.give_back(side.buffers.take(1, behind));
    }
}

TEST(Session, HasNoMoreMessagesUnderWayThanItMay) {
    SessionSide side(terms(Role::initiator));
    for (int i = 0; i < 200; ++i) side.post_send(pattern(1, 1));
    std::array<ConstBuffer, 512> pieces;
    side.session().pending(pieces);
    EXPECT_EQ(side.works_begun(), limits::messages_under_way);
    side.say();
    EXPECT_EQ(side.works_sent, 200u);
}

TEST(Session, HasRoomForAMessageThatHasBegunAndWaitsForABuffer) {
    // The answer has begun, and no buffer is there to make its first FPDU in.
    SessionSide side(terms(Role::responder));
    auto tag = side.add_region(0, 1000, all_rights);
    for (std::size_t i = 1; i < limits::fpdus_lent; ++i) side.post_send(pattern(1, 1));
    Hoard hoard(side.buffers);
    std::array<ConstBuffer, 512> pieces;
    side.hear(stream_of(write_to(SteeringTag{1}, 0), {}));
    side.session().pending(pieces);
    EXPECT_EQ(side.works_begun(), limits::fpdus_lent - 1);
    side.hear(stream_of(read_header, octets_of(read_of(tag, base, 1000))));
    for (int i = 0; i < 9; ++i) side.post_send(pattern(1, 1));
    side.session().pending(pieces);
    hoard.give_back();
    auto said = side.say();
    FpduStream decoded(said, {});
    EXPECT_EQ(decoded.messages().size(), limits::fpdus_lent + 9);
    EXPECT_FALSE(side.failure);
}

TEST(Session, NeedsNoClockAndLittleMemoryWhenItHasGoneQuiet) {
    SessionSide side(terms(Role::initiator));
    EXPECT_LE(sizeof(Session), 2600u) << "ten thousand may be idle";
    for (int round = 0; round < 2; ++round) {
        auto now = start + round * seconds(100);
        side.post_send(pattern(100, 1));
        EXPECT_FALSE(side.say().empty());
        int looks = 0;
        while (auto next = side.session().deadline()) {
            now = std::max(now, *next);
            side.session().tick(now);
            ASSERT_LE(++looks, 4);
        }
    }
    EXPECT_EQ(side.works_sent, 2u);
}

TEST(Session, SendsWholeSegmentsOnlyToPeersThatTakeThem) {
    auto agreed = terms(Role::initiator);
    EXPECT_EQ(ulpdu_max(agreed, 1448), wire::ulpdu_limit);
    agreed.peer = Peer::siw;
    EXPECT_EQ(ulpdu_max(agreed, 1448), wire::ulpdu_limit);
    agreed.peer = Peer::unknown;
    EXPECT_EQ(ulpdu_max(agreed, 1448), 1442u);
    EXPECT_EQ(ulpdu_max(agreed, 0), wire::ulpdu_limit);
    agreed.markers_out = true;
    EXPECT_EQ(ulpdu_max(agreed, 1448), 1430u);
}

}  // namespace
}  // namespace weft::iwarp
