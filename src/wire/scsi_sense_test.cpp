// SPDX-License-Identifier: Apache-2.0
#include "wire/scsi_sense.hpp"

#include <gtest/gtest.h>

#include "support/header_walk.hpp"

namespace weft::wire {
namespace {

using test::from_hex;
using test::golden;

TEST(FixedSense, IsReadAndWrittenAsOthersDo) {
    test::expect_header(
        golden("scsi/sense_fixed.hex"),
        FixedSense{.key = SenseKey::data_protect, .additional = AdditionalSense::write_protected});
    test::expect_header(golden("scsi/sense_fixed_miscompare.hex"),
                        FixedSense{.information_valid = true,
                                   .key = SenseKey::miscompare,
                                   .information = 0x1234,
                                   .additional = AdditionalSense::miscompare_during_verify});
}

TEST(DescriptorSense, IsReadAndWrittenAsOthersDo) {
    test::HeaderWalk walk("scsi/sense_descriptor.hex");
    walk.expect(DescriptorSense{.key = SenseKey::illegal_request,
                                .additional = AdditionalSense::invalid_field_in_command_block,
                                .additional_length = 20});
    walk.expect(SenseInformation{.number = 0x123456789a});
    walk.expect(SenseKeySpecificDescriptor{
        .specific = {
            .valid = true, .in_command_block = true, .bit_valid = true, .bit = 7, .pointer = 2}});
    walk.expect_end();
}

TEST(DescriptorSense, TellsWhatOnlyTheCommandExplains) {
    test::HeaderWalk walk("scsi/sense_command_specific.hex");
    walk.expect(DescriptorSense{.key = SenseKey::copy_aborted,
                                .additional = AdditionalSense::unreachable_copy_target,
                                .additional_length = 12});
    walk.expect(SenseCommandSpecific{.number = 0x123456789a});
    walk.expect_end();
}

TEST(SenseDescriptors, AreWalkedInOrder) {
    auto sense = golden("scsi/sense_descriptor.hex");
    auto descriptors = SenseDescriptors::of(sense);
    ASSERT_TRUE(descriptors);
    auto first = descriptors->next();
    ASSERT_TRUE(first && *first);
    EXPECT_EQ((*first)->type, SenseDescriptorType::information);
    auto second = descriptors->next();
    ASSERT_TRUE(second && *second);
    EXPECT_EQ((*second)->type, SenseDescriptorType::sense_key_specific);
    auto end = descriptors->next();
    ASSERT_TRUE(end);
    EXPECT_FALSE(end->has_value());
}

TEST(SenseDescriptors, AreRefusedAtEveryTruncation) {
    auto sense = golden("scsi/sense_descriptor.hex");
    for (std::size_t size = 0; size < sense.size(); ++size)
        EXPECT_EQ(SenseDescriptors::of(std::span(sense).first(size)).error().code, Code::truncated);
}

TEST(SenseDescriptors, AreRefusedIfOneLeadsBeyondTheEnd) {
    auto sense = golden("scsi/sense_descriptor.hex");
    sense[9] = std::byte{19};
    auto descriptors = SenseDescriptors::of(sense);
    ASSERT_TRUE(descriptors);
    EXPECT_EQ(descriptors->next().error().code, Code::truncated);
}

TEST(SenseSummary, IsTheSameFromBothFormats) {
    auto summary = summarize_sense(golden("scsi/sense_fixed_miscompare.hex"));
    ASSERT_TRUE(summary);
    EXPECT_EQ(*summary, (SenseSummary{.key = SenseKey::miscompare,
                                      .additional = AdditionalSense::miscompare_during_verify,
                                      .information = 0x1234}));
    summary = summarize_sense(golden("scsi/sense_descriptor.hex"));
    ASSERT_TRUE(summary);
    EXPECT_EQ(*summary, (SenseSummary{.key = SenseKey::illegal_request,
                                      .additional = AdditionalSense::invalid_field_in_command_block,
                                      .information = 0x123456789a}));
}

TEST(SenseSummary, KnowsDeferredErrors) {
    auto sense = golden("scsi/sense_fixed.hex");
    sense[0] = std::byte{0x71};
    EXPECT_TRUE(summarize_sense(sense)->deferred);
    sense = golden("scsi/sense_descriptor.hex");
    sense[0] = std::byte{0x73};
    EXPECT_TRUE(summarize_sense(sense)->deferred);
}

TEST(SenseSummary, NeedsNoMoreThanKeyAndCode) {
    auto sense = golden("scsi/sense_fixed.hex");
    for (std::size_t size = 0; size < sense.size(); ++size)
        EXPECT_EQ(summarize_sense(std::span(sense).first(size)).has_value(), size >= 14) << size;
}

TEST(SenseSummary, IsRefusedForAnUnknownFormat) {
    EXPECT_EQ(summarize_sense(from_hex("7f 00")).error().code, Code::malformed);
    EXPECT_EQ(summarize_sense(from_hex("00 00")).error().code, Code::malformed);
}

}  // namespace
}  // namespace weft::wire
