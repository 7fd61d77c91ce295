// SPDX-License-Identifier: Apache-2.0
#include "wire/mpa.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/header.hpp"

namespace weft::wire {
namespace {

using test::Bytes;
using test::from_hex;
using test::golden;
using test::to_hex;

constexpr std::size_t header_size = wire_size<MpaRequest>();

template <class Frame>
Bytes whole_frame(MpaTerms terms, const MpaPrivateData& data) {
    Frame frame{.terms = terms_for(terms, data)};
    Bytes octets(header_size + frame.terms.private_data_size);
    encode(frame, octets);
    EXPECT_EQ(encode_private_data(data, Buffer(octets).subspan(header_size)),
              octets.size() - header_size);
    return octets;
}

template <class Frame>
void expect_frame(const Bytes& octets, MpaTerms terms, const MpaPrivateData& data) {
    test::expect_header(octets, Frame{.terms = terms_for(terms, data)});
    auto behind = ConstBuffer(octets).subspan(header_size);
    auto read = decode_private_data(terms_for(terms, data), behind);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->enhanced, data.enhanced);
    EXPECT_EQ(to_hex(read->application), to_hex(data.application));
    EXPECT_EQ(to_hex(whole_frame<Frame>(terms, data)), to_hex(octets));
    for (std::size_t size = 0; size < behind.size(); ++size)
        EXPECT_EQ(decode_private_data(terms_for(terms, data), behind.first(size)).error().code,
                  Code::truncated);
}

TEST(MpaFrame, IsReadAndWrittenAsSiwWritesIt) {
    const EnhancedTerms one_read{.inbound_reads = 1, .outbound_reads = 1};
    expect_frame<MpaRequest>(golden("iwarp/mpa_request.hex"), {.revision = 2},
                             {.enhanced = one_read, .application = {}});
    expect_frame<MpaReply>(golden("iwarp/mpa_reply.hex"), {.revision = 2},
                           {.enhanced = one_read, .application = {}});
}

TEST(MpaFrame, CarriesTheWaysToShowReadiness) {
    EnhancedTerms terms{.peer_to_peer = true,
                        .ready_by_write = true,
                        .ready_by_read = true,
                        .inbound_reads = 1,
                        .outbound_reads = 1};
    expect_frame<MpaRequest>(golden("iwarp/mpa_request_peer_to_peer.hex"),
                             {.checksum = true, .revision = 2},
                             {.enhanced = terms, .application = {}});
    terms.ready_by_read = false;
    expect_frame<MpaReply>(golden("iwarp/mpa_reply_peer_to_peer.hex"),
                           {.checksum = true, .revision = 2},
                           {.enhanced = terms, .application = {}});
    terms.ready_by_send = true;
    EXPECT_EQ(to_hex(encoded(terms)), "c0 01 80 01");
}

TEST(MpaFrame, CarriesTheApplicationsOctetsBehindItsOwn) {
    auto application = from_hex("80 00 00 00");
    expect_frame<MpaRequest>(golden("iwarp/mpa_request_iser.hex"), {.revision = 2},
                             {.enhanced = EnhancedTerms{.inbound_reads = 128, .outbound_reads = 1},
                              .application = application});
}

TEST(MpaFrame, OfRevisionOneHasNoEnhancedTerms) {
    auto octets = from_hex("4d504120494420526571204672616d65 c0 01 0003 616263");
    auto application = from_hex("616263");
    expect_frame<MpaRequest>(octets, {.markers = true, .checksum = true},
                             {.enhanced = {}, .application = application});

    // The flag was a reserved bit then: set or not, all of the private data is the application's.
    MpaTerms terms{.enhanced = true, .revision = 1, .private_data_size = 3};
    auto read = decode_private_data(terms, application);
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->enhanced);
    EXPECT_EQ(read->application.size(), 3u);
}

TEST(MpaFrame, IsRefusedUnderTheOthersKey) {
    EXPECT_FALSE(decode<MpaReply>(golden("iwarp/mpa_request.hex")));
    EXPECT_FALSE(decode<MpaRequest>(golden("iwarp/mpa_reply.hex")));
    auto good = golden("iwarp/mpa_request.hex");
    for (std::size_t at = 0; at < 16; ++at) {
        auto spoilt = good;
        spoilt[at] ^= std::byte{0x20};
        auto refused = decode<MpaRequest>(spoilt);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error(), (Error{.code = Code::malformed, .where = at < 8 ? 0u : 8u}));
    }
}

