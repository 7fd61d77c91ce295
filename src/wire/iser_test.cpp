// SPDX-License-Identifier: Apache-2.0
#include "wire/iser.hpp"

#include <gtest/gtest.h>

#include "support/header_walk.hpp"
#include "wire/iscsi.hpp"

namespace weft::wire {
namespace {

using test::expect_header;
using test::golden;

TEST(IserControlHeader, AdvertisesABufferToWriteTo) {
    test::HeaderWalk walk("iser/control_read.hex");
    walk.expect(
        IserControlHeader{.read_buffer_valid = true,
                          .read_buffer = {.steering_tag = SteeringTag{0x19e4d301},
                                          .base_offset = TaggedOffset{0xffff88805f906700}}});
    auto command = decode<ScsiCommandPdu>(walk.rest());
    ASSERT_TRUE(command);
    EXPECT_TRUE(command->read && !command->write);
    EXPECT_EQ(command->expected_transfer_length, 36u);
}

TEST(IserControlHeader, AdvertisesABufferToReadFrom) {
    test::HeaderWalk walk("iser/control_write.hex");
    walk.expect(
        IserControlHeader{.write_buffer_valid = true,
                          .write_buffer = {.steering_tag = SteeringTag{0xccee2b0e},
                                           .base_offset = TaggedOffset{0xff20904dc6183000}}});
    auto command = decode<ScsiCommandPdu>(walk.rest());
    ASSERT_TRUE(command);
    EXPECT_TRUE(command->write && !command->read);
    EXPECT_EQ(command->data_length, 8192u);
}

TEST(IserControlHeader, AdvertisesNothingInAResponse) {
    test::HeaderWalk walk("iser/control_plain.hex");
    walk.expect(IserControlHeader{});
    EXPECT_TRUE(decode<ScsiResponsePdu>(walk.rest()));
}

TEST(IserHello, IsReadAndWrittenAsTheRfcDrawsIt) {
    expect_header(golden("iser/hello.hex"), IserHello{.inbound_reads = 4});
    expect_header(golden("iser/hello_version_1.hex"),
                  IserHello{.version_max = 1, .version_min = 1, .inbound_reads = 128});
}

TEST(IserHelloReply, IsReadAndWrittenAsTheRfcDrawsIt) {
    expect_header(golden("iser/hello_reply.hex"),
                  IserHelloReply{.version_max = 1, .version_current = 1, .outbound_reads = 16});
    expect_header(golden("iser/hello_reply_rejected.hex"), IserHelloReply{.rejected = true});
}

TEST(IserMessageType, IsInTheFirstOctet) {
    EXPECT_EQ(iser_message_type(golden("iser/control_write.hex")[0]), IserMessageType::control);
    EXPECT_EQ(iser_message_type(golden("iser/hello.hex")[0]), IserMessageType::hello);
    EXPECT_EQ(iser_message_type(golden("iser/hello_reply_rejected.hex")[0]),
              IserMessageType::hello_reply);
    EXPECT_EQ(decode<IserHello>(golden("iser/hello_reply.hex")).error().code, Code::malformed);
    EXPECT_EQ(decode<IserControlHeader>(golden("iser/hello.hex")).error().code, Code::malformed);
}

TEST(IserPrivateData, TellsWhatASideCannotDo) {
    expect_header(golden("iser/private_data_libiscsi.hex"),
                  IserPrivateData{.zero_based_addresses_unsupported = true,
                                  .send_with_invalidate_unsupported = true});
    expect_header(golden("iser/private_data_linux.hex"),
                  IserPrivateData{.zero_based_addresses_unsupported = true});
}

}  // namespace
}  // namespace weft::wire
