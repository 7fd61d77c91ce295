// SPDX-License-Identifier: Apache-2.0
#include "iscsi/iser_message.hpp"

#include <gtest/gtest.h>

#include "support/golden.hpp"

namespace weft::iscsi::iser {
namespace {

using test::Bytes;

/// A write of 64 KiB by Linux with 8 KiB sent along, as captured, but for the data.
Bytes linux_write() {
    return test::from_hex(
        "18000000ccee2b0eff20904dc6183000000000000000000000000000"
        "01a10000000020000000000000000000150000000001000000000013fa9a614f"
        "2a000000000000008000000000000000");
}

TEST(IserMessage, IsReadAsLinuxSendsIt) {
    auto octets = linux_write();
    octets.resize(octets.size() + 8192, std::byte{7});
    auto message = read_message(octets);
    ASSERT_TRUE(message);
    EXPECT_TRUE(message->advertised.write_buffer_valid);
    EXPECT_FALSE(message->advertised.read_buffer_valid);
    EXPECT_EQ(message->advertised.write_buffer.steering_tag, SteeringTag{0xccee2b0e});
    EXPECT_EQ(message->advertised.write_buffer.base_offset, wire::TaggedOffset{0xff20904dc6183000});
    EXPECT_EQ(message->pdu.basic.opcode, wire::IscsiOpcode::scsi_command);
    EXPECT_EQ(message->pdu.data.size(), 8192u);
    EXPECT_EQ(message->pdu.data.front(), std::byte{7});
    EXPECT_EQ(decode<wire::ScsiCommandPdu>(message->pdu.header)->expected_transfer_length, 65536u);
}

TEST(IserMessage, MayBePaddedOrNot) {
    for (std::size_t padding : {0u, 1u, 100u}) {
        auto octets = linux_write();
        octets.resize(octets.size() + 8192 + padding);
        auto message = read_message(octets);
        ASSERT_TRUE(message);
        EXPECT_EQ(message->pdu.data.size(), 8192u);
    }
}

TEST(IserMessage, MaySayThatDataGoesAlongAndHaveNone) {
    auto octets = linux_write();
    auto message = read_message(octets);
    ASSERT_TRUE(message) << "as libiscsi 1.19 does it";
    EXPECT_EQ(message->pdu.basic.data_length, 0u);
    EXPECT_TRUE(message->pdu.data.empty());
    EXPECT_EQ(decode<wire::ScsiCommandPdu>(message->pdu.header)->data_length, 0u);
}

TEST(IserMessage, IsRefusedWhereItEndsTooEarly) {
    auto whole = linux_write();
    whole.resize(whole.size() + 8192);
    for (std::size_t size : {0u, 27u, 28u, 75u, 77u, 8267u}) {
        auto octets = whole;
        octets.resize(size);
        EXPECT_FALSE(read_message(octets)) << size;
    }
    auto unadvertised = linux_write();
    unadvertised[0] = std::byte{0x10};
    EXPECT_FALSE(read_message(unadvertised)) << "its data is nowhere";
    auto ping = linux_write();
    ping[wire::iser_header_size] = std::byte{0x40};
    EXPECT_FALSE(read_message(ping)) << "only a command is excused";
}

TEST(IserMessage, IsRefusedIfItIsAnother) {
    auto octets = linux_write();
    octets[0] = std::byte{0x20};  // a Hello
    EXPECT_FALSE(read_message(octets));
}

TEST(IserMessage, IsWrittenWithLengthAndNumbersInTheirPlaces) {
    std::array<std::byte, wire::basic_header_size> header{};
    encode(wire::NopInPdu{.task_tag = wire::InitiatorTaskTag{5}}, header);
    Bytes octets(headers_size + 4, std::byte{9});
    EXPECT_EQ(write_headers({}, header, 4, octets), headers_size);
    stamp({.status_number = 1, .expected_command_number = 2, .max_command_number = 3},
          Buffer(octets).subspan(wire::iser_header_size));
    auto message = read_message(octets);
    ASSERT_TRUE(message);
    auto ping = decode<wire::NopInPdu>(message->pdu.header);
    ASSERT_TRUE(ping);
    EXPECT_EQ(ping->data_length, 4u);
    EXPECT_EQ(ping->numbers, (wire::TargetNumbers{1, 2, 3}));
    EXPECT_EQ(target_numbers(message->pdu.header), (wire::TargetNumbers{1, 2, 3}));
}

}  // namespace
}  // namespace weft::iscsi::iser
