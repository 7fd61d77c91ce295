// SPDX-License-Identifier: Apache-2.0
// Every iWARP message we can write, read by Wireshark's dissectors iwarp_mpa and iwarp_ddp_rdmap.
// Terminate and markers have files of their own.
#include "interop/iwarp_exchange.hpp"

namespace weft::wire {
namespace {

using test::complaints;
using test::dissect;
using test::frame;
using test::from_hex;
using test::join;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(MpaFrameAsTsharkSeesIt, HasOurFieldsInRevision1) {
    Capture capture;
    TcpConversation talk(capture, {.server_port = 7174});
    auto application = from_hex("01 02 03");
    MpaPrivateData data{.enhanced = {}, .application = application};
    auto request = talk.client_sends(
        mpa_frame<MpaRequest>({.markers = true, .checksum = false, .revision = 1}, data));
    auto reply = talk.server_sends(
        mpa_frame<MpaReply>({.checksum = true, .rejected = true, .revision = 1}, {}));
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), IsEmpty());

    const auto& asked = frame(frames, request);
    EXPECT_EQ(asked.text("iwarp_mpa.key.req"), colons(bytes_of("MPA ID Req Frame")));
    EXPECT_EQ(asked.number("iwarp_mpa.marker_flag"), 1u);
    EXPECT_EQ(asked.number("iwarp_mpa.crc_flag"), 0u);
    EXPECT_EQ(asked.number("iwarp_mpa.rej_flag"), 0u);
    EXPECT_EQ(asked.number("iwarp_mpa.res"), 0u);
    EXPECT_EQ(asked.number("iwarp_mpa.rev"), 1u);
    EXPECT_EQ(asked.number("iwarp_mpa.pdlength"), 3u);
    EXPECT_EQ(asked.text("iwarp_mpa.privatedata"), "01:02:03");

    const auto& answered = frame(frames, reply);
    EXPECT_EQ(answered.text("iwarp_mpa.key.rep"), colons(bytes_of("MPA ID Rep Frame")));
    EXPECT_EQ(answered.number("iwarp_mpa.marker_flag"), 0u);
    EXPECT_EQ(answered.number("iwarp_mpa.crc_flag"), 1u);
    EXPECT_EQ(answered.number("iwarp_mpa.rej_flag"), 1u);
    EXPECT_EQ(answered.number("iwarp_mpa.pdlength"), 0u);
}

// This dissector knows RFC 5044 and not RFC 6581: it shows the enhanced flag as a reserved bit and
// the enhanced terms as private data, and warns that revision and reserved bits are not as they
// were. It does the same with the Linux kernel's frames (tests/captures), and must do no more.
TEST(MpaFrameAsTsharkSeesIt, HasOurFieldsInRevision2) {
    Capture capture;
    TcpConversation talk(capture, {.server_port = 7174});
    MpaTerms terms{.checksum = true, .revision = 2};
    MpaPrivateData data{.enhanced = EnhancedTerms{.peer_to_peer = true,
                                                  .ready_by_write = true,
                                                  .ready_by_read = true,
                                                  .inbound_reads = 16,
                                                  .outbound_reads = 8},
                        .application = {}};
    auto request = talk.client_sends(mpa_frame<MpaRequest>(terms, data));
    auto reply = talk.server_sends(mpa_frame<MpaReply>(terms, data));
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), UnorderedElementsAre(HasSubstr("Res field is NOT set to zero"),
                                                         HasSubstr("Rev field is NOT set to one")));
    for (auto number : {request, reply}) {
        const auto& seen = frame(frames, number);
        EXPECT_EQ(seen.number("iwarp_mpa.crc_flag"), 1u);
        EXPECT_EQ(seen.number("iwarp_mpa.res"), 0x10u);
        EXPECT_EQ(seen.number("iwarp_mpa.rev"), 2u);
        EXPECT_EQ(seen.number("iwarp_mpa.pdlength"), 4u);
        EXPECT_EQ(seen.text("iwarp_mpa.privatedata"), "80:10:c0:08");
    }
}

class MessageAsTsharkSeesIt : public testing::TestWithParam<Checksum> {};

UntaggedSegment segment_for(RdmapOpcode opcode) {
    return {.last = true, .opcode = opcode, .queue = queue_of(opcode), .message_number = 5};
}

