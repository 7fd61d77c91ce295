// SPDX-License-Identifier: Apache-2.0
// What a disk returns and is sent: identity, capacity and settings, as LIO, tgtd and sg3_utils
// write or read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/header_walk.hpp"
#include "wire/scsi_capacity.hpp"
#include "wire/scsi_inquiry.hpp"
#include "wire/scsi_mode.hpp"
#include "wire/scsi_mode_pages.hpp"
#include "wire/scsi_vital_product_data.hpp"

namespace weft::wire {
namespace {

using test::golden;
using test::HeaderWalk;

TEST(StandardInquiryData, IsReadAndWrittenAsLioDoes) {
    HeaderWalk walk("scsi/inquiry.hex");
    walk.expect(StandardInquiryData{.version = 6,
                                    .additional_length = 91,
                                    .embedded_controller = true,
                                    .asymmetric_access = AsymmetricAccess::implicit_and_explicit,
                                    .third_party_copy = true,
                                    .command_queue = true,
                                    .vendor = left_aligned<8>("LIO-ORG"),
                                    .product = left_aligned<16>("RAMDISK-MCP"),
                                    .revision = left_aligned<4>("4.0")});
    walk.expect(
        StandardInquiryVersions{.versions = {VersionDescriptor::sam_5, VersionDescriptor::iscsi,
                                             VersionDescriptor::spc_4, VersionDescriptor::sbc_3}});
    EXPECT_EQ(walk.rest().size(), 22u) << "reserved";
}

TEST(StandardInquiryData, IsRefusedInAnotherResponseFormat) {
    auto octets = golden("scsi/inquiry.hex");
    octets[3] = std::byte{1};
    EXPECT_EQ(decode<StandardInquiryData>(octets).error(),
              (Error{.code = Code::malformed, .where = 3}));
}

TEST(LeftAligned, CutsWhatIsTooLong) {
    EXPECT_EQ(left_aligned<4>("abcdef"), (Octets<4>{'a', 'b', 'c', 'd'}));
    EXPECT_EQ(left_aligned<4>("ab"), (Octets<4>{'a', 'b', ' ', ' '}));
}

TEST(VitalProductPages, BeginAlike) {
    HeaderWalk pages("scsi/vpd_supported_pages.hex");
    pages.expect(VitalProductPageStart{.page = VitalProductPage::supported_pages, .length = 8});
    EXPECT_EQ(test::to_hex(pages.rest()), "00 80 83 86 b0 b1 b2 b3");

    HeaderWalk serial("scsi/vpd_unit_serial_number.hex");
    serial.expect(VitalProductPageStart{.page = VitalProductPage::unit_serial_number, .length = 8});
    EXPECT_EQ(text_of(serial.rest()).substr(0, 7), "lab0001");
}

TEST(Designators, AreWalkedAsLioListsThem) {
    HeaderWalk walk("scsi/vpd_device_identification.hex");
    walk.expect(
        VitalProductPageStart{.page = VitalProductPage::device_identification, .length = 144});
    Designators designators(walk.rest());
    std::vector<DesignatorType> types;
    std::string port_name;
    for (auto found = designators.next(); found && *found; found = designators.next()) {
        auto& start = (*found)->start;
        types.push_back(start.type);
        if (start.type == DesignatorType::scsi_name &&
            start.association == DesignatorAssociation::target_port) {
            EXPECT_EQ(start.protocol, iscsi_protocol_identifier);
            EXPECT_TRUE(start.protocol_valid);
            EXPECT_EQ(start.code_set, CodeSet::utf_8);
            port_name = text_of((*found)->value);
        }
    }
    EXPECT_THAT(types, testing::ElementsAre(
                           DesignatorType::network_address_authority, DesignatorType::t10_vendor,
                           DesignatorType::relative_target_port, DesignatorType::target_port_group,
                           DesignatorType::logical_unit_group, DesignatorType::scsi_name,
                           DesignatorType::scsi_name));
    EXPECT_THAT(port_name, testing::StartsWith("iqn.2025-01.lab.kvm:lio,t,0x0001"));
}

TEST(Designators, AreWrittenAsLioDoes) {
    HeaderWalk walk("scsi/vpd_device_identification.hex");
    walk.take(wire_size<VitalProductPageStart>());
    walk.expect(DesignatorStart{.code_set = CodeSet::binary,
                                .type = DesignatorType::network_address_authority,
                                .length = 16});
    walk.take(16 + 4 + 28);
    walk.expect(DesignatorStart{.protocol = iscsi_protocol_identifier,
                                .code_set = CodeSet::binary,
                                .protocol_valid = true,
                                .association = DesignatorAssociation::target_port,
                                .type = DesignatorType::relative_target_port,
                                .length = 4});
}

TEST(Designators, AreRefusedIfOneLeadsBeyondTheEnd) {
    auto page = golden("scsi/vpd_device_identification.hex");
    for (std::size_t size : {5, 8, 23}) {
        Designators designators(ConstBuffer(page).subspan(4, size - 4));
        EXPECT_EQ(designators.next().error().code, Code::truncated) << size;
        EXPECT_FALSE(designators.next()) << "the error repeats";
    }
}

TEST(BlockLimits, AreReadAndWrittenAsOthersDo) {
    HeaderWalk walk("scsi/vpd_block_limits.hex");
    walk.expect(VitalProductPageStart{.page = VitalProductPage::block_limits, .length = 60});
    walk.expect(BlockLimits{.write_same_nonzero = true,
                            .max_compare_and_write = 8,
                            .optimal_transfer_granularity = 16,
                            .max_transfer = 512,
                            .optimal_transfer = 256,
                            .max_prefetch = 2048,
                            .max_unmap_blocks = 65536,
                            .max_unmap_descriptors = 64,
                            .optimal_unmap_granularity = 2048,
                            .unmap_alignment_valid = true,
                            .unmap_alignment = 7,
                            .max_write_same = 65536,
                            .max_atomic_transfer = 128,
                            .atomic_alignment = 8,
                            .atomic_granularity = 4,
                            .max_atomic_transfer_with_boundary = 64,
                            .max_atomic_boundary = 32});
    walk.expect_end();

    HeaderWalk tgt("scsi/vpd_block_limits_tgt.hex");
    tgt.expect(VitalProductPageStart{.page = VitalProductPage::block_limits, .length = 60});
    tgt.expect(BlockLimits{.max_compare_and_write = 128,
                           .max_unmap_blocks = 0xffffffff,
                           .max_unmap_descriptors = 0xffffffff});
    tgt.expect_end();
}

TEST(VitalProductPages, AreReadAndWrittenAsOthersDo) {
    HeaderWalk characteristics("scsi/vpd_block_device_characteristics.hex");
    characteristics.expect(VitalProductPageStart{
        .page = VitalProductPage::block_device_characteristics, .length = 60});
    characteristics.expect(BlockDeviceCharacteristics{.rotation_rate = 7200,
                                                      .product_type = 1,
                                                      .write_after_block_erase = 1,
                                                      .write_after_cryptographic_erase = 1,
                                                      .form_factor = 3,
                                                      .zoned = 2,
                                                      .force_unit_access_behaves = true});
    characteristics.expect_end();

    HeaderWalk provisioning("scsi/vpd_logical_block_provisioning.hex");
    provisioning.expect(
        VitalProductPageStart{.page = VitalProductPage::logical_block_provisioning, .length = 4});
    provisioning.expect(LogicalBlockProvisioning{.threshold_exponent = 5,
                                                 .unmap = true,
                                                 .write_same_16 = true,
                                                 .write_same_10 = true,
                                                 .reads_zero = 1,
                                                 .anchor_supported = true,
                                                 .minimum_percentage = 1,
                                                 .type = ProvisioningType::thin,
                                                 .threshold_percentage = 20});
    provisioning.expect_end();

    HeaderWalk extended("scsi/vpd_extended_inquiry.hex");
    extended.expect(
        VitalProductPageStart{.page = VitalProductPage::extended_inquiry, .length = 60});
    extended.expect(ExtendedInquiryData{.unit_attention_sense_data = true,
                                        .head_of_queue = true,
                                        .ordered = true,
                                        .simple = true,
                                        .volatile_cache = true,
                                        .luns_changed_told_once = true,
                                        .extended_self_test_minutes = 10,
                                        .max_sense_length = 96});
    extended.expect_end();
}

TEST(Capacity, IsReadAndWrittenAsOthersDo) {
    HeaderWalk walk("scsi/capacity.hex");
    walk.expect(ReadCapacity10{});
    walk.expect(Capacity10{.last_block = 204799, .block_bytes = 512});
    walk.expect(ReadCapacity16{.allocation_length = 32});
    walk.expect(Capacity16{.last_block = 204799,
                           .block_bytes = 512,
                           .blocks_per_physical_exponent = 3,
                           .provisioning_management = true,
                           .unmapped_reads_zero = true});
    walk.expect(
        GetLbaStatus{.first_block = 0x123456789a, .allocation_length = 0x1018, .report_type = 2});
    walk.expect(LbaStatusHeader{.length_after = 36});
    walk.expect(LbaStatusDescriptor{.first_block = 0x123456789a,
                                    .block_count = 4096,
                                    .provisioning = Provisioning::deallocated});
    walk.expect(LbaStatusDescriptor{
        .first_block = 0x123456889a, .block_count = 32, .provisioning = Provisioning::anchored});
    walk.expect(Unmap{.anchor = true, .group_number = 3, .parameter_length = 40});
    walk.expect(UnmapListHeader{.length_after = 38, .descriptors_length = 32});
    walk.expect(UnmapDescriptor{.first_block = 0x12345678, .block_count = 8});
    walk.expect(UnmapDescriptor{.first_block = 0x20, .block_count = 16});
    walk.expect_end();
}

TEST(ModePages, AreWalkedAsTgtdListsThem) {
    HeaderWalk walk("scsi/mode_sense_6_all_pages.hex");
    walk.expect(ModeHeader6{
        .data_length = 105, .device = {.cache_control = true}, .block_descriptors_length = 8});
    walk.expect(ShortBlockDescriptor{.block_bytes = 512});
    ModePages pages(walk.rest());
    std::vector<ModePageCode> codes;
    for (auto page = pages.next(); page && *page; page = pages.next()) {
        codes.push_back((*page)->code);
        auto whole = (*page)->whole;
        if ((*page)->subpage != 0) {
            EXPECT_EQ(whole.size(), 32u);
        } else if ((*page)->code == ModePageCode::caching) {
            test::expect_header(whole, CachingPage{.discontinuity = true,
                                                   .write_cache = true,
                                                   .disable_prefetch_length = 0xffff,
                                                   .maximum_prefetch = 0xffff,
                                                   .maximum_prefetch_ceiling = 0xffff,
                                                   .force_sequential_write = true,
                                                   .cache_segments = 20});
        } else if ((*page)->code == ModePageCode::control) {
            test::expect_header(whole, ControlPage{.global_logging = true,
                                                   .queue_algorithm = 1,
                                                   .busy_timeout_period = 0,
                                                   .self_test_seconds = 0x0200});
        } else if ((*page)->code == ModePageCode::informational_exceptions) {
            test::expect_header(whole, InformationalExceptionsPage{.exceptions_disabled = true});
        }
    }
    EXPECT_THAT(
        codes, testing::ElementsAre(ModePageCode{0}, ModePageCode::disconnect_reconnect,
                                    ModePageCode::caching, ModePageCode::control,
                                    ModePageCode::control, ModePageCode::informational_exceptions));
}

TEST(ModePages, AreRefusedIfOneLeadsBeyondTheEnd) {
    for (auto text : {"08", "08 12 00", "4a 01 00", "4a 01 00 1c 00"}) {
        auto octets = test::from_hex(text);
        EXPECT_EQ(ModePages(octets).next().error().code, Code::truncated) << text;
    }
}

TEST(ModeHeader10, AnnouncesLongBlockDescriptors) {
    HeaderWalk walk("scsi/mode_header_10.hex");
    walk.expect(ModeHeader10{.data_length = 26,
                             .device = {.write_protected = true, .cache_control = true},
                             .long_block_descriptors = true,
                             .block_descriptors_length = 16});
    walk.expect(LongBlockDescriptor{.block_count = 1ull << 32, .block_bytes = 4096});
    walk.expect_end();
}

}  // namespace
}  // namespace weft::wire
