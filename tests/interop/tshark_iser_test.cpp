// SPDX-License-Identifier: Apache-2.0
// iSER messages read by Wireshark. Its iSER dissector listens to InfiniBand only, so each message
// is shown twice: in an iWARP Send, where tshark sees the segment and the octets it carries, and in
// a RoCE packet made for this purpose, where it takes the iSER header and the iSCSI PDU apart.
#include "interop/iscsi_exchange.hpp"
#include "interop/iwarp_exchange.hpp"
#include "wire/iser.hpp"

namespace weft::wire {
namespace {

constexpr std::uint16_t roce_ethertype = 0x8915;
constexpr std::size_t least_dissected = iser_header_size + basic_header_size;

/// An InfiniBand "reliable connection, send only" between queue pairs 1 and 2 of the hosts of the
/// same numbers. The CRC at its end is not checked.
Bytes roce_send(std::uint8_t from, std::uint8_t to, ConstBuffer payload) {
    Bytes padding(round_up(payload.size(), 4) - payload.size());
    auto route = from_hex(
        "60000000 0000 1b ff fe800000000000000000000000000000"
        "fe800000000000000000000000000000");
    store_big_endian<2>(12 + payload.size() + padding.size() + 4, route.data() + 4);
    route[23] = std::byte{from};
    route[39] = std::byte{to};
    auto transport = from_hex("04 40 ffff 00 000000 00 000001");
    transport[1] |= static_cast<std::byte>(padding.size() << 4);
    transport[7] = std::byte{to};
    return join({test::ethernet_header(from, to, roce_ethertype), route, transport, payload,
                 padding, Bytes(4)});
}

/// Without the connection manager's messages the dissector must be told what the payload is.
const test::TsharkOptions payload_is_iser{.decode_as = {"infiniband,iser"}};

DissectedFrame seen_over_roce(ConstBuffer message) {
    Capture capture;
    auto number = capture.add(roce_send(1, 2, message));
    auto frames = dissect(capture, payload_is_iser);
    EXPECT_THAT(complaints(frames), IsEmpty());
    return test::frame(frames, number);
}

const Bytes command_message = join(
    {encoded(IserControlHeader{.write_buffer_valid = true,
                               .read_buffer_valid = true,
                               .write_buffer = {.steering_tag = SteeringTag{0x01020304},
                                                .base_offset = TaggedOffset{0x1112131415161718}},
                               .read_buffer = {.steering_tag = SteeringTag{0x21222324},
                                               .base_offset = TaggedOffset{0x3132333435363738}}}),
     encoded(ScsiCommandPdu{.final = true,
                            .read = true,
                            .attribute = TaskAttribute::simple,
                            .task_tag = InitiatorTaskTag{0x0a0b0c0d},
                            .expected_transfer_length = 512,
                            .command_block = {0x28, 0, 0, 0, 0, 0, 0, 0, 1}})});

TEST(IserAsTsharkSeesIt, ControlMessage) {
    auto frame = seen_over_roce(command_message);
    expect_fields(frame, {{"iser.flags", 0x1c},
                          {"iser.flags.opcode", 1},
                          {"iser.flags.wsv", 1},
                          {"iser.flags.rsv", 1},
                          {"iser.write_stag", 0x01020304},
                          {"iser.write_base_offset", 0x1112131415161718},
                          {"iser.read_stag", 0x21222324},
                          {"iser.read_base_offset", 0x3132333435363738},
                          {"iscsi.opcode", 0x01},
                          {"iscsi.initiatortasktag", 0x0a0b0c0d},
                          {"scsi_sbc.opcode", 0x28}});
}

/// The dissector looks at nothing shorter than a control message, so these are filled with zeroes.
template <class Message>
Bytes filled(const Message& message) {
    auto octets = join({encoded(message)});
    octets.resize(least_dissected);
    return octets;
}

TEST(IserAsTsharkSeesIt, HelloMessages) {
    auto hello = seen_over_roce(filled(IserHello{.inbound_reads = 0x1234}));
    expect_fields(hello, {{"iser.flags.opcode", 2}, {"iser.ird", 0x1234}});
    auto reply = seen_over_roce(filled(IserHelloReply{.rejected = true, .outbound_reads = 0x5678}));
    expect_fields(reply, {{"iser.flags.opcode", 3}, {"iser.flags.rej", 1}, {"iser.ord", 0x5678}});
}

TEST(IserAsTsharkSeesIt, NothingOfAHelloOfAnotherVersion) {
    auto hello = seen_over_roce(filled(IserHello{.version_max = 1, .version_min = 1}));
    EXPECT_FALSE(hello.has("iser.ird")) << "otherwise the version is not in its place";
}

TEST(IserAsTsharkSeesIt, MessagesOverIwarp) {
    Capture capture;
    TcpConversation talk(capture, {.server_port = iscsi_port});
    auto private_data = encoded(IserPrivateData{.zero_based_addresses_unsupported = true});
    MpaTerms terms{.checksum = true, .revision = 1};
    auto request = talk.client_sends(
        mpa_frame<MpaRequest>(terms, {.enhanced = {}, .application = private_data}));
    talk.server_sends(mpa_frame<MpaReply>(terms, {.enhanced = {}, .application = private_data}));

    UntaggedSegment segment{.last = true, .opcode = RdmapOpcode::send};
    auto send =
        talk.client_sends(fpdu_of(join({encoded(segment), command_message}), Checksum::present));
    UntaggedSegment answer{.last = true,
                           .opcode = RdmapOpcode::send_invalidate,
                           .invalidate = SteeringTag{0x21222324}};
    auto response = join({encoded(IserControlHeader{}),
                          encoded(ScsiResponsePdu{.task_tag = InitiatorTaskTag{0x0a0b0c0d}})});
    auto send_invalidate =
        talk.server_sends(fpdu_of(join({encoded(answer), response}), Checksum::present));

    // The dissector for RPC claims every Send it is offered, so it must not be asked.
    auto frames = dissect(capture, plain_payload);
    EXPECT_THAT(complaints(frames), IsEmpty());
    EXPECT_EQ(test::frame(frames, request).text("iwarp_mpa.privatedata"), "80:00:00:00");
    expect_segment(test::frame(frames, send), segment);
    EXPECT_EQ(test::frame(frames, send).number("data.len"), command_message.size());
    expect_segment(test::frame(frames, send_invalidate), answer);
}

}  // namespace
}  // namespace weft::wire