TEST_P(MessageAsTsharkSeesIt, HasOurFieldsIfTagged) {
    Exchange exchange(GetParam());
    std::vector<std::size_t> numbers;
    auto payload = some_payload(13);
    for (auto opcode : {RdmapOpcode::write, RdmapOpcode::read_response})
        for (bool last : {false, true})
            numbers.push_back(
                exchange.send(TaggedSegment{.last = last,
                                            .opcode = opcode,
                                            .steering_tag = SteeringTag{0x11223344},
                                            .offset = TaggedOffset{0xfedcba9876543210}},
                              payload));
    auto frames = exchange.finish();
    for (auto number : numbers) EXPECT_EQ(frame(frames, number).text("data.data"), colons(payload));
}

TEST_P(MessageAsTsharkSeesIt, HasOurFieldsIfSent) {
    Exchange exchange(GetParam());
    std::vector<std::size_t> numbers;
    auto payload = some_payload(14);
    for (auto opcode : {RdmapOpcode::send, RdmapOpcode::send_invalidate,
                        RdmapOpcode::send_solicited, RdmapOpcode::send_solicited_invalidate}) {
        auto segment = segment_for(opcode);
        segment.message_number = 0x01020304 + static_cast<std::uint32_t>(opcode);
        if (invalidates(opcode)) segment.invalidate = SteeringTag{0xdeadbe01};
        numbers.push_back(exchange.send(segment, payload));
    }
    auto frames = exchange.finish();
    for (auto number : numbers) EXPECT_EQ(frame(frames, number).text("data.data"), colons(payload));
}

TEST_P(MessageAsTsharkSeesIt, IsPutTogetherFromItsSegments) {
    Exchange exchange(GetParam());
    auto payload = some_payload(3000);
    std::size_t number = 0;
    for (std::uint32_t offset = 0; offset < 3000; offset += 1000) {
        auto segment = segment_for(RdmapOpcode::send);
        segment.message_offset = offset;
        segment.last = offset == 2000;
        number = exchange.send(segment, ConstBuffer(payload).subspan(offset, 1000));
    }
    auto frames = exchange.finish();
    const auto& last = frame(frames, number);
    EXPECT_EQ(last.number("iwarp_rdma.send.fragment.count"), 3u);
    EXPECT_EQ(last.text("iwarp_rdma.send.reassembled.data"), colons(payload));
}

TEST_P(MessageAsTsharkSeesIt, HasOurFieldsIfAReadRequest) {
    ReadRequest request{.sink_tag = SteeringTag{0x11121314},
                        .sink_offset = TaggedOffset{0x2122232425262728},
                        .size = 0x31323334,
                        .source_tag = SteeringTag{0x41424344},
                        .source_offset = TaggedOffset{0x5152535455565758}};
    Exchange exchange(GetParam());
    auto number = exchange.send(segment_for(RdmapOpcode::read_request), encoded(request));
    auto frames = exchange.finish();
    const auto& seen = frame(frames, number);
    EXPECT_EQ(seen.number("iwarp_rdma.sinkstag"), 0x11121314u);
    EXPECT_EQ(seen.number("iwarp_rdma.sinkto"), 0x2122232425262728u);
    EXPECT_EQ(seen.number("iwarp_rdma.rdmardsz"), 0x31323334u);
    EXPECT_EQ(seen.number("iwarp_rdma.srcstag"), 0x41424344u);
    EXPECT_EQ(seen.number("iwarp_rdma.srcto"), 0x5152535455565758u);
}

// The dissector shows opcodes 8 and 9 as numbers without a name, and does not show the eight
// octets.
TEST_P(MessageAsTsharkSeesIt, HasOurFieldsIfImmediateData) {
    ImmediateData data{.octets = {1, 2, 3, 4, 5, 6, 7, 8}};
    Exchange exchange(GetParam());
    for (auto opcode : {RdmapOpcode::immediate_data, RdmapOpcode::immediate_data_solicited})
        exchange.send(segment_for(opcode), encoded(data));
    exchange.finish();
}

