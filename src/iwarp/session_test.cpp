// SPDX-License-Identifier: Apache-2.0
// How a session ends, and what it does when memory is taken away: one session, call by call.
#include "iwarp/session.hpp"

#include <gtest/gtest.h>

#include "iwarp/fault.hpp"
#include "iwarp/memory_faults.hpp"
#include "support/session_words.hpp"

namespace weft::iwarp {
namespace {

using namespace test;
using wire::RdmapOpcode;

// How it ends.

TEST(Session, EndsOnABadChecksumAndQuotesNothing) {
    for (auto placement : {Placement::verified, Placement::eager}) {
        SessionSide side(terms(Role::responder), {.placement = placement});
        side.post_receive(0, 100);
        auto stream = stream_of(send_header, pattern(50, 1));
        stream.back() ^= std::byte{1};
        side.hear(stream);
        expect_failure(side, fault(wire::MpaError::checksum));
        EXPECT_TRUE(side.received.empty());
        auto said = side.say();
        FpduStream decoded(said, {});
        EXPECT_FALSE(terminate_in(decoded).control.segment_header_included);
    }
}

TEST(Session, EndsQuietlyOnThePeersTerminateInEitherLayout) {
    auto control = wire::terminate_for(wire::UntaggedBufferError::no_buffer);
    Bytes standard(wire::terminate_limit);
    auto quoted = octets_of(send_header);
    control.segment_header_included = control.segment_size_valid = true;
    standard.resize(wire::encode_terminate(
        {.control = control, .segment_size = 20, .segment_header = quoted, .read_request = {}},
        standard));
    auto siw = standard;
    encode(wire::SiwTerminateControl{control}, siw);
    for (const auto& body : {standard, siw}) {
        for (auto peer : {Peer::unknown, Peer::siw}) {
            if (peer == Peer::siw && body == standard) continue;
            auto agreed = terms(Role::responder);
            agreed.peer = peer;
            SessionSide side(agreed);
            auto stream = stream_of(terminate_header, body);
            auto size = stream.size();
            stream.resize(size + 100);  // nothing after it counts
            EXPECT_EQ(side.hear(stream), size);
            ASSERT_TRUE(side.failure);
            EXPECT_EQ(*side.failure, control);
            EXPECT_EQ(side.whose, FaultOf::peer);
            ASSERT_TRUE(side.about.header);
            EXPECT_EQ(std::get<wire::UntaggedSegment>(*side.about.header), send_header);
            EXPECT_FALSE(side.about.read_request);
            EXPECT_TRUE(side.session().finished());
            EXPECT_TRUE(side.say().empty()) << "a Terminate is not answered";
        }
    }
}

TEST(Session, CountsNoReadyMessageWhenItSaysWhatAPeerFoundFaultWith) {
    auto control = wire::terminate_for(wire::RemoteProtectionError::access_rights);
    control.segment_header_included = control.segment_size_valid = true;
    control.read_request_included = true;
    for (auto queue : {wire::QueueNumber::send, wire::QueueNumber::read_request}) {
        for (auto ready :
             {ReadyMessage::none, ReadyMessage::send, ReadyMessage::write, ReadyMessage::read}) {
            auto agreed = terms(Role::initiator);
            agreed.ready = ready;
            SessionSide side(agreed);
            auto header = queue == wire::QueueNumber::send ? send_header : read_header;
            header.message_number = 3;
            auto quoted = octets_of(header);
            auto request = read_of(SteeringTag{7}, 8, 9);
            Bytes body(wire::terminate_limit);
            body.resize(wire::encode_terminate(
                {.control = control, .segment_header = quoted, .read_request = request}, body));
            side.hear(stream_of(terminate_header, body));
            ASSERT_TRUE(side.about.header);
            bool counts = ready == (queue == wire::QueueNumber::send ? ReadyMessage::send
                                                                     : ReadyMessage::read);
            EXPECT_EQ(std::get<wire::UntaggedSegment>(*side.about.header).message_number,
                      counts ? 2u : 3u);
            EXPECT_EQ(side.about.read_request, request);
        }
    }
}

TEST(Session, EndsOnAGarbledTerminateToo) {
    for (std::size_t size : {0u, 3u, 5u}) {
        SessionSide side(terms(Role::responder));
        side.hear(stream_of(terminate_header, Bytes(size, std::byte{0xff})));
        ASSERT_TRUE(side.failure) << size;
        EXPECT_EQ(side.whose, FaultOf::peer);
    }
}

TEST(Session, HearsNothingAfterItsOwnerEndedIt) {
    SessionSide side(terms(Role::responder));
    side.post_receive(0, 100);
    auto stream = stream_of(send_header, pattern(50, 1));
    side.hear(ConstBuffer(stream).first(16));
    Buffer place = side.session().want();
    ASSERT_GE(place.size(), stream.size() - 16);
    std::copy(stream.begin() + 16, stream.end(), place.begin());
    side.session().fail(local_fault());
    side.session().filled(stream.size() - 16);  // they were on their way
    EXPECT_TRUE(side.received.empty());
    expect_failure(side, local_fault());
}

TEST(Session, FailsOnceHoweverOftenItIsTold) {
    SessionSide side(terms(Role::initiator));
    side.session().fail(local_fault());
    side.session().fail(fault(wire::MpaError::checksum));
    side.session().close();
    expect_failure(side, local_fault());
    EXPECT_EQ(opcodes(side.say()), std::vector{RdmapOpcode::terminate});
}

TEST(Session, ClosesAmidALongMessageAtTheEndOfWhatWasLent) {
    SessionSide side(straight_terms(Role::initiator));
    side.post_send(pattern(1'000'000, 1));
    std::array<ConstBuffer, 2> pieces;
    ASSERT_EQ(side.session().pending(pieces), 2u);
    side.session().sent(10);
    side.session().close();
    EXPECT_TRUE(side.session().finished());
    auto rest = side.say();
    EXPECT_LE(rest.size(), 2 * 65'000u);
    EXPECT_GT(rest.size(), 60'000u) << "an FPDU that has begun is completed";
    EXPECT_EQ(side.works_sent, 0u);
    EXPECT_FALSE(side.failure);
}

TEST(Session, TellsOfAFaultThatItsOwnerFindsWhileItIsAskedForWork) {
    SessionSide side(terms(Role::initiator));
    side.post_send(pattern(10, 1));
    side.on_asked = [&] {
        if (side.works_begun() == 1) side.session().fail(local_fault());
    };
    EXPECT_EQ(opcodes(side.say()), (std::vector{RdmapOpcode::send, RdmapOpcode::terminate}));
    expect_failure(side, local_fault());
}

// Memory that changes.

TEST(Session, AnswersAReadWithBytesThatNothingChangesAfterTheChecksum) {
    SessionSide side(terms(Role::responder));
    auto tag = side.add_region(1000, 5000, all_rights);
    auto before = Bytes(side.arena.begin() + 1000, side.arena.begin() + 6000);
    side.hear(stream_of(read_header, octets_of(read_of(tag, base + 1000, 5000))));
    std::array<ConstBuffer, 8> pieces;
    ASSERT_GT(side.session().pending(pieces), 0u);
    // RFC 5040 section 5.5 lets a peer write what it is still reading, and owners change their
    // memory when they like.
    side.hear(stream_of(write_to(tag, base + 1000), pattern(100, 3)));
    side.arena[1500] ^= std::byte{1};
    auto said = side.say();
    FpduStream decoded(said, {.checksum = true});
    ASSERT_EQ(decoded.messages().size(), 1u);
    EXPECT_EQ(decoded.messages()[0].payload, before);
    EXPECT_FALSE(side.failure);
}

// Memory that is taken away.

TEST(Session, PlacesNothingInMemoryTakenAwayAmidAWrite) {
    SessionSide side(straight_terms(Role::responder));
    auto tag = side.add_region(1000, 5000, all_rights);
    auto stream = FpduWriter(false, false).add(write_to(tag, base + 1000), pattern(5000, 1));
    side.hear(ConstBuffer(stream.octets()).first(2016));
    ASSERT_TRUE(side.memory.remove(tag));
    auto before = side.arena;
    side.hear(ConstBuffer(stream.octets()).subspan(2016));
    EXPECT_TRUE(side.arena == before);
    expect_failure(side, fault(wire::TaggedBufferError::invalid_steering_tag));
    auto said = side.say();
    FpduStream decoded(said, {.checksum = false});
    EXPECT_EQ(to_hex(terminate_in(decoded).segment_header),
              to_hex(octets_of(write_to(tag, base + 1000))));
}

TEST(Session, GoesOnWhenOtherMemoryIsTakenAwayAmidAWrite) {
    SessionSide side(straight_terms(Role::responder));
    auto tag = side.add_region(1000, 5000, all_rights);
    auto other = side.add_region(1000, 5000, all_rights);
    auto stream = FpduWriter(false, false).add(write_to(tag, base + 1000), pattern(5000, 1));
    side.hear(ConstBuffer(stream.octets()).first(2016));
    ASSERT_TRUE(side.memory.remove(other));
    side.hear(ConstBuffer(stream.octets()).subspan(2016));
    EXPECT_FALSE(side.failure);
    auto expected = pattern(5000, 1);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), side.arena.begin() + 1000));
}

TEST(Session, EndsAReceiveWhoseMemoryIsTakenAway) {
    SessionSide side(straight_terms(Role::responder));
    auto tag = side.add_region(1000, 5000, Rights::local_write);
    side.post_receive({{base + 1000, 5000, tag}});
    auto stream = FpduWriter(false, false).add(send_header, pattern(5000, 1));
    side.hear(ConstBuffer(stream.octets()).first(2020));
    ASSERT_TRUE(side.memory.remove(tag));
    auto before = side.arena;
    side.hear(ConstBuffer(stream.octets()).subspan(2020));
    EXPECT_TRUE(side.arena == before);
    // Nothing the peer did was wrong, and no tag of its was meant.
    expect_failure(side, local_fault());
    ASSERT_EQ(side.received.size(), 1u);
    EXPECT_EQ(side.received[0].status, verbs::Status::local_protection);
}

TEST(Session, TakesTheBlameForAReadWhoseMemoryIsTakenAway) {
    for (auto kind : {OutstandingRead::Kind::read, OutstandingRead::Kind::atomic}) {
        for (std::size_t before_that : {0u, 1516u}) {
            if (kind == OutstandingRead::Kind::atomic && before_that > 0) continue;
            SessionSide side(straight_terms(Role::responder));
            auto tag = side.add_region(1000, 5000, Rights::local_write);
            side.session().reads().push(
                {.kind = kind, .sink_tag = tag, .sink_offset = base + 1000, .size = 5000});
            FpduWriter peer(false, false);
            if (kind == OutstandingRead::Kind::read)
                peer.add(wire::TaggedSegment{true, RdmapOpcode::read_response, tag,
                                             wire::TaggedOffset{base + 1000}},
                         pattern(5000, 1));
            else
                peer.add(wire::UntaggedSegment{.last = true,
                                               .opcode = RdmapOpcode::atomic_response,
                                               .queue = wire::QueueNumber::atomic_response},
                         octets_of(wire::AtomicResponse{}));
            side.hear(ConstBuffer(peer.octets()).first(before_that));
            ASSERT_TRUE(side.memory.remove(tag));
            auto before = side.arena;
            side.hear(ConstBuffer(peer.octets()).subspan(before_that));
            EXPECT_TRUE(side.arena == before);
            expect_failure(side, local_fault());
            std::erase(side.events, "spoke");
            EXPECT_EQ(side.events, (std::vector<std::string>{"read failed", "failed"}));
            auto said = side.say();
            FpduStream decoded(said, {.checksum = false});
            EXPECT_FALSE(terminate_in(decoded).control.segment_header_included);
        }
    }
}

TEST(Session, RefusesReceivesOfMemoryThatIsNotOurs) {
    SessionSide side(terms(Role::responder));
    side.post_receive({{base, 4, side.local_tag()}, {base, 100, SteeringTag{0xdead00}}});
    auto before = side.arena;
    side.hear(stream_of(send_header, pattern(50, 1)));
    EXPECT_TRUE(side.arena == before);
    expect_failure(side, local_fault());
    ASSERT_EQ(side.received.size(), 1u);
    EXPECT_EQ(side.received[0].status, verbs::Status::local_protection);
}

TEST(Session, QuotesTheReadWhoseMemoryWasTakenAwayBeforeItsAnswer) {
    SessionSide side(terms(Role::responder));
    auto tag = side.add_region(1000, 5000, all_rights);
    auto request = read_of(tag, base + 1000, 100);
    side.post_receive(0, 10);
    side.hear(stream_of(read_header, octets_of(request)));
    side.hear(stream_of(send_header, pattern(5, 1)));
    ASSERT_TRUE(side.memory.remove(tag));
    auto said = side.say();
    expect_failure(side, fault(wire::RemoteProtectionError::invalid_steering_tag));
    FpduStream decoded(said, {});
    ASSERT_EQ(decoded.messages().size(), 1u) << "no answer";
    auto terminate = terminate_in(decoded);
    EXPECT_TRUE(terminate.control.read_request_included);
    EXPECT_EQ(terminate.read_request, request);
    EXPECT_EQ(to_hex(terminate.segment_header), to_hex(octets_of(read_header)));
    EXPECT_EQ(terminate.segment_size, 46);
}

TEST(Session, KeepsLentMemoryUntilItIsSent) {
    SessionSide side(terms(Role::responder));
    auto tag = side.add_region(1000, 5000, all_rights);
    side.hear(stream_of(read_header, octets_of(read_of(tag, base + 1000, 100))));
    std::array<ConstBuffer, 8> pieces;
    ASSERT_GT(side.session().pending(pieces), 0u);
    ASSERT_TRUE(side.memory.remove(tag));
    EXPECT_TRUE(side.memory.is_held(tag));
    auto said = side.say();
    EXPECT_FALSE(side.memory.is_held(tag));
    FpduStream decoded(said, {});
    ASSERT_EQ(decoded.messages().size(), 1u);
    EXPECT_EQ(decoded.messages()[0].opcode, RdmapOpcode::read_response);
    EXPECT_FALSE(side.failure);
}

}  // namespace
}  // namespace weft::iwarp
