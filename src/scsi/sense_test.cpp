// SPDX-License-Identifier: Apache-2.0
#include "scsi/sense.hpp"

#include <gtest/gtest.h>

namespace weft::scsi {
namespace {

using namespace wire;

std::string hex(const SenseOctets& octets) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (auto octet : octets) {
        text += digits[std::to_integer<unsigned>(octet) >> 4];
        text += digits[std::to_integer<unsigned>(octet) & 15];
    }
    return text;
}

TEST(Sense, OfABadFieldPointsAtItInFixedFormat) {
    // As tgtd sends it for READ(10) with RDPROTECT, but for the field pointer.
    EXPECT_EQ(hex(encode_sense(bad_field(1, 7), false)),
              "70000500"
              "0000000a"
              "00000000"
              "2400"
              "00cf0001");
}

TEST(Sense, OfAMiscompareTellsWhere) {
    EXPECT_EQ(hex(encode_sense(miscompare(0x1e5), false)),
              "f0000e00"
              "0001e50a"
              "00000000"
              "1d00"
              "00000000");
}

TEST(Sense, InDescriptorFormatHoldsSixtyFourBits) {
    const auto octets = encode_sense(out_of_range(0x123456789abcdef0), true);
    EXPECT_EQ(hex(octets),
              "72052100"
              "0000000c"
              "000a8000"
              "123456789abcdef0");
    const auto fixed_octets = encode_sense(out_of_range(0x123456789abcdef0), false);
    EXPECT_EQ(hex(fixed_octets).substr(0, 2), "70") << "what does not fit is not valid";
}

TEST(Sense, OfAnErasureTellsItsProgress) {
    const auto octets =
        encode_sense(in_progress(AdditionalSense::sanitize_in_progress, 0x8000), false);
    EXPECT_EQ(hex(octets),
              "70000200"
              "0000000a"
              "00000000"
              "041b"
              "00808000");
}

TEST(Sense, OfADeviceThatFailsDependsOnWhatWasAsked) {
    const Error failed{.code = Code::io_failed};
    EXPECT_EQ(sense_of(failed, true, 7).additional, AdditionalSense::write_error);
    EXPECT_EQ(sense_of(failed, false, 7).additional, AdditionalSense::unrecovered_read_error);
    EXPECT_EQ(sense_of(failed, false, 7).information, 7u);
    EXPECT_EQ(sense_of({.code = Code::exhausted}, true, 0).key, SenseKey::data_protect);
    EXPECT_EQ(sense_of({.code = Code::malformed}, true, 0).key, SenseKey::hardware_error);
}

}  // namespace
}  // namespace weft::scsi
