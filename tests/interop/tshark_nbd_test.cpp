// SPDX-License-Identifier: Apache-2.0
// Wireshark reads our NBD requests and simple replies.
//
// Found by trying tshark 4.0: its dissector is a heuristic on any port and knows NBD as it was
// before 2010. READ, WRITE and DISC without flags and simple replies it names; the handshake, every
// other command, command flags and structured replies it leaves as plain data. For those the golden
// bytes of other programs stand alone (src/wire/nbd_test.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/nbd_messages.hpp"
#include "support/tshark.hpp"

namespace weft::test {
namespace {

using namespace wire::nbd;
using testing::IsEmpty;

constexpr std::uint16_t nbd_port = 10809;

Bytes ramp(std::size_t size) {
    Bytes octets(size);
    for (std::size_t i = 0; i < size; ++i) octets[i] = static_cast<std::byte>(i);
    return octets;
}

/// tshark's way to write octets.
std::string with_colons(ConstBuffer octets) {
    auto text = to_hex(octets);
    std::ranges::replace(text, ' ', ':');
    return text;
}

void expect_request(const DissectedFrame& frame, const RequestHeader& request) {
    EXPECT_EQ(frame.number("nbd.magic"), request_magic);
    EXPECT_EQ(frame.number("nbd.type"), static_cast<std::uint64_t>(request.command));
    EXPECT_EQ(frame.number("nbd.handle"), request.cookie);
    EXPECT_EQ(frame.number("nbd.from"), request.offset);
    EXPECT_EQ(frame.number("nbd.len"), request.length);
}

void expect_reply(const DissectedFrame& frame, const SimpleReply& reply, std::size_t request) {
    EXPECT_EQ(frame.number("nbd.magic"), simple_reply_magic);
    EXPECT_EQ(frame.number("nbd.error"), static_cast<std::uint64_t>(reply.error));
    EXPECT_EQ(frame.number("nbd.handle"), reply.cookie);
    EXPECT_EQ(frame.number("nbd.response_to"), request);
}

class TsharkNbd : public testing::Test {
protected:
    Capture capture;
    TcpConversation talk{capture, {.server_port = nbd_port}};
};

TEST_F(TsharkNbd, ReadsAReadAndItsReply) {
    RequestHeader request{0, Command::read, 0x1122334455667788, 0x99aabbccdd00, 64};
    SimpleReply reply{ErrorNumber::none, request.cookie};
    auto asked = talk.client_sends(encoded(request));
    auto answered = talk.server_sends(join({encoded(reply), ramp(64)}));
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), IsEmpty());
    expect_request(frame(frames, asked), request);
    expect_reply(frame(frames, answered), reply, asked);
    EXPECT_EQ(frame(frames, answered).text("nbd.data"), with_colons(ramp(64)));
}

TEST_F(TsharkNbd, ReadsAWriteAndItsReply) {
    RequestHeader request{0, Command::write, 7, 4096, 100};
    SimpleReply reply{ErrorNumber::no_space, request.cookie};
    auto asked = talk.client_sends(join({encoded(request), ramp(100)}));
    auto answered = talk.server_sends(encoded(reply));
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), IsEmpty());
    expect_request(frame(frames, asked), request);
    EXPECT_EQ(frame(frames, asked).text("nbd.data"), with_colons(ramp(100)));
    expect_reply(frame(frames, answered), reply, asked);
}

TEST_F(TsharkNbd, ReadsEveryErrorNumber) {
    std::vector<std::size_t> asked, answered;
    const ErrorNumber errors[] = {
        ErrorNumber::none,      ErrorNumber::not_permitted, ErrorNumber::io,
        ErrorNumber::no_memory, ErrorNumber::invalid,       ErrorNumber::no_space,
        ErrorNumber::overflow,  ErrorNumber::not_supported, ErrorNumber::shutdown};
    // Of writes, since this dissector waits for a read's payload even after an error.
    for (auto error : errors) {
        auto cookie = 1000 + static_cast<std::uint64_t>(error);
        RequestHeader request{0, Command::write, cookie, 0, 8};
        asked.push_back(talk.client_sends(join({encoded(request), ramp(8)})));
        answered.push_back(talk.server_sends(encoded(SimpleReply{error, cookie})));
    }
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), IsEmpty());
    for (std::size_t i = 0; i < std::size(errors); ++i)
        expect_reply(frame(frames, answered[i]),
                     {errors[i], 1000 + static_cast<std::uint64_t>(errors[i])}, asked[i]);
}

TEST_F(TsharkNbd, ReadsRepliesInAnotherOrderThanTheRequests) {
    RequestHeader one{0, Command::read, 1, 0, 8}, two{0, Command::read, 2, 8, 8};
    auto asked_one = talk.client_sends(encoded(one));
    auto asked_two = talk.client_sends(encoded(two));
    auto answered_two = talk.server_sends(join({encoded(SimpleReply{{}, 2}), ramp(8)}));
    auto answered_one = talk.server_sends(join({encoded(SimpleReply{{}, 1}), ramp(8)}));
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), IsEmpty());
    expect_reply(frame(frames, answered_one), {{}, 1}, asked_one);
    expect_reply(frame(frames, answered_two), {{}, 2}, asked_two);
}

TEST_F(TsharkNbd, ReadsAGoodbye) {
    RequestHeader goodbye{.command = Command::disconnect, .cookie = 3};
    auto said = talk.client_sends(encoded(goodbye));
    talk.close();
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), IsEmpty());
    expect_request(frame(frames, said), goodbye);
}

TEST_F(TsharkNbd, FindsNothingWrongWithAWholeSession) {
    talk.server_sends(golden("nbd/greeting.hex"));
    talk.client_sends(encoded(ClientFlags{.no_zeroes = true, .fixed_newstyle = true}));
    talk.client_sends(option(Option::go, info_question("disk", {InfoType::block_size})));
    talk.server_sends(join({option_reply(Option::go, OptionReplyType::info,
                                         encoded(InfoExport{1 << 20, {.can_flush = true}})),
                            option_reply(Option::go, OptionReplyType::ack, {})}));
    RequestHeader read{0, Command::read, 5, 0, 16};
    auto asked = talk.client_sends(encoded(read));
    auto answered = talk.server_sends(join({encoded(SimpleReply{{}, 5}), ramp(16)}));
    talk.client_sends(encoded(RequestHeader{.command = Command::disconnect}));
    talk.close();
    auto frames = dissect(capture, {});
    EXPECT_THAT(complaints(frames), IsEmpty());
    expect_request(frame(frames, asked), read);
    expect_reply(frame(frames, answered), {{}, 5}, asked);
}

}  // namespace
}  // namespace weft::test
