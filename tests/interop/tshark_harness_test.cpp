// SPDX-License-Identifier: Apache-2.0
// The harness itself: what it writes, tshark reads without a complaint, and what is wrong, tshark
// does complain about. Without the second half every other test here would prove nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "support/tshark.hpp"

namespace weft::test {
namespace {

Bytes text(std::string_view letters) {
    auto octets = bytes_of(letters);
    return Bytes(octets.begin(), octets.end());
}

class TsharkOver : public testing::TestWithParam<IpVersion> {};

TEST_P(TsharkOver, ReadsAConversationWithoutComplaint) {
    Capture capture;
    TcpConversation talk(capture, {.ip_version = GetParam(), .server_port = 80});
    talk.client_sends(text("GET /a HTTP/1.1\r\n"));
    auto request = talk.client_sends(text("Host: elm\r\n\r\n"));
    Bytes body(70'000, std::byte{'x'});
    auto answer =
        talk.server_sends(join({text("HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n"), body}));
    talk.close();

    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), testing::IsEmpty());
    EXPECT_EQ(frame(frames, request).text("http.host"), "elm");
    EXPECT_EQ(frame(frames, answer).number("http.content_length_header"), 70'000u);
    EXPECT_EQ(frame(frames, answer).number("tcp.checksum.status"), 1u) << "1 is good";
}
INSTANTIATE_TEST_SUITE_P(BothIpVersions, TsharkOver, testing::Values(IpVersion::v4, IpVersion::v6));

TEST(Tshark, ComplainsAboutAWrongChecksum) {
    Capture good;
    TcpConversation talk(good, {.server_port = 9});
    auto number = talk.client_sends(text("spoilt"));
    Capture spoilt;
    for (std::size_t index = 0; index < good.packets().size(); ++index) {
        auto octets = good.packets()[index].octets;
        if (index + 1 == number) octets.back() ^= std::byte{1};
        spoilt.add(octets);
    }
    auto found = complaints(dissect(spoilt, {}));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(found[0], testing::HasSubstr("Bad checksum"));
}

TEST(Tshark, ComplainsAboutAMalformedMessage) {
    Capture capture;
    TcpConversation talk(capture, {.server_port = 179});
    // A BGP OPEN whose length field (19) leaves no room for the fields every OPEN has.
    talk.client_sends(from_hex("ffffffffffffffffffffffffffffffff 0013 01"));
    EXPECT_THAT(complaints(dissect(capture, {})), testing::Not(testing::IsEmpty()));
}

TEST(Tshark, ComplainsWithoutNamingAField) {
    Capture capture;
    TcpConversation talk(capture, {.server_port = 7174});
    // An MPA request of revision 7: the dissector remarks on the frame, not on the field.
    talk.client_sends(from_hex("4d504120494420526571204672616d65 00 07 0000"));
    auto found = complaints(dissect(capture, {}));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_THAT(found[0], testing::HasSubstr("Rev field is NOT set to one"));
}

TEST(Tshark, SpeaksInWordsToo) {
    Capture capture;
    TcpConversation talk(capture, {.server_port = 7});
    EXPECT_THAT(dissect_in_words(capture, {}), testing::HasSubstr("Destination Port: 7\n"));
}

TEST(Tshark, FailsLoudlyOnAFileThatIsNoCapture) {
    EXPECT_THROW(dissect_file(WEFT_GOLDEN "/no such file.pcap", {}), std::runtime_error);
}

TEST(Capture, ReadsBackWhatItSaved) {
    Capture capture;
    TcpConversation talk(capture, {.server_port = 7});
    talk.client_sends(text("hello"));
    auto path = testing::TempDir() + "/weft_capture_test.pcap";
    capture.save(path);
    auto again = Capture::load(path);
    ASSERT_EQ(again.packets().size(), capture.packets().size());
    for (std::size_t index = 0; index < again.packets().size(); ++index) {
        EXPECT_EQ(again.packets()[index].octets, capture.packets()[index].octets);
        EXPECT_EQ(again.packets()[index].time_us, capture.packets()[index].time_us);
    }
}

}  // namespace
}  // namespace weft::test
