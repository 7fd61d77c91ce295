// SPDX-License-Identifier: Apache-2.0
// An iWARP connection written into a capture, segment by segment, and what tshark must then say of
// each segment whatever its message is.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "support/tshark.hpp"
#include "wire/mpa.hpp"
#include "wire/rdmap.hpp"

namespace weft::wire {

using test::Bytes;
using test::Capture;
using test::DissectedFrame;
using test::DissectedFrames;
using test::TcpConversation;

enum class Checksum : std::uint8_t { absent, present };

/// Sends carry octets of no protocol here; the guess that they are RPC fails on short ones.
inline const test::TsharkOptions plain_payload{
    .no_heuristics = {"rpcrdma_iwarp", "smb_direct_iwarp"}};

template <class Frame>
Bytes mpa_frame(MpaTerms terms, const MpaPrivateData& data) {
    Frame header{.terms = terms_for(terms, data)};
    Bytes octets(wire_size<Frame>() + header.terms.private_data_size);
    encode(header, octets);
    encode_private_data(data, Buffer(octets).subspan(wire_size<Frame>()));
    return octets;
}

/// An FPDU around the octets, without markers.
inline Bytes fpdu_of(ConstBuffer ulpdu, Checksum checksum) {
    Bytes octets(fpdu_size(ulpdu.size()));
    encode(FpduLength{.ulpdu_size = static_cast<std::uint16_t>(ulpdu.size())}, octets);
    std::copy(ulpdu.begin(), ulpdu.end(), octets.begin() + wire_size<FpduLength>());
    encode_fpdu_trailer(ulpdu.size(), 0, Buffer(octets).last(fpdu_trailer_size(ulpdu.size())));
    if (checksum == Checksum::present) seal_fpdu(octets);
    return octets;
}

inline Bytes some_payload(std::size_t size) {
    Bytes octets(size);
    for (std::size_t at = 0; at < size; ++at) octets[at] = static_cast<std::byte>(at * 7 + 3);
    return octets;
}

inline void expect_segment(const DissectedFrame& seen, const TaggedSegment& sent) {
    EXPECT_EQ(seen.number("iwarp_ddp.tagged_flag"), 1u);
    EXPECT_EQ(seen.number("iwarp_ddp.last_flag"), sent.last);
    EXPECT_EQ(seen.number("iwarp_rdma.opcode"), static_cast<unsigned>(sent.opcode));
    EXPECT_EQ(seen.number("iwarp_ddp.stag"), static_cast<std::uint32_t>(sent.steering_tag));
    EXPECT_EQ(seen.number("iwarp_ddp.tagged_offset"), static_cast<std::uint64_t>(sent.offset));
}

inline void expect_segment(const DissectedFrame& seen, const UntaggedSegment& sent) {
    EXPECT_EQ(seen.number("iwarp_ddp.tagged_flag"), 0u);
    EXPECT_EQ(seen.number("iwarp_ddp.last_flag"), sent.last);
    EXPECT_EQ(seen.number("iwarp_rdma.opcode"), static_cast<unsigned>(sent.opcode));
    EXPECT_EQ(seen.number("iwarp_ddp.qn"), static_cast<std::uint32_t>(sent.queue));
    EXPECT_EQ(seen.number("iwarp_ddp.msn"), sent.message_number);
    EXPECT_EQ(seen.number("iwarp_ddp.mo"), sent.message_offset);
    EXPECT_EQ(seen.has("iwarp_rdma.inval_stag"), invalidates(sent.opcode));
    if (invalidates(sent.opcode)) {
        EXPECT_EQ(seen.number("iwarp_rdma.inval_stag"),
                  static_cast<std::uint32_t>(sent.invalidate));
    }
}

inline std::size_t times_said(const std::string& text, const std::string& words) {
    std::size_t times = 0;
    for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++times;
    return times;
}

/// A connection of revision 1, about whose opening tshark has nothing to say, and the segments its
/// client sends, each in an FPDU and a TCP segment of its own.
class Exchange {
public:
    explicit Exchange(Checksum checksum) : checksum_(checksum) {
        MpaTerms terms{.checksum = checksum == Checksum::present};
        talk_.client_sends(mpa_frame<MpaRequest>(terms, {}));
        talk_.server_sends(mpa_frame<MpaReply>(terms, {}));
    }

    /// Returns the number of the frame.
    template <class Header>
    std::size_t send(const Header& header, ConstBuffer behind) {
        auto fpdu = fpdu_of(test::join({encoded(header), behind}), checksum_);
        auto number = talk_.client_sends(fpdu);
        checks_.push_back([this, number, fpdu, header](const DissectedFrames& frames) {
            const auto& seen = frame(frames, number);
            SCOPED_TRACE(to_text(header));
            expect_fpdu(seen, fpdu);
            expect_segment(seen, header);
        });
        return number;
    }

    /// What tshark makes of it all: nothing to complain of, and in each segment what was sent.
    DissectedFrames finish() const {
        auto frames = dissect(capture_, plain_payload);
        EXPECT_THAT(complaints(frames), testing::IsEmpty());
        for (const auto& check : checks_) check(frames);
        if (checksum_ == Checksum::present) {
            EXPECT_EQ(times_said("(Good CRC32)"), checks_.size());
        }
        return frames;
    }

    std::size_t times_said(const std::string& words) const {
        return wire::times_said(dissect_in_words(capture_, plain_payload), words);
    }

    /// For what send() does not do.
    TcpConversation& talk() { return talk_; }
    const Capture& capture() const { return capture_; }

private:
    /// What every FPDU says, and the constants of every segment.
    void expect_fpdu(const DissectedFrame& seen, ConstBuffer fpdu) const {
        auto ulpdu_size = decode<FpduLength>(fpdu)->ulpdu_size;
        EXPECT_EQ(seen.number("iwarp_mpa.ulpdulength"), ulpdu_size);
        EXPECT_EQ(seen.has("iwarp_mpa.pad"), fpdu_padding(ulpdu_size) > 0);
        // tshark reads the four octets most significant first, whatever they hold.
        auto field = checksum_ == Checksum::present ? "iwarp_mpa.crc_check" : "iwarp_mpa.crc";
        EXPECT_EQ(seen.number(field), load_big_endian<4>(fpdu.last(4).data()));
        EXPECT_EQ(seen.number("iwarp_ddp.dv"), 1u);
        EXPECT_EQ(seen.number("iwarp_ddp.rsvd"), 0u);
        EXPECT_EQ(seen.number("iwarp_rdma.version"), 1u);
        EXPECT_EQ(seen.number("iwarp_rdma.rsv"), 0u);
    }

    Checksum checksum_;
    Capture capture_;
    TcpConversation talk_{capture_, {.server_port = 7174}};
    std::vector<std::function<void(const DissectedFrames&)>> checks_;
};

inline std::string colons(ConstBuffer octets) {
    auto text = test::to_hex(octets);
    std::replace(text.begin(), text.end(), ' ', ':');
    return text;
}

}  // namespace weft::wire
