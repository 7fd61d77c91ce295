// SPDX-License-Identifier: Apache-2.0
// Everything a peer can do wrong, as a table: what it sends, and the words in which RFC 5040, 5041
// and 5044 want to hear of it. Whatever it is, no byte of memory changes that the peer had no right
// to change, the owner hears of it once, and nothing comes after the Terminate.
#include <gtest/gtest.h>

#include "iwarp/fault.hpp"
#include "iwarp/inbound.hpp"
#include "support/fault_case.hpp"

namespace weft::iwarp {
namespace {

using test::Bytes;
using test::FpduWriter;
using test::pattern;
using test::SessionSide;
using namespace test::faults;
using wire::RdmapOpcode;

constexpr wire::UntaggedSegment send_header{.last = true, .opcode = RdmapOpcode::send};
wire::UntaggedSegment send_with(auto change) {
    auto header = send_header;
    change(header);
    return header;
}

using Operation = wire::RemoteOperationError;
using Protection = wire::RemoteProtectionError;
using Tagged = wire::TaggedBufferError;
using Untagged = wire::UntaggedBufferError;
using Kind = OutstandingRead::Kind;

const std::vector<Case> cases{
    // Tagged: where the peer writes.
    {"WriteToAnUnknownTag", [](Setting& s) { s.write(SteeringTag{0xdead00}, open.address(), 8); },
     fault(Tagged::invalid_steering_tag)},
    {"WriteToTagZero", [](Setting& s) { s.write(SteeringTag{}, 0, 8); },
     fault(Tagged::invalid_steering_tag)},
    {"WriteWithAnotherKey",
     [](Setting& s) {
         s.write(SteeringTag{static_cast<std::uint32_t>(s.open_tag) ^ 1}, open.address(), 8);
     },
     fault(Tagged::invalid_steering_tag)},
    {"WriteToAnAllocatedTagWithoutMemory", [](Setting& s) { s.write(s.allocated_tag, 0, 8); },
     fault(Tagged::invalid_steering_tag)},
    {"WriteToAnotherDomain", [](Setting& s) { s.write(s.foreign_tag, foreign.address(), 8); },
     fault(Tagged::wrong_stream)},
    {"WriteWithoutRights", [](Setting& s) { s.write(s.read_only_tag, read_only.address(), 8); },
     fault(Protection::access_rights)},
    {"WriteBeforeTheRegion", [](Setting& s) { s.write(s.open_tag, open.address() - 1, 8); },
     fault(Tagged::out_of_bounds)},
    {"WriteBehindTheRegion",
     [](Setting& s) { s.write(s.open_tag, open.address() + open.size - 7, 8); },
     fault(Tagged::out_of_bounds)},
    {"WriteFarLargerThanTheRegion", [](Setting& s) { s.write(s.open_tag, open.address(), 60'000); },
     fault(Tagged::out_of_bounds)},
    {"WriteRoundTheEndOfAllOffsets", [](Setting& s) { s.write(s.open_tag, UINT64_MAX - 3, 8); },
     fault(Tagged::offset_wraps)},
    {"SecondSegmentOutOfBounds",
     [](Setting& s) {
         s.write(s.open_tag, open.address(), 300);
         s.write(s.open_tag, open.address() + 300, 1);
     },
     fault(Tagged::out_of_bounds),
     Quotes::segment,
     std::nullopt,
     {open}},

    // Opcodes.
    {"SendWithATag",
     [](Setting& s) { s.peer.add(s.tagged(RdmapOpcode::send, s.open_tag, open.address())); },
     fault(Operation::unexpected_opcode)},
    {"WriteWithoutATag",
     [](Setting& s) { s.send(send_with([](auto& h) { h.opcode = RdmapOpcode::write; }), 8); },
     fault(Operation::unexpected_opcode)},
    {"UnassignedOpcode",
     [](Setting& s) { s.send(send_with([](auto& h) { h.opcode = RdmapOpcode{0xc}; }), 8); },
     fault(Operation::unexpected_opcode)},
    {"UnassignedOpcodeWithATag",
     [](Setting& s) { s.peer.add(s.tagged(RdmapOpcode{0xf}, s.open_tag, open.address())); },
     fault(Operation::unexpected_opcode)},
    {"ImmediateDataFromOneWhoAgreedToNone",
     [](Setting& s) {
         s.send(send_with([](auto& h) { h.opcode = RdmapOpcode::immediate_data; }), 8);
     },
     fault(Operation::unexpected_opcode),
     Quotes::segment,
     std::nullopt,
     {},
     Peer::unknown},
    {"AtomicFromOneWhoAgreedToNone",
     [](Setting& s) { s.atomic(s.open_tag, open.address(), wire::AtomicOperation::fetch_add); },
     fault(Operation::unexpected_opcode),
     Quotes::segment,
     std::nullopt,
     {},
     Peer::siw},
    {"WrongVersionOfDdp",
     [](Setting& s) {
         auto octets = test::octets_of(send_header);
         octets[0] ^= std::byte{3};
         s.peer.add_ulpdu(octets);
     },
     fault(Untagged::invalid_version)},
    {"WrongVersionOfRdmap",
     [](Setting& s) {
         auto octets = test::octets_of(send_header);
         octets[1] ^= std::byte{0xc0};
         s.peer.add_ulpdu(octets);
     },
     fault(Operation::invalid_version)},

    // Untagged: queues and numbers.
    {"NoSuchQueue",
     [](Setting& s) { s.send(send_with([](auto& h) { h.queue = wire::QueueNumber{77}; }), 8); },
     fault(Untagged::invalid_queue)},
    {"SendOnTheQueueOfReads",
     [](Setting& s) {
         s.send(send_with([](auto& h) { h.queue = wire::QueueNumber::read_request; }), 8);
     },
     fault(Untagged::invalid_queue)},
    {"MessageNumberSkipped",
     [](Setting& s) { s.send(send_with([](auto& h) { h.message_number = 2; }), 8); },
     fault(Untagged::message_number_out_of_range)},
    {"MessageNumberRepeated",
     [](Setting& s) {
         s.send(send_header, 8);
         s.send(send_header, 8);
     },
     fault(Untagged::message_number_out_of_range),
     Quotes::segment,
     verbs::Status::success,
     {receive}},
    {"FirstSegmentNotAtTheBeginning",
     [](Setting& s) { s.send(send_with([](auto& h) { h.message_offset = 4; }), 8); },
     fault(Untagged::invalid_message_offset)},
    {"SegmentSkipped",
     [](Setting& s) {
         s.send(send_with([](auto& h) { h.last = false; }), 8);
         s.send(send_with([](auto& h) { h.message_offset = 16; }), 8);
     },
     fault(Untagged::invalid_message_offset),
     Quotes::segment,
     std::nullopt,
     {receive}},
    {"SegmentRepeated",
     [](Setting& s) {
         s.send(send_with([](auto& h) { h.last = false; }), 8);
         s.send(send_with([](auto& h) { h.message_offset = 0; }), 8);
     },
     fault(Untagged::invalid_message_offset),
     Quotes::segment,
     std::nullopt,
     {receive}},
    {"AnotherMessageAmidAMessage",
     [](Setting& s) {
         s.send(send_with([](auto& h) { h.last = false; }), 8);
         s.send(send_with([](auto& h) {
                    h.message_offset = 8;
                    h.opcode = RdmapOpcode::send_solicited;
                }),
                8);
     },
     fault(Operation::unexpected_opcode),
     Quotes::segment,
     std::nullopt,
     {receive}},
    {"ImmediateDataAmidAMessage",
     [](Setting& s) {
         s.send(send_with([](auto& h) { h.last = false; }), 8);
         s.send(send_with([](auto& h) { h.opcode = RdmapOpcode::immediate_data; }), 8);
     },
     fault(Operation::unexpected_opcode),
     Quotes::segment,
     std::nullopt,
     {receive}},
    {"MessageLargerThanTheReceive", [](Setting& s) { s.send(send_header, 65); },
     fault(Untagged::message_too_long), Quotes::segment, verbs::Status::local_length},
    {"LastSegmentLargerThanWhatIsLeft",
     [](Setting& s) {
         s.send(send_with([](auto& h) { h.last = false; }), 64);
         s.send(send_with([](auto& h) { h.message_offset = 64; }), 1);
     },
     fault(Untagged::message_too_long),
     Quotes::segment,
     verbs::Status::local_length,
     {receive}},
    {"ReadRequestOfAnotherSize",
     [](Setting& s) {
         s.peer.add(wire::UntaggedSegment{.last = true,
                                          .opcode = RdmapOpcode::read_request,
                                          .queue = wire::QueueNumber::read_request},
                    pattern(29, 1));
     },
     fault(Untagged::message_too_long)},
    {"ReadRequestInSegments",
     [](Setting& s) {
         s.peer.add(wire::UntaggedSegment{.last = false,
                                          .opcode = RdmapOpcode::read_request,
                                          .queue = wire::QueueNumber::read_request},
                    pattern(28, 1));
     },
     fault(Untagged::message_too_long)},
    {"TerminateLargerThanAny",
     [](Setting& s) {
         s.peer.add(wire::UntaggedSegment{.last = true,
                                          .opcode = RdmapOpcode::terminate,
                                          .queue = wire::QueueNumber::terminate},
                    pattern(wire::terminate_limit + 1, 1));
     },
     fault(Untagged::message_too_long)},

    // Invalidation.
    {"InvalidatesARegion",
     [](Setting& s) {
         s.send(send_with([&](auto& h) {
                    h.opcode = RdmapOpcode::send_invalidate;
                    h.invalidate = s.open_tag;
                }),
                8);
     },
     fault(Protection::cannot_invalidate),
     Quotes::segment,
     verbs::Status::local_protection,
     {receive}},
    {"InvalidatesAnUnknownTag",
     [](Setting& s) {
         s.send(send_with([](auto& h) {
                    h.opcode = RdmapOpcode::send_solicited_invalidate;
                    h.invalidate = SteeringTag{0xdead00};
                }),
                8);
     },
     fault(Protection::cannot_invalidate),
     Quotes::segment,
     verbs::Status::local_protection,
     {receive}},

    // Reads the peer asks for.
    {"ReadOfAnUnknownTag", [](Setting& s) { s.read(SteeringTag{0xdead00}, open.address(), 8); },
     fault(Protection::invalid_steering_tag), Quotes::read_request},
    {"ReadOfAnotherDomain", [](Setting& s) { s.read(s.foreign_tag, foreign.address(), 8); },
     fault(Protection::wrong_stream), Quotes::read_request},
    {"ReadWithoutRights", [](Setting& s) { s.read(s.write_only_tag, write_only.address(), 8); },
     fault(Protection::access_rights), Quotes::read_request},
    {"ReadOutOfBounds", [](Setting& s) { s.read(s.open_tag, open.address() + 1, 300); },
     fault(Protection::out_of_bounds), Quotes::read_request},
    {"ReadRoundTheEndOfAllOffsets", [](Setting& s) { s.read(s.open_tag, UINT64_MAX - 3, 8); },
     fault(Protection::offset_wraps), Quotes::read_request},
    {"ReadOfFourGibibytes", [](Setting& s) { s.read(s.open_tag, open.address(), UINT32_MAX); },
     fault(Protection::out_of_bounds), Quotes::read_request},
    {"MoreReadsThanAgreedOn",
     [](Setting& s) {
         for (std::uint32_t i = 1; i <= 3; ++i) s.read(s.open_tag, open.address(), 8, i);
     },
     fault(Untagged::no_buffer)},
    {"ReadRequestNumberSkipped", [](Setting& s) { s.read(s.open_tag, open.address(), 8, 2); },
     fault(Untagged::message_number_out_of_range)},

    // Atomics.
    {"AtomicMisaligned",
     [](Setting& s) { s.atomic(s.open_tag, open.address() + 4, wire::AtomicOperation::fetch_add); },
     fault(Operation::catastrophic_for_stream)},
    {"AtomicWithoutRights",
     [](Setting& s) {
         s.atomic(s.write_only_tag, write_only.address(), wire::AtomicOperation::fetch_add);
     },
     fault(Protection::access_rights)},
    {"AtomicOutOfBounds",
     [](Setting& s) {
         s.atomic(s.open_tag, open.address() + 296 + 8, wire::AtomicOperation::compare_swap);
     },
     fault(Protection::out_of_bounds)},
    {"AtomicOfAKindThatIsNone",
     [](Setting& s) { s.atomic(s.open_tag, open.address(), wire::AtomicOperation{5}); },
     fault(Operation::catastrophic_for_stream)},

    // Answers to our own reads.
    {"AnswerToNothing", [](Setting& s) { s.answer(s.local(), base + sink.at, 8, true); },
     fault(Operation::unexpected_opcode)},
    {"AnswerToAnAtomicIsAReadsAnswer",
     [](Setting& s) {
         s.outstanding(Kind::atomic, 8);
         s.answer(s.local(), base + sink.at, 8, true);
     },
     fault(Operation::unexpected_opcode)},
    {"AnswerTooLong",
     [](Setting& s) {
         s.outstanding(Kind::read, 100);
         s.answer(s.local(), base + sink.at, 101, true);
     },
     fault(Tagged::out_of_bounds)},
    {"AnswerTooShort",
     [](Setting& s) {
         s.outstanding(Kind::read, 100);
         s.answer(s.local(), base + sink.at, 99, true);
     },
     fault(Tagged::out_of_bounds)},
    {"AnswerThatDoesNotEnd",
     [](Setting& s) {
         s.outstanding(Kind::read, 100);
         s.answer(s.local(), base + sink.at, 100, false);
     },
     fault(Tagged::out_of_bounds)},
    {"AnswerWithAnotherTag",
     [](Setting& s) {
         s.outstanding(Kind::read, 100);
         s.answer(s.open_tag, base + sink.at, 100, true);
     },
     fault(Tagged::invalid_steering_tag)},
    {"AnswerElsewhere",
     [](Setting& s) {
         s.outstanding(Kind::read, 100);
         s.answer(s.local(), base + sink.at + 1, 100, true);
     },
     fault(Tagged::out_of_bounds)},
    {"AnswerWithAHole",
     [](Setting& s) {
         s.outstanding(Kind::read, 100);
         s.answer(s.local(), base + sink.at, 40, false);
         s.answer(s.local(), base + sink.at + 44, 56, false);
     },
     fault(Tagged::out_of_bounds),
     Quotes::segment,
     std::nullopt,
     {sink}},
    {"AnswerToAReadThatHasHadIt",
     [](Setting& s) {
         s.outstanding(Kind::read, 100);
         s.answer(s.local(), base + sink.at, 100, true);
         s.answer(s.local(), base + sink.at, 100, true);
     },
     fault(Operation::unexpected_opcode),
     Quotes::segment,
     std::nullopt,
     {sink}},
    {"AtomicAnswerToARead",
     [](Setting& s) {
         s.outstanding(Kind::read, 8);
         s.peer.add(wire::UntaggedSegment{.last = true,
                                          .opcode = RdmapOpcode::atomic_response,
                                          .queue = wire::QueueNumber::atomic_response},
                    test::octets_of(wire::AtomicResponse{}));
     },
     fault(Operation::unexpected_opcode)},
    {"AtomicAnswerToAnotherAtomic",
     [](Setting& s) {
         s.outstanding(Kind::atomic, 8);
         s.peer.add(wire::UntaggedSegment{.last = true,
                                          .opcode = RdmapOpcode::atomic_response,
                                          .queue = wire::QueueNumber::atomic_response},
                    test::octets_of(wire::AtomicResponse{.request_identifier = 1}));
     },
     fault(Operation::unexpected_opcode)},

    // Framing.
    {"LengthTooSmallForAHeader",
     [](Setting& s) {
         s.peer.add_ulpdu(pattern(5, 1));
         s.peer.add_raw(Bytes(40));
     },
     fault(wire::MpaError::framing), Quotes::nothing},
    {"NothingAtAll", [](Setting& s) { s.peer.add_ulpdu({}); }, fault(wire::MpaError::framing),
     Quotes::nothing},
    {"OneOctet", [](Setting& s) { s.peer.add_ulpdu(pattern(1, 1)); },
     fault(wire::MpaError::framing), Quotes::nothing},
};

/// A peer that sends one of these and then waits hears of it all the same.
TEST(SessionFault, IsToldThoughNothingFollows) {
    for (std::size_t size : {0, 1, 5, 6, 13}) {
        for (bool markers : {false, true}) {
            SessionSide side({.role = Role::responder, .checksum = true, .markers_in = markers});
            FpduWriter peer(true, markers);
            peer.add_ulpdu(pattern(size, 1));
            side.hear(peer.octets());
            ASSERT_TRUE(side.failure) << size;
            EXPECT_EQ(detail_of(*side.failure), fault(wire::MpaError::framing).detail);
            EXPECT_FALSE(side.say().empty());
        }
    }
}

struct Mode {
    const char* name;
    bool checksum, markers;
    Placement placement;
};

class SessionFaults : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(A, SessionFaults, testing::ValuesIn(cases),
                         [](const auto& row) { return std::string(row.param.name); });

void expect_terminate(ConstBuffer said, const Mode& mode, const Case& row, ConstBuffer ulpdu) {
    test::FpduStream stream(said, {.checksum = mode.checksum});
    ASSERT_EQ(stream.messages().size(), 1u);
    auto& message = stream.messages().back();
    ASSERT_EQ(message.opcode, RdmapOpcode::terminate);
    auto terminate = wire::decode_terminate(message.payload, wire::TerminateLayout::standard);
    ASSERT_TRUE(terminate);
    EXPECT_EQ(detail_of(terminate->control), row.expected.detail);
    bool quotes_segment = row.quotes != Quotes::nothing;
    EXPECT_EQ(terminate->control.segment_header_included, quotes_segment);
    EXPECT_EQ(terminate->control.segment_size_valid, quotes_segment);
    if (quotes_segment) {
        EXPECT_EQ(terminate->segment_size, ulpdu.size());
        auto header = ulpdu.first(wire::segment_header_size(ulpdu[0]));
        EXPECT_EQ(test::to_hex(terminate->segment_header), test::to_hex(header));
    }
    bool quotes_read = row.quotes == Quotes::read_request;
    EXPECT_EQ(terminate->control.read_request_included, quotes_read);
    if (quotes_read) {
        EXPECT_EQ(terminate->read_request, *decode<wire::ReadRequest>(ulpdu.subspan(18)));
    }
}

TEST_P(SessionFaults, IsToldInTheWordsOfItsLayer) {
    const auto& row = GetParam();
    for (const auto& mode : {Mode{"straight", false, false, Placement::verified},
                             Mode{"verified", true, false, Placement::verified},
                             Mode{"eager", true, false, Placement::eager},
                             Mode{"markers", true, true, Placement::verified}}) {
        for (std::size_t step : {std::size_t{1}, std::size_t{100}, SIZE_MAX}) {
            SCOPED_TRACE(testing::Message() << mode.name << ", in steps of " << step);
            SessionSide side({.role = Role::responder,
                              .checksum = mode.checksum,
                              .markers_in = mode.markers,
                              .inbound_reads = 2,
                              .outbound_reads = 2,
                              .peer = row.kind},
                             {.placement = mode.placement});
            using enum Rights;
            FpduWriter peer(mode.checksum, mode.markers);
            Setting setting{
                side,
                peer,
                side.add_region(open.at, open.size, test::all_rights),
                side.add_region(read_only.at, read_only.size, local_write | remote_read),
                side.add_region(write_only.at, write_only.size, local_write | remote_write),
                side.add_region(foreign.at, foreign.size, test::all_rights, DomainId{8}),
                *side.memory.allocate(SessionSide::us.domain, 1)};
            side.post_receive(receive.at, receive.size);
            row.peer(setting);
            auto before = side.arena;
            auto ulpdu = peer.last_ulpdu();
            peer.add(send_header, pattern(8, 5));  // what follows must not matter
            side.hear(peer.octets(), step);

            ASSERT_TRUE(side.failure);
            EXPECT_EQ(detail_of(*side.failure), row.expected.detail);
            EXPECT_EQ(side.whose, FaultOf::us);
            EXPECT_TRUE(side.session().want().empty());
            EXPECT_TRUE(side.session().finished());
            EXPECT_EQ(side.session().deadline(), std::nullopt);
            expect_terminate(side.say(), mode, row, ulpdu);
            EXPECT_TRUE(side.say().empty()) << "nothing comes after a Terminate";
            std::optional<verbs::Status> status;
            if (!side.received.empty()) status = side.received.back().status;
            EXPECT_EQ(status, row.receive_status);

            for (auto part : row.may_change)
                std::copy_n(side.arena.begin() + static_cast<std::ptrdiff_t>(part.at), part.size,
                            before.begin() + static_cast<std::ptrdiff_t>(part.at));
            EXPECT_TRUE(side.arena == before);
            if (HasFailure()) return;
        }
    }
}

}  // namespace
}  // namespace weft::iwarp