TEST_P(MessageAsTsharkSeesIt, HasOurFieldsIfAtomic) {
    AtomicRequest request{.operation = AtomicOperation::compare_swap,
                          .request_identifier = 0x11121314,
                          .remote_tag = SteeringTag{0x21222324},
                          .remote_offset = TaggedOffset{0x3132333435363738},
                          .add_or_swap = 0x4142434445464748,
                          .add_or_swap_mask = 0x5152535455565758,
                          .compare = 0x6162636465666768,
                          .compare_mask = 0x7172737475767778};
    AtomicResponse response{.request_identifier = 0x11121314, .original_value = 0x2122232425262728};
    Exchange exchange(GetParam());
    auto swap = exchange.send(segment_for(RdmapOpcode::atomic_request), encoded(request));
    request.operation = AtomicOperation::fetch_add;
    auto add = exchange.send(segment_for(RdmapOpcode::atomic_request), encoded(request));
    auto answer = exchange.send(segment_for(RdmapOpcode::atomic_response), encoded(response));

    auto frames = exchange.finish();
    auto says = [&](std::size_t number, const char* field) {
        return frame(frames, number).number(std::string("iwarp_rdma.atomic.") + field);
    };
    EXPECT_EQ(says(swap, "reserved"), 0u);
    EXPECT_EQ(says(swap, "opcode"), 2u);
    EXPECT_EQ(says(swap, "request_identifier"), 0x11121314u);
    EXPECT_EQ(says(swap, "remote_stag"), 0x21222324u);
    EXPECT_EQ(says(swap, "remote_tagged_offset"), 0x3132333435363738u);
    EXPECT_EQ(says(swap, "swap_data"), request.add_or_swap);
    EXPECT_EQ(says(swap, "swap_mask"), request.add_or_swap_mask);
    EXPECT_EQ(says(swap, "compare_data"), request.compare);
    EXPECT_EQ(says(swap, "compare_mask"), request.compare_mask);
    EXPECT_EQ(says(add, "opcode"), 0u);
    EXPECT_EQ(says(add, "add_data"), request.add_or_swap);
    EXPECT_EQ(says(add, "add_mask"), request.add_or_swap_mask);
    EXPECT_EQ(says(answer, "original_request_identifier"), 0x11121314u);
    EXPECT_EQ(says(answer, "original_remote_data_value"), response.original_value);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutChecksum, MessageAsTsharkSeesIt,
                         testing::Values(Checksum::absent, Checksum::present));

TEST(FpduAsTsharkSeesIt, HasABadChecksumIfSpoilt) {
    Exchange exchange(Checksum::present);
    auto fpdu =
        fpdu_of(join({encoded(TaggedSegment{.last = true}), some_payload(9)}), Checksum::present);
    fpdu[20] ^= std::byte{1};
    exchange.talk().client_sends(fpdu);
    EXPECT_EQ(exchange.times_said("Bad CRC32"), 1u);
    EXPECT_EQ(exchange.times_said("Good CRC32"), 0u);
}

TEST(FpduAsTsharkSeesIt, NeedNotBeAloneInItsTcpSegmentNorWhole) {
    Exchange exchange(Checksum::present);
    Bytes stream;
    for (std::uint32_t number = 1; number <= 5; ++number) {
        auto segment = segment_for(RdmapOpcode::send);
        segment.message_number = number;
        auto fpdu = fpdu_of(join({encoded(segment), some_payload(50 * number)}), Checksum::present);
        stream.insert(stream.end(), fpdu.begin(), fpdu.end());
    }
    exchange.talk().client_sends(ConstBuffer(stream).first(200));
    exchange.talk().client_sends(ConstBuffer(stream).subspan(200));
    auto frames = dissect(exchange.capture(), plain_payload);
    EXPECT_THAT(complaints(frames), IsEmpty());
    std::vector<std::uint64_t> numbers, sizes;
    for (const auto& seen : frames) {
        for (auto value : seen.numbers("iwarp_ddp.msn")) numbers.push_back(value);
        for (auto value : seen.numbers("iwarp_mpa.ulpdulength")) sizes.push_back(value);
    }
    EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5));
    EXPECT_THAT(sizes, ElementsAre(68, 118, 168, 218, 268));
    EXPECT_EQ(exchange.times_said("(Good CRC32)"), 5u);
}

}  // namespace
}  // namespace weft::wire
