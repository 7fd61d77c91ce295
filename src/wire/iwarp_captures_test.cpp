// SPDX-License-Identifier: Apache-2.0
// Walks every FPDU of another implementation's traffic (tests/captures) with our decoders: all
// lengths must join, all constants hold, all checksums agree, and every count follow the last.
#include <gtest/gtest.h>

#include <map>

#include "support/tcp_streams.hpp"
#include "wire/mpa.hpp"
#include "wire/rdmap.hpp"

namespace weft::wire {
namespace {

using test::Capture;
using test::TcpConnection;

struct Walked {
    std::map<RdmapOpcode, int> segments;
    int read_octets_asked = 0;
    int read_octets_sent = 0;
    int write_octets = 0;
};

/// Follows one direction of a connection, segment by segment.
class StreamWalker {
public:
    StreamWalker(Walked& walked, bool checksummed) : walked_(walked), checksummed_(checksummed) {}

    void fpdus(ConstBuffer stream) {
        while (!stream.empty()) {
            auto length = decode<FpduLength>(stream);
            ASSERT_TRUE(length);
            auto size = fpdu_size(length->ulpdu_size);
            ASSERT_LE(size, stream.size()) << "an FPDU reaches over the end of the stream";
            auto fpdu = stream.first(size);
            if (checksummed_) {
                EXPECT_TRUE(fpdu_is_intact(fpdu));
            } else {
                EXPECT_EQ(fpdu_checksum(fpdu), 0u) << "siw leaves the field zero";
            }
            auto ulpdu = fpdu.subspan(wire_size<FpduLength>(), length->ulpdu_size);
            ASSERT_NO_FATAL_FAILURE(segment(ulpdu));
            stream = stream.subspan(size);
        }
    }

private:
    void segment(ConstBuffer ulpdu) {
        auto decoded = decode_segment(ulpdu);
        ASSERT_TRUE(decoded) << "refused: " << test::to_hex(ulpdu.first(2));
        auto payload = ulpdu.subspan(segment_header_size(ulpdu[0]));
        std::visit([&](const auto& header) { follow(header, ulpdu, payload); }, *decoded);
    }

    void follow(const TaggedSegment& header, ConstBuffer ulpdu, ConstBuffer payload) {
        count(header, ulpdu);
        EXPECT_TRUE(is_tagged(header.opcode));
        if (message_goes_on_) {
            EXPECT_EQ(header.steering_tag, next_tag_);
            EXPECT_EQ(header.offset, TaggedOffset{next_offset_});
        }
        message_goes_on_ = !header.last;
        next_tag_ = header.steering_tag;
        next_offset_ = static_cast<std::uint64_t>(header.offset) + payload.size();
        auto size = static_cast<int>(payload.size());
        if (header.opcode == RdmapOpcode::write) walked_.write_octets += size;
        if (header.opcode == RdmapOpcode::read_response) walked_.read_octets_sent += size;
    }

    void follow(const UntaggedSegment& header, ConstBuffer ulpdu, ConstBuffer payload) {
        count(header, ulpdu);
        EXPECT_FALSE(is_tagged(header.opcode));
        EXPECT_EQ(header.queue, queue_of(header.opcode));
        EXPECT_EQ(header.message_number, messages_[header.queue] + 1);
        EXPECT_EQ(header.message_offset, message_offsets_[header.queue]);
        message_offsets_[header.queue] += static_cast<std::uint32_t>(payload.size());
        if (header.last) {
            ++messages_[header.queue];
            message_offsets_[header.queue] = 0;
        }
        EXPECT_EQ(header.invalidate != SteeringTag{0}, invalidates(header.opcode));
        if (header.opcode == RdmapOpcode::read_request) {
            EXPECT_EQ(payload.size(), wire_size<ReadRequest>());
            auto request = decode<ReadRequest>(payload);
            ASSERT_TRUE(request);
            walked_.read_octets_asked += static_cast<int>(request->size);
        }
    }

    void count(const auto& header, ConstBuffer ulpdu) {
        ++walked_.segments[header.opcode];
        // Written again, the header is what it was: nothing in it was lost.
        auto again = encoded(header);
        EXPECT_EQ(test::to_hex(again), test::to_hex(ulpdu.first(again.size())));
    }

