// SPDX-License-Identifier: Apache-2.0
// Terminate, read by Wireshark: where its fields are, and whether each of our names for an error
// means what Wireshark's does.
#include <map>

#include "interop/iwarp_exchange.hpp"
#include "wire/terminate.hpp"

namespace weft::wire {
namespace {

using test::frame;

constexpr UntaggedSegment terminate_segment{
    .last = true, .opcode = RdmapOpcode::terminate, .queue = QueueNumber::terminate};

Bytes written(const Terminate& terminate) {
    Bytes octets(terminate_limit);
    octets.resize(encode_terminate(terminate, octets));
    return octets;
}

struct Meaning {
    TerminateControl control;
    const char* code_field;
    std::string words;
};

std::vector<Meaning> meanings() {
    std::vector<Meaning> all;
    auto add = [&](auto code, const char* field, const char* words) {
        all.push_back({terminate_for(code), field, words});
    };
    using enum RemoteProtectionError;
    const char* rdma = "iwarp_rdma.term_errcode_rdma";
    add(invalid_steering_tag, rdma, "Invalid STag");
    add(out_of_bounds, rdma, "Base or bounds violation");
    add(access_rights, rdma, "Access rights violation");
    add(wrong_stream, rdma, "STag not associated with RDMAP Stream");
    add(offset_wraps, rdma, "TO wrap");
    add(cannot_invalidate, rdma, "STag cannot be Invalidated");
    add(unspecified, rdma, "Unspecific Error");
    using Operation = RemoteOperationError;
    add(Operation::invalid_version, rdma, "Invalid RDMAP version");
    add(Operation::unexpected_opcode, rdma, "Unexpected OpCode");
    add(Operation::catastrophic_for_stream, rdma, "Catastrophic error, localized to RDMAP Stream");
    add(Operation::catastrophic, rdma, "Catastrophic error, global");
    add(Operation::cannot_invalidate, rdma, "STag cannot be Invalidated");
    add(Operation::unspecified, rdma, "Unspecific Error");
    using Tagged = TaggedBufferError;
    const char* tagged = "iwarp_rdma.term_errcode_ddp_tagged";
    add(Tagged::invalid_steering_tag, tagged, "Invalid STag");
    add(Tagged::out_of_bounds, tagged, "Base or bounds violation");
    add(Tagged::wrong_stream, tagged, "STag not associated with DDP Stream");
    add(Tagged::offset_wraps, tagged, "TO wrap");
    add(Tagged::invalid_version, tagged, "Invalid DDP version");
    using Untagged = UntaggedBufferError;
    const char* untagged = "iwarp_rdma.term_errcode_ddp_untagged";
    add(Untagged::invalid_queue, untagged, "Invalid QN");
    add(Untagged::no_buffer, untagged, "Invalid MSN - no buffer available");
    add(Untagged::message_number_out_of_range, untagged, "Invalid MSN - MSN range is not valid");
    add(Untagged::invalid_message_offset, untagged, "Invalid MO");
    add(Untagged::message_too_long, untagged, "DDP Message too long for available buffer");
    add(Untagged::invalid_version, untagged, "Invalid DDP version");
    const char* mpa = "iwarp_rdma.term_errcode_llp";
    add(MpaError::connection_lost, mpa, "TCP connection closed, terminated or lost");
    add(MpaError::checksum, mpa, "MPA CRC Error");
    add(MpaError::framing, mpa, "MPA Marker and ULPDU Length field mismatch");
    add(MpaError::invalid_startup_frame, mpa, "Invalid MPA Request Frame or MPA Response Frame");
    add(MpaError::local_catastrophic, mpa, "Local Catastrophic Error");
    add(MpaError::insufficient_inbound_reads, mpa, "Insufficient IRD Resources");
    add(MpaError::no_matching_ready_message, mpa, "No Matching RTR Option");
    return all;
}

const char* type_field(TerminateLayer layer) {
    switch (layer) {
        case TerminateLayer::rdmap:
            return "iwarp_rdma.term_etype_rdma";
        case TerminateLayer::ddp:
            return "iwarp_rdma.term_etype_ddp";
        case TerminateLayer::mpa:
            return "iwarp_rdma.term_etype_llp";
    }
    return "";
}

TEST(TerminateAsTsharkSeesIt, MeansWhatOurNamesSay) {
    Exchange exchange(Checksum::present);
    std::vector<std::size_t> numbers;
    std::map<std::string, std::size_t> times;
    const auto all = meanings();
    for (const auto& meaning : all) {
        numbers.push_back(exchange.send(terminate_segment, encoded(meaning.control)));
        ++times[meaning.words];
    }
    auto frames = exchange.finish();
    for (std::size_t index = 0; index < numbers.size(); ++index) {
        const auto& meaning = all[index];
        const auto& seen = frame(frames, numbers[index]);
        SCOPED_TRACE(meaning.words);
        EXPECT_EQ(seen.number("iwarp_rdma.term_layer"),
                  static_cast<unsigned>(meaning.control.layer));
        EXPECT_EQ(seen.number(type_field(meaning.control.layer)), meaning.control.error_type);
        EXPECT_EQ(seen.number(meaning.code_field), meaning.control.error_code);
        EXPECT_EQ(seen.number("iwarp_rdma.term_rsvd"), 0u);
    }
    auto text = dissect_in_words(exchange.capture(), plain_payload);
    for (const auto& [words, count] : times)
        EXPECT_EQ(times_said(text, ": " + words + " (0x"), count) << words;
}

TEST(TerminateAsTsharkSeesIt, CarriesTheHeaderOfASegment) {
    const auto tagged = encoded(TaggedSegment{.last = true, .steering_tag = SteeringTag{7}});
    const auto untagged = encoded(UntaggedSegment{.opcode = RdmapOpcode::send});
    Terminate terminate{.control = terminate_for(TaggedBufferError::out_of_bounds),
                        .segment_size = 0x0102,
                        .segment_header = tagged,
                        .read_request = {}};
    terminate.control.segment_size_valid = true;
    terminate.control.segment_header_included = true;
    Exchange exchange(Checksum::absent);
    auto first = exchange.send(terminate_segment, written(terminate));
    terminate.segment_header = untagged;
    terminate.control.error_type = static_cast<std::uint8_t>(DdpErrorType::untagged_buffer);
    auto second = exchange.send(terminate_segment, written(terminate));

    auto frames = exchange.finish();
    for (auto number : {first, second}) {
        const auto& seen = frame(frames, number);
        EXPECT_EQ(seen.number("iwarp_rdma.term_hdrct_m"), 1u);
        EXPECT_EQ(seen.number("iwarp_rdma.hdrct_d"), 1u);
        EXPECT_EQ(seen.number("iwarp_rdma.hdrct_r"), 0u);
        EXPECT_EQ(seen.text("iwarp_rdma.term_ddp_seg_len"), "01:02");
    }
    EXPECT_EQ(frame(frames, first).text("iwarp_rdma.term_ddp_h"), colons(tagged));
    EXPECT_EQ(frame(frames, second).text("iwarp_rdma.term_ddp_h"), colons(untagged));
}

TEST(TerminateAsTsharkSeesIt, CarriesTheReadRequest) {
    const auto segment = encoded(UntaggedSegment{
        .last = true, .opcode = RdmapOpcode::read_request, .queue = QueueNumber::read_request});
    Terminate terminate{.control = terminate_for(RemoteOperationError::catastrophic_for_stream),
                        .segment_size = 46,
                        .segment_header = segment,
                        .read_request = {.sink_tag = SteeringTag{0x11121314},
                                         .sink_offset = TaggedOffset{0x2122232425262728},
                                         .size = 0x31323334,
                                         .source_tag = SteeringTag{0x41424344},
                                         .source_offset = TaggedOffset{0x5152535455565758}}};
    terminate.control.segment_size_valid = true;
    terminate.control.segment_header_included = true;
    terminate.control.read_request_included = true;
    Exchange exchange(Checksum::present);
    auto first = exchange.send(terminate_segment, written(terminate));
    // The dissector takes the header for a tagged one by the error type alone, 1, which only DDP's
    // tagged buffer error should do: of a refused Read it then shows the wrong 14 and 28 octets.
    terminate.control = terminate_for(RemoteProtectionError::out_of_bounds);
    terminate.control.segment_size_valid = true;
    terminate.control.segment_header_included = true;
    terminate.control.read_request_included = true;
    auto second = exchange.send(terminate_segment, written(terminate));

    auto frames = exchange.finish();
    auto request = encoded(terminate.read_request);
    EXPECT_EQ(frame(frames, first).number("iwarp_rdma.hdrct_r"), 1u);
    EXPECT_EQ(frame(frames, first).text("iwarp_rdma.term_ddp_h"), colons(segment));
    EXPECT_EQ(frame(frames, first).text("iwarp_rdma.term_rdma_h"), colons(request));
    auto shown = frame(frames, second).text("iwarp_rdma.term_ddp_h") + ":" +
                 frame(frames, second).text("iwarp_rdma.term_rdma_h");
    EXPECT_EQ(shown, colons(test::join({segment, request})).substr(0, shown.size()));
    EXPECT_EQ(shown.size(), (14 + 28) * 3 - 1u);
}

}  // namespace
}  // namespace weft::wire
