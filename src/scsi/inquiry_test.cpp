// SPDX-License-Identifier: Apache-2.0
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;

struct InquiryCommand : test::ScsiBench {
    ConstBuffer page(VitalProductPage code, std::uint16_t allocation = 255) {
        last = run(Inquiry{.vital_product_data = true,
                           .page_code = static_cast<std::uint8_t>(code),
                           .allocation_length = allocation});
        EXPECT_TRUE(last->good());
        EXPECT_EQ(decode<VitalProductPageStart>(last->data)->page, code);
        return ConstBuffer(last->data).subspan(4);
    }
    std::unique_ptr<test::BenchTask> last;
};

TEST_F(InquiryCommand, SaysWhatTheUnitIs) {
    set_up({.product = "test disk", .removable = true});
    auto answer = run(Inquiry{.allocation_length = 260});
    ASSERT_TRUE(answer->good());
    const auto data = *decode<StandardInquiryData>(answer->data);
    EXPECT_EQ(data.qualifier, PeripheralQualifier::connected);
    EXPECT_EQ(data.version, 6);
    EXPECT_TRUE(data.removable);
    EXPECT_TRUE(data.command_queue);
    EXPECT_EQ(data.additional_length + 5u, answer->data.size());
    EXPECT_EQ(text_of(ConstBuffer(answer->data).subspan(8, 28)), "WEFT    test disk       0.1 ");
    const auto versions = *decode<StandardInquiryVersions>(ConstBuffer(answer->data).subspan(36));
    EXPECT_TRUE(std::ranges::count(versions.versions, VersionDescriptor::spc_4) == 1);
    EXPECT_TRUE(std::ranges::count(versions.versions, VersionDescriptor::sbc_3) == 1);
}

TEST_F(InquiryCommand, CutsItsAnswerAndNothingElse) {
    set_up();
    const auto whole = run(Inquiry{.allocation_length = 512})->data;
    EXPECT_EQ(run(Inquiry{.allocation_length = 511})->data, whole);
    for (std::uint16_t length = 0; length < 256; ++length) {
        auto cut = run(Inquiry{.allocation_length = length});
        ASSERT_TRUE(cut->good());
        ASSERT_EQ(cut->data.size(), std::min<std::size_t>(length, whole.size()));
        ASSERT_TRUE(std::equal(cut->data.begin(), cut->data.end(), whole.begin()));
        ASSERT_EQ(cut->heard.length_in, cut->data.size()) << "no residual overflow";
    }
}

TEST_F(InquiryCommand, RefusesAPageWithoutTheBitForPages) {
    set_up();
    for (unsigned code = 1; code < 256; ++code)
        EXPECT_EQ(
            run(Inquiry{.page_code = static_cast<std::uint8_t>(code), .allocation_length = 96})
                ->code(),
            0x52400u);
    EXPECT_EQ(run(Inquiry{.vital_product_data = true, .page_code = 0x42, .allocation_length = 96})
                  ->code(),
              0x52400u);
}

TEST_F(InquiryCommand, ListsItsPagesInOrderAndHasThemAll) {
    set_up();
    const auto list = page(VitalProductPage::supported_pages);
    ASSERT_EQ(list.size(), 11u);
    EXPECT_TRUE(std::ranges::is_sorted(list));
    const test::OctetVector codes(list.begin(), list.end());
    for (auto code : codes) {
        const auto one = page(static_cast<VitalProductPage>(code), 1024);
        EXPECT_EQ(one.size(), decode<VitalProductPageStart>(last->data)->length);
    }
}