    Walked& walked_;
    bool checksummed_;
    bool message_goes_on_ = false;
    SteeringTag next_tag_{};
    std::uint64_t next_offset_ = 0;
    std::map<QueueNumber, std::uint32_t> messages_;
    std::map<QueueNumber, std::uint32_t> message_offsets_;
};

/// Takes the MPA frame off the front of a stream.
template <class Frame>
void take_frame(ConstBuffer& stream, MpaTerms& terms, MpaPrivateData& data) {
    auto frame = decode<Frame>(stream);
    ASSERT_TRUE(frame);
    terms = frame->terms;
    auto read = decode_private_data(terms, stream.subspan(wire_size<Frame>()));
    ASSERT_TRUE(read);
    data = *read;
    stream = stream.subspan(wire_size<Frame>() + terms.private_data_size);
}

void walk(const TcpConnection& connection, Walked& walked) {
    ConstBuffer from_client = connection.from_client.octets;
    ConstBuffer from_server = connection.from_server.octets;
    MpaTerms asked, answered;
    MpaPrivateData asked_data, answered_data;
    ASSERT_NO_FATAL_FAILURE(take_frame<MpaRequest>(from_client, asked, asked_data));
    ASSERT_NO_FATAL_FAILURE(take_frame<MpaReply>(from_server, answered, answered_data));
    EXPECT_EQ(asked.revision, 2u);
    EXPECT_FALSE(asked.markers || answered.markers || answered.rejected);
    ASSERT_TRUE(asked_data.enhanced && answered_data.enhanced);
    EXPECT_LE(answered_data.enhanced->outbound_reads, asked_data.enhanced->inbound_reads);
    EXPECT_LE(asked_data.enhanced->outbound_reads, answered_data.enhanced->inbound_reads);

    bool checksummed = asked.checksum || answered.checksum;
    ASSERT_NO_FATAL_FAILURE(StreamWalker(walked, checksummed).fpdus(from_client));
    ASSERT_NO_FATAL_FAILURE(StreamWalker(walked, checksummed).fpdus(from_server));
}

Walked walk_capture(const std::string& name, std::size_t connections) {
    Walked walked;
    auto found = test::tcp_connections(Capture::load(WEFT_CAPTURES "/" + name));
    EXPECT_EQ(found.size(), connections);
    for (const auto& connection : found) walk(connection, walked);
    EXPECT_EQ(walked.read_octets_asked, walked.read_octets_sent);
    return walked;
}

using Segments = std::map<RdmapOpcode, int>;

// The numbers of segments are those tshark counts in the same files.

TEST(SiwCapture, OfRpingIsUnderstoodToTheLastOctet) {
    auto walked = walk_capture("siw-rping.pcap", 3);
    EXPECT_EQ(walked.segments, (Segments{{RdmapOpcode::write, 29},
                                         {RdmapOpcode::read_request, 7},
                                         {RdmapOpcode::read_response, 29},
                                         {RdmapOpcode::send, 28}}));
    EXPECT_EQ(walked.write_octets, 3 * 256 + 2 * 16384 + 2 * 1024);
    EXPECT_EQ(walked.read_octets_asked, walked.write_octets);
}

TEST(SiwCapture, WithChecksumsHasTheOnesWeCompute) {
    auto walked = walk_capture("siw-rping-crc.pcap", 1);
    EXPECT_EQ(walked.segments, (Segments{{RdmapOpcode::write, 6},
                                         {RdmapOpcode::read_request, 2},
                                         {RdmapOpcode::read_response, 6},
                                         {RdmapOpcode::send, 8}}));
    EXPECT_EQ(walked.write_octets, 2 * 4096);
}

TEST(SiwCapture, OfPeersBeginsWithAnEmptyWrite) {
    auto walked = walk_capture("siw-rping-crcp2p.pcap", 1);
    EXPECT_EQ(walked.segments, (Segments{{RdmapOpcode::write, 2},
                                         {RdmapOpcode::read_request, 1},
                                         {RdmapOpcode::read_response, 1},
                                         {RdmapOpcode::send, 4}}));
    EXPECT_EQ(walked.write_octets, 128);
}

TEST(SiwCapture, OfIserIsUnderstoodToTheLastOctet) {
    auto walked = walk_capture("siw-iser.pcap", 1);
    EXPECT_EQ(walked.segments, (Segments{{RdmapOpcode::write, 90},
                                         {RdmapOpcode::read_request, 1},
                                         {RdmapOpcode::read_response, 41},
                                         {RdmapOpcode::send, 50},
                                         {RdmapOpcode::send_invalidate, 37}}));
    EXPECT_EQ(walked.read_octets_asked, 57344) << "64 KiB written, of which 8 KiB came unasked";
}

}  // namespace
}  // namespace weft::wire
