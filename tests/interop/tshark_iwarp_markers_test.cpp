// SPDX-License-Identifier: Apache-2.0
// MPA's markers, read by Wireshark. No implementation we can reach sends any (Linux refuses them),
// so this dissector and RFC 5044's two figures are the only others who say where they belong.
//
// Two mistakes of the dissector (4.0) were found by experiment and are stepped round below. Of an
// FPDU that holds a marker and ends where the next one begins it counts that one too, which belongs
// to the next FPDU (RFC 5044 section 4.3), and dissects nothing. And it takes the distance from one
// marker's end to the next for 512 octets instead of 508, so that of an FPDU with several markers
// it shows the later ones as data.
#include "interop/iwarp_exchange.hpp"

namespace weft::wire {
namespace {

using test::complaints;
using test::dissect;
using test::frame;
using test::join;
using testing::ElementsAreArray;
using testing::IsEmpty;

/// A connection both of whose sides ask for markers, and what its client sends.
class MarkedStream {
public:
    MarkedStream(Capture& capture, std::uint16_t client_port)
        : talk_(capture, {.client_port = client_port, .server_port = 7174}) {
        MpaTerms terms{.markers = true, .checksum = true};
        talk_.client_sends(mpa_frame<MpaRequest>(terms, {}));
        talk_.server_sends(mpa_frame<MpaReply>(terms, {}));
    }

    void send(std::size_t payload_size) {
        UntaggedSegment segment{.last = true,
                                .opcode = RdmapOpcode::send,
                                .message_number = static_cast<std::uint32_t>(sent_.size() + 1)};
        auto payload = some_payload(payload_size);
        auto plain = fpdu_of(join({encoded(segment), payload}), Checksum::absent);
        Bytes marked(marked_size(position_, plain.size()));
        EXPECT_EQ(insert_markers(plain, position_, marked), marked.size());
        seal_fpdu(marked);

        Sent sent{.number = talk_.client_sends(marked),
                  .segment = segment,
                  .payload = payload,
                  .pointers = {}};
        auto begins = position_ % 512 == 0 ? position_ + 4 : position_;
        for (auto at = position_; at < position_ + marked.size(); ++at)
            if (at % 512 == 0) sent.pointers.push_back(at < begins ? 0 : at - begins);
        position_ += marked.size();
        EXPECT_FALSE(position_ % 512 == 0 && !sent.pointers.empty()) << "tshark would miscount";
        sent_.push_back(sent);
    }

    std::uint64_t position() const { return position_; }

    std::size_t sent() const { return sent_.size(); }

    void check(const DissectedFrames& frames) const {
        for (const auto& sent : sent_) {
            const auto& seen = frame(frames, sent.number);
            SCOPED_TRACE(to_text(sent.segment));
            expect_segment(seen, sent.segment);
            EXPECT_THAT(seen.numbers("iwarp_mpa.marker_fpduptr"), ElementsAreArray(sent.pointers));
            if (sent.pointers.size() <= 1) {
                EXPECT_EQ(seen.text("data.data"), colons(sent.payload));
            }
        }
    }

private:
    struct Sent {
        std::size_t number;
        UntaggedSegment segment;
        Bytes payload;
        std::vector<std::uint64_t> pointers;
    };

    TcpConversation talk_;
    std::uint64_t position_ = 0;
    std::vector<Sent> sent_;
};

void check(const Capture& capture, const std::vector<MarkedStream>& streams) {
    auto frames = dissect(capture, plain_payload);
    EXPECT_THAT(complaints(frames), IsEmpty());
    std::size_t sent = 0;
    for (const auto& stream : streams) {
        stream.check(frames);
        sent += stream.sent();
    }
    EXPECT_EQ(times_said(dissect_in_words(capture, plain_payload), "(Good CRC32)"), sent);
}

TEST(MarkersAsTsharkSeesThem, StandAndPointAsWePutThem) {
    Capture capture;
    MarkedStream stream(capture, 50000);
    for (std::size_t size : {200, 1, 402, 33, 603, 47, 804, 1440, 5, 3000, 77}) stream.send(size);
    check(capture, {stream});
}

TEST(MarkersAsTsharkSeesThem, MayFallAnywhereInAnFpdu) {
    // Each stream puts its second marker elsewhere: in the header of the second FPDU, in its
    // payload, between padding and checksum, behind it.
    Capture capture;
    std::vector<MarkedStream> streams;
    for (std::uint16_t first = 408; first < 484; first = static_cast<std::uint16_t>(first + 4)) {
        MarkedStream stream(capture, static_cast<std::uint16_t>(50000 + first));
        for (std::size_t size : {std::size_t{first}, std::size_t{46}, std::size_t{46}})
            stream.send(size);
        streams.push_back(stream);
    }
    check(capture, streams);
}

}  // namespace
}  // namespace weft::wire