TEST_F(InquiryCommand, NamesTheUnitTheTargetAndThePort) {
    auto& unit = set_up();
    Designators designators(page(VitalProductPage::device_identification, 1024));
    std::vector<DesignatorType> types;
    for (;;) {
        auto next = designators.next();
        ASSERT_TRUE(next);
        if (!*next) break;
        types.push_back((*next)->start.type);
        if ((*next)->start.type == DesignatorType::network_address_authority) {
            EXPECT_EQ(load_big_endian<8>((*next)->value.data()), unit.identity().network_address);
        }
        if ((*next)->start.type == DesignatorType::scsi_name &&
            (*next)->start.association == DesignatorAssociation::target_port) {
            EXPECT_EQ(text_of((*next)->value).substr(0, 34), "iqn.2026-11.io.weft:bench,t,0x0001");
        }
    }
    EXPECT_EQ(types,
              (std::vector{DesignatorType::network_address_authority, DesignatorType::t10_vendor,
                           DesignatorType::relative_target_port, DesignatorType::target_port_group,
                           DesignatorType::scsi_name, DesignatorType::scsi_name}));
    EXPECT_EQ(text_of(page(VitalProductPage::unit_serial_number)), unit.identity().serial);
}

TEST_F(InquiryCommand, TellsLimitsOfWhatTheDeviceCan) {
    set_up();
    const auto limits = *decode<BlockLimits>(page(VitalProductPage::block_limits));
    EXPECT_EQ(limits.max_compare_and_write, 255);
    EXPECT_EQ(limits.max_transfer, transfer_bytes_usual / 512);
    EXPECT_EQ(limits.max_unmap_blocks, 0xffffffffu);
    EXPECT_EQ(limits.max_unmap_descriptors, 255u);
    EXPECT_LE(limits.max_atomic_transfer, limits.max_transfer);
    EXPECT_GE(limits.max_atomic_transfer, 256u);
    EXPECT_FALSE(limits.write_same_nonzero);
    const auto provisioning =
        *decode<LogicalBlockProvisioning>(page(VitalProductPage::logical_block_provisioning));
    EXPECT_TRUE(provisioning.unmap && provisioning.write_same_10 && provisioning.write_same_16);
    EXPECT_EQ(provisioning.type, ProvisioningType::thin);
    EXPECT_EQ(provisioning.reads_zero, 1);
    const auto physics =
        *decode<BlockDeviceCharacteristics>(page(VitalProductPage::block_device_characteristics));
    EXPECT_EQ(physics.rotation_rate, 1);
    EXPECT_EQ(physics.write_after_block_erase, 1);
}

TEST_F(InquiryCommand, ClaimsNothingForAUnitThatIsNotThin) {
    set_up({.thin = false});
    const auto limits = *decode<BlockLimits>(page(VitalProductPage::block_limits));
    EXPECT_EQ(limits.max_unmap_blocks, 0u);
    EXPECT_EQ(limits.max_unmap_descriptors, 0u);
    const auto provisioning =
        *decode<LogicalBlockProvisioning>(page(VitalProductPage::logical_block_provisioning));
    EXPECT_FALSE(provisioning.unmap || provisioning.write_same_10 || provisioning.write_same_16);
    EXPECT_EQ(provisioning.type, ProvisioningType::full_or_unknown);
}

TEST_F(InquiryCommand, TellsThePortsAndWhatCopiesItMakes) {
    set_up();
    target->add_port(2, 2);
    const auto ports = page(VitalProductPage::scsi_ports, 1024);
    EXPECT_EQ(decode<ScsiPortDesignation>(ports)->relative_port, 1);
    const auto copies = page(VitalProductPage::third_party_copy, 1024);
    EXPECT_EQ(copies.size() % 4, 0u);
    // Supported commands: EXTENDED COPY (LID1); RECEIVE COPY RESULTS, status and parameters.
    const std::uint8_t expected[] = {0x00, 0x01, 0x00, 0x08, 0x07, 0x83,
                                     0x01, 0x00, 0x84, 0x02, 0x00, 0x03};
    EXPECT_TRUE(
        std::ranges::equal(copies.first(sizeof expected), std::as_bytes(std::span(expected))));
}

}  // namespace
}  // namespace weft::scsi