TEST(MpaFrame, HoldsAtMost512OctetsOfPrivateData) {
    Bytes octets(513);
    MpaTerms terms{.revision = 2, .private_data_size = 512};
    EXPECT_TRUE(decode_private_data(terms, octets));
    terms.private_data_size = 513;
    EXPECT_EQ(decode_private_data(terms, octets).error().code, Code::malformed);
}

TEST(MpaFrame, IsRefusedIfItsEnhancedTermsDoNotFit) {
    Bytes octets(16);
    MpaTerms terms{.enhanced = true, .revision = 2, .private_data_size = 3};
    EXPECT_EQ(decode_private_data(terms, octets).error().code, Code::malformed);
}

TEST(MpaFrame, KeepsTheUnassignedFlagsForThoseWhoLook) {
    MpaTerms terms{.checksum = true,
                   .rejected = true,
                   .enhanced = true,
                   .unassigned_flags = 0xc,
                   .revision = 2,
                   .private_data_size = 4};
    test::expect_header(from_hex("7c 02 0004"), terms);
}

TEST(Fpdu, IsAMultipleOfFourOctets) {
    for (std::size_t size = 0; size <= 70; ++size) {
        EXPECT_EQ(fpdu_size(size) % 4, 0u);
        EXPECT_LE(fpdu_padding(size), 3u);
        EXPECT_EQ(fpdu_size(size), 2 + size + fpdu_padding(size) + 4);
        EXPECT_EQ(fpdu_trailer_size(size), fpdu_padding(size) + 4);
    }
    EXPECT_EQ(fpdu_padding(14), 0u);
    EXPECT_EQ(fpdu_padding(15), 3u);
    test::expect_header(from_hex("002a"), FpduLength{.ulpdu_size = 42});
}

TEST(Fpdu, OfAnotherImplementationHasTheChecksumWeCompute) {
    for (const char* name : {"write_ready", "send", "read_request", "read_response",
                             "fpdu_rfc5044_figure5", "fpdu_rfc5044_figure6"}) {
        auto octets = golden("iwarp/" + std::string(name) + ".hex");
        ASSERT_GE(octets.size(), 4u);
        EXPECT_TRUE(fpdu_is_intact(octets)) << name;
        auto sealed = octets;
        std::fill(sealed.end() - 4, sealed.end(), std::byte{0xee});
        EXPECT_FALSE(fpdu_is_intact(sealed)) << name;
        seal_fpdu(sealed);
        EXPECT_EQ(to_hex(sealed), to_hex(octets)) << name;
    }
    EXPECT_FALSE(fpdu_is_intact(from_hex("001122")));
}

TEST(Fpdu, EndsInZeroesAndItsChecksum) {
    Bytes octets(7, std::byte{0xff});
    encode_fpdu_trailer(15, 0x01020304, octets);
    EXPECT_EQ(to_hex(octets), "00 00 00 04 03 02 01");
    EXPECT_EQ(fpdu_checksum(octets), 0x01020304u);
}

TEST(Fpdu, FitsTheSegmentItWasMadeFor) {
    EXPECT_EQ(largest_ulpdu(1460, Markers::absent), 1454u);
    EXPECT_EQ(largest_ulpdu(1448, Markers::absent), 1442u) << "what siw sends at an MTU of 1500";
    EXPECT_EQ(largest_ulpdu(1460, Markers::present), 1442u);
    EXPECT_EQ(largest_ulpdu(1461, Markers::absent), 1454u);
    EXPECT_EQ(largest_ulpdu(40, Markers::present), 128u);
    EXPECT_EQ(largest_ulpdu(0, Markers::absent), 128u);
    EXPECT_EQ(largest_ulpdu(1'000'000, Markers::absent), 64'768u);
    for (std::size_t segment = 150; segment < 9000; ++segment)
        for (std::uint64_t start : {0, 4, 252, 508}) {
            EXPECT_LE(fpdu_size(largest_ulpdu(segment, Markers::absent)), segment);
            EXPECT_LE(marked_size(start, fpdu_size(largest_ulpdu(segment, Markers::present))),
                      segment)
                << segment << " at " << start;
        }
}

// Markers, counted the slow way: octet by octet. -1 stands for an octet of a marker.
std::vector<std::int64_t> naive_marked_stream(std::size_t size) {
    std::vector<std::int64_t> stream;
    for (std::int64_t plain = 0; stream.size() < size;) {
        bool marker = stream.size() % 512 < 4;
        stream.push_back(marker ? -1 : plain++);
    }
    return stream;
}

TEST(Marker, StandsWhereTheNaiveCountPutsIt) {
    auto stream = naive_marked_stream(5000);
    std::uint64_t plain_before = 0;
    for (std::uint64_t at = 0; at < stream.size(); ++at) {
        EXPECT_EQ(plain_position(at), plain_before) << at;
        EXPECT_EQ(until_marker(at) == 0, at % 512 == 0) << at;
        EXPECT_EQ((at + until_marker(at)) % 512, 0u) << at;
        if (stream[at] < 0) continue;
        EXPECT_EQ(marked_position(static_cast<std::uint64_t>(stream[at])), at);
        ++plain_before;
    }
}

TEST(Marker, MakesAnFpduAsLongAsTheNaiveCountSays) {
    auto stream = naive_marked_stream(8000);
    for (std::uint64_t start = 0; start < 1100; start += 4) {
        for (std::uint64_t size : {8u, 12u, 20u, 500u, 504u, 508u, 512u, 1016u, 1024u, 5000u}) {
            std::uint64_t end = start;
            for (std::uint64_t left = size; left > 0; ++end) left -= stream[end] >= 0;
            EXPECT_EQ(marked_size(start, size), end - start) << size << " at " << start;
        }
    }
}

TEST(Marker, IsPutWhereTheRfcPutsIt) {
    auto first = golden("iwarp/fpdu_rfc5044_figure5.hex");
    auto second = golden("iwarp/fpdu_rfc5044_figure6.hex");
    test::expect_header(ConstBuffer(first), Marker{});
    test::expect_header(ConstBuffer(second).subspan(20), Marker{.fpdu_pointer = 20});

    auto check = [](const Bytes& marked, std::uint64_t position) {
        Bytes plain(marked.size());
        auto size = remove_markers(marked, position, plain);
        ASSERT_TRUE(size);
        plain.resize(*size);
        EXPECT_EQ(plain.size(), marked.size() - 4);
        EXPECT_EQ(decode<FpduLength>(plain)->ulpdu_size, 42u);
        EXPECT_EQ(marked_size(position, plain.size()), marked.size());
        Bytes again(marked.size());
        EXPECT_EQ(insert_markers(plain, position, again), again.size());
        seal_fpdu(again);
        EXPECT_EQ(to_hex(again), to_hex(marked));
    };
    check(first, 0);
    check(second, 0x1ec);
}

TEST(Marker, PointsToItsFpduHoweverTheStreamFell) {
    std::mt19937 random(1);
    std::uint64_t position = 0;
    Bytes stream;
    std::vector<std::pair<std::uint64_t, Bytes>> fpdus;  // where each begins, without markers
    for (int count = 0; count < 300; ++count) {
        Bytes plain(fpdu_size(random() % 1500));
        for (auto& octet : plain) octet = static_cast<std::byte>(random());
        Bytes marked(marked_size(position, plain.size()));
        ASSERT_EQ(insert_markers(plain, position, marked), marked.size());
        fpdus.emplace_back(position, plain);
        stream.insert(stream.end(), marked.begin(), marked.end());
        position += marked.size();
    }
    for (const auto& [begins, plain] : fpdus) {
        auto length_at = begins % 512 == 0 ? begins + 4 : begins;
        auto size = marked_size(begins, plain.size());
        for (auto at = begins; at < begins + size; ++at) {
            if (at % 512 != 0) continue;
            auto marker = decode<Marker>(ConstBuffer(stream).subspan(at));
            EXPECT_EQ(marker->fpdu_pointer, at < length_at ? 0 : at - length_at);
        }
        Bytes back(plain.size());
        auto read = remove_markers(ConstBuffer(stream).subspan(begins, size), begins, back);
        ASSERT_TRUE(read);
        EXPECT_EQ(*read, plain.size());
        EXPECT_EQ(back, plain);
    }
}

TEST(Marker, ThatPointsElsewhereIsRefused) {
    auto octets = golden("iwarp/fpdu_rfc5044_figure6.hex");
    Bytes plain(octets.size());
    octets[23] = std::byte{0x18};
    EXPECT_EQ(remove_markers(octets, 0x1ec, plain).error(),
              (Error{.code = Code::malformed, .where = 20}));
    octets[23] = std::byte{0x17};  // 0x14, were the two reserved bits not to be ignored
    EXPECT_TRUE(remove_markers(octets, 0x1ec, plain));
    EXPECT_EQ(remove_markers(ConstBuffer(octets).first(22), 0x1ec, plain).error().code,
              Code::truncated);
}

TEST(Marker, OfTheLargestFpduStillReachesBack) {
    for (std::uint64_t start = 0; start < 512; start += 4) {
        auto size = marked_size(start, fpdu_size(ulpdu_limit));
        EXPECT_LE(size, 0x10000u) << start;
    }
}

}  // namespace
}  // namespace weft::wire
