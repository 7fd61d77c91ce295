// SPDX-License-Identifier: Apache-2.0
// What a logical unit returns and is sent, read by Wireshark's dissectors scsi and scsi_sbc. Only
// what these dissectors take apart is asked for.
#include "interop/scsi_talk.hpp"

namespace weft::wire {
namespace {

TEST(ScsiAsTsharkSeesIt, CapacityAndUnmap) {
    ScsiTalk talk;
    auto capacity_10 =
        talk.reads(ReadCapacity10{}, encoded(Capacity10{.last_block = 204799, .block_bytes = 512}));
    auto capacity_16 = talk.reads(ReadCapacity16{.allocation_length = 32},
                                  encoded(Capacity16{.last_block = 0x123456789a,
                                                     .block_bytes = 4096,
                                                     .protection_enabled = true,
                                                     .protection_interval_exponent = 2,
                                                     .blocks_per_physical_exponent = 3,
                                                     .provisioning_management = true,
                                                     .unmapped_reads_zero = true,
                                                     .lowest_aligned_block = 7}));
    auto status =
        talk.reads(GetLbaStatus{.first_block = 0x1000, .allocation_length = 24},
                   join({encoded(LbaStatusHeader{.length_after = 20}),
                         encoded(LbaStatusDescriptor{.first_block = 0x1000,
                                                     .block_count = 64,
                                                     .provisioning = Provisioning::anchored})}));
    auto unmap = talk.writes(
        Unmap{.anchor = true, .group_number = 3, .parameter_length = 24},
        join({encoded(UnmapListHeader{.length_after = 22, .descriptors_length = 16}),
              encoded(UnmapDescriptor{.first_block = 0x123456789a, .block_count = 8})}));
    auto frames = talk.without_complaint();
    expect_fields(test::frame(frames, capacity_10),
                  {{"scsi_sbc.returned_lba", 204799}, {"scsi_sbc.blocksize", 512}});
    expect_fields(test::frame(frames, capacity_16), {{"scsi_sbc.blocksize", 4096},
                                                     {"scsi_sbc.prot_en", 1},
                                                     {"scsi_sbc.p_i_exponent", 2},
                                                     {"scsi_sbc.lbppbe", 3},
                                                     {"scsi_sbc.lbpme", 1},
                                                     {"scsi_sbc.lbprz", 1},
                                                     {"scsi_sbc.lalba", 7}});
    expect_fields(test::frame(frames, status), {{"scsi_sbc.get_lba_status.data_length", 20},
                                                {"scsi_sbc.get_lba_status.num_blocks", 64},
                                                {"scsi_sbc.get_lba_status.provisioning_type", 2}});
    expect_fields(test::frame(frames, unmap), {{"scsi_sbc.unmap.anchor", 1},
                                               {"scsi_sbc.group", 3},
                                               {"scsi_sbc.unmap.data_length", 22},
                                               {"scsi_sbc.unmap.block_descriptor_data_length", 16},
                                               {"scsi_sbc.unmap.lba", 0x123456789a},
                                               {"scsi_sbc.unmap.num_blocks", 8}});
}

TEST(ScsiAsTsharkSeesIt, StandardInquiryData) {
    ScsiTalk talk;
    auto data = join(
        {encoded(StandardInquiryData{.removable = true,
                                     .version = 6,
                                     .hierarchical_addressing = true,
                                     .additional_length = 69,
                                     .asymmetric_access = AsymmetricAccess::implicit_and_explicit,
                                     .third_party_copy = true,
                                     .multiple_ports = true,
                                     .command_queue = true,
                                     .vendor = left_aligned<8>("WEFT"),
                                     .product = left_aligned<16>("Volume"),
                                     .revision = left_aligned<4>("1")}),
         encoded(StandardInquiryVersions{
             .versions = {VersionDescriptor::sam_5, VersionDescriptor::spc_4,
                          VersionDescriptor::sbc_3, VersionDescriptor::iscsi}})});
    auto inquiry = talk.reads(Inquiry{.allocation_length = 255}, data);
    auto frames = talk.without_complaint();
    auto& frame = test::frame(frames, inquiry);
    expect_fields(frame, {{"scsi.inquiry.qualifier", 0},
                          {"scsi.inquiry.removable", 1},
                          {"scsi.inquiry.version", 6},
                          {"scsi.inquiry.hisup", 1},
                          {"scsi.inquiry.rdf", 2},
                          {"scsi.inquiry.add_len", 69},
                          {"scsi.inquiry.sccs", 0},
                          {"scsi.inquiry.tpgs", 3},
                          {"scsi.inquiry.tpc", 1},
                          {"scsi.inquiry.protect", 0},
                          {"scsi.inquiry.multip", 1},
                          {"scsi.inquiry.cmdque", 1}});
    EXPECT_THAT(frame.text("scsi.inquiry.vendor_id"), testing::StartsWith("WEFT"));
    EXPECT_THAT(frame.text("scsi.inquiry.product_id"), testing::StartsWith("Volume"));
    EXPECT_THAT(frame.numbers("scsi.inquiry.version_desc"),
                ElementsAre(0x00a0, 0x0460, 0x04c0, 0x0960, 0, 0, 0, 0));
}

TEST(ScsiAsTsharkSeesIt, VitalProductData) {
    ScsiTalk talk;
    auto page = [&talk](VitalProductPage code, ConstBuffer data) {
        auto start = encoded(
            VitalProductPageStart{.page = code, .length = static_cast<std::uint16_t>(data.size())});
        return talk.reads(Inquiry{.vital_product_data = true,
                                  .page_code = static_cast<std::uint8_t>(code),
                                  .allocation_length = 255},
                          join({start, data}));
    };
    auto supported = page(VitalProductPage::supported_pages, from_hex("00 80 83 b0 b1 b2"));
    auto serial = page(VitalProductPage::unit_serial_number, bytes_of("elm-0001"));
    auto identity =
        page(VitalProductPage::device_identification,
             join({encoded(DesignatorStart{.code_set = CodeSet::binary,
                                           .type = DesignatorType::network_address_authority,
                                           .length = 8}),
                   from_hex("3001020304050607")}));
    auto limits =
        page(VitalProductPage::block_limits, encoded(BlockLimits{.write_same_nonzero = true,
                                                                 .max_compare_and_write = 8,
                                                                 .optimal_transfer_granularity = 16,
                                                                 .max_transfer = 512,
                                                                 .optimal_transfer = 256,
                                                                 .max_prefetch = 2048,
                                                                 .max_unmap_blocks = 65536,
                                                                 .max_unmap_descriptors = 64,
                                                                 .optimal_unmap_granularity = 2047,
                                                                 .unmap_alignment_valid = true,
                                                                 .unmap_alignment = 7,
                                                                 .max_write_same = 65537,
                                                                 .max_atomic_transfer = 128,
                                                                 .atomic_alignment = 9,
                                                                 .atomic_granularity = 4}));
    auto characteristics =
        page(VitalProductPage::block_device_characteristics,
             encoded(BlockDeviceCharacteristics{.rotation_rate = 1,
                                                .product_type = 2,
                                                .write_after_block_erase = 1,
                                                .write_after_cryptographic_erase = 2,
                                                .form_factor = 3,
                                                .force_unit_access_behaves = true}));
    auto provisioning = page(VitalProductPage::logical_block_provisioning,
                             encoded(LogicalBlockProvisioning{.threshold_exponent = 5,
                                                              .unmap = true,
                                                              .write_same_10 = true,
                                                              .reads_zero = 1,
                                                              .type = ProvisioningType::thin}));
    auto frames = talk.without_complaint();
    EXPECT_THAT(test::frame(frames, supported).numbers("scsi.inquiry.evpd.supported_page"),
                ElementsAre(0, 0x80, 0x83, 0xb0, 0xb1, 0xb2));
    EXPECT_EQ(test::frame(frames, serial).text("scsi.inquiry.evpd.product_serial_number"),
              "elm-0001");
    expect_fields(test::frame(frames, identity),
                  {{"scsi.inquiry.evpd.devid.code_set", 1},
                   {"scsi.inquiry.evpd.devid.association", 0},
                   {"scsi.inquiry.evpd.devid.identifier_type", 3},
                   {"scsi.inquiry.evpd.devid.identifier_length", 8}});
    expect_fields(test::frame(frames, limits), {{"scsi_sbc.bl.wsnz", 1},
                                                {"scsi_sbc.bl.mcawl", 8},
                                                {"scsi_sbc.bl.otlg", 16},
                                                {"scsi_sbc.bl.mtl", 512},
                                                {"scsi_sbc.bl.otl", 256},
                                                {"scsi_sbc.bl.mpl", 2048},
                                                {"scsi_sbc.bl.mulc", 65536},
                                                {"scsi_sbc.bl.mubdc", 64},
                                                {"scsi_sbc.bl.oug", 2047},
                                                {"scsi_sbc.bl.ugavalid", 1},
                                                {"scsi_sbc.bl.uga", 7},
                                                {"scsi_sbc.bl.mwsl", 65537},
                                                {"scsi_sbc.bl.matl", 128},
                                                {"scsi_sbc.bl.aa", 9},
                                                {"scsi_sbc.bl.atlg", 4}});
    expect_fields(test::frame(frames, characteristics), {{"scsi.inquiry.bdc.mrr", 1},
                                                         {"scsi.inquiry.bdc.pt", 2},
                                                         {"scsi.inquiry.bdc.wabereq", 1},
                                                         {"scsi.inquiry.bdc.wacereq", 2},
                                                         {"scsi.inquiry.bdc.nff", 3},
                                                         {"scsi.inquiry.bdc.fuab", 1},
                                                         {"scsi.inquiry.bdc.vbuls", 0}});
    expect_fields(test::frame(frames, provisioning), {{"scsi_sbc.threshold_exponent", 5},
                                                      {"scsi_sbc.lbpu", 1},
                                                      {"scsi_sbc.lbpws", 0},
                                                      {"scsi_sbc.lbpws10", 1},
                                                      {"scsi_sbc.lbprz", 1},
                                                      {"scsi_sbc.anc_sup", 0},
                                                      {"scsi_sbc.ptype", 2}});
}

TEST(ScsiAsTsharkSeesIt, ModePages) {
    ScsiTalk talk;
    auto data = join({encoded(ModeHeader6{.data_length = 31, .block_descriptors_length = 8}),
                      encoded(ShortBlockDescriptor{.block_count = 2048, .block_bytes = 512}),
                      encoded(CachingPage{.savable = true,
                                          .discontinuity = true,
                                          .write_cache = true,
                                          .write_retention = 5,
                                          .maximum_prefetch = 0x1234,
                                          .read_ahead_disabled = true,
                                          .cache_segments = 20})});
    auto caching =
        talk.reads(ModeSense6{.page = ModePageCode::caching, .allocation_length = 255}, data);
    data = join({encoded(ModeHeader6{.data_length = 15}),
                 encoded(ControlPage{.descriptor_sense = true,
                                     .queue_algorithm = 1,
                                     .queue_error_management = 1,
                                     .software_write_protect = true,
                                     .busy_timeout_period = 600,
                                     .self_test_seconds = 0x0567})});
    auto control =
        talk.reads(ModeSense6{.page = ModePageCode::control, .allocation_length = 255}, data);
    auto frames = talk.without_complaint();
    expect_fields(test::frame(frames, caching),
                  {{"scsi.cdb.mode.mode_data_length", 31},
                   {"scsi.cdb.mode.block_descriptor_length", 8},
                   {"scsi.spc.modepage.ps", 1},
                   {"scsi.sbc.modepage.disc", 1},
                   {"scsi.sbc.modepage.wce", 1},
                   {"scsi.sbc.modepage.rcd", 0},
                   {"scsi.sbc.modepage.write_retention_priority", 5},
                   {"scsi.sbc.modepage.maximum_pre_fetch", 0x1234},
                   {"scsi.sbc.modepage.dra", 1},
                   {"scsi.sbc.modepage.number_of_cache_segments", 20}});
    expect_fields(test::frame(frames, control),
                  {{"scsi.mode.qmod", 1},
                   {"scsi.mode.qerr", 1},
                   {"scsi.spc.modepage.swp", 1},
                   {"scsi.spc.modepage.busy_timeout_period", 60'000},
                   {"scsi.spc.modepage.extended_self_test_completion_time", 0x0567}});
}

TEST(ScsiAsTsharkSeesIt, Reservations) {
    ScsiTalk talk;
    auto out = talk.writes(
        PersistentReserveOut{.action = ReserveOutAction::preempt,
                             .type = ReservationType::exclusive_access_all_registrants,
                             .parameter_length = 24},
        encoded(ReserveOutParameters{.key = ReservationKey{0x1122334455667788},
                                     .service_action_key = ReservationKey{0xa1a2a3a4a5a6a7a8},
                                     .all_target_ports = true,
                                     .persist_through_power_loss = true}));
    auto reservation = talk.reads(
        PersistentReserveIn{.action = ReserveInAction::read_reservation, .allocation_length = 64},
        join({encoded(ReserveInHeader{.generation = 5, .length_after = 16}),
              encoded(ReservationDescriptor{
                  .key = ReservationKey{0x1122334455667788},
                  .type = ReservationType::write_exclusive_registrants_only})}));
    auto frames = talk.without_complaint();
    expect_fields(test::frame(frames, out), {{"scsi.persresvout.svcaction", 4},
                                             {"scsi.persresv.scope", 0},
                                             {"scsi.persresv.type", 8},
                                             {"scsi.persresv.control.all_tg_pt", 1},
                                             {"scsi.persresv.control.spec_i_pt", 0},
                                             {"scsi.persresv.control.aptpl", 1}});
    EXPECT_EQ(test::frame(frames, out).text("scsi.persresv.reskey"), "11:22:33:44:55:66:77:88");
    EXPECT_EQ(test::frame(frames, out).text("scsi.persresv.sareskey"), "a1:a2:a3:a4:a5:a6:a7:a8");
    expect_fields(test::frame(frames, reservation), {{"scsi.persresvin.generation_number", 5},
                                                     {"scsi.persresvin.additional_length", 16},
                                                     {"scsi.persresv.type", 5}});
}

TEST(ScsiAsTsharkSeesIt, Reports) {
    ScsiTalk talk;
    Bytes list(16);
    encode(LunListHeader{.list_length = 8}, list);
    store_big_endian<8>(static_cast<std::uint64_t>(*spell_logical_unit(258)), list.data() + 8);
    auto luns = talk.reads(ReportLuns{.allocation_length = 16}, list);
    auto codes =
        talk.reads(ReportSupportedOperationCodes{.options = ReportingOptions::one_operation,
                                                 .requested_operation = ScsiOperation::read_10,
                                                 .allocation_length = 64},
                   join({encoded(OneCommandHeader{.support = CommandSupport::as_standardized,
                                                  .command_block_length = 10}),
                         from_hex("28 18 ff ff ff ff 1f ff ff 07")}));
    auto frames = talk.without_complaint();
    expect_fields(test::frame(frames, luns),
                  {{"scsi.reportluns.lun_list_length", 8}, {"scsi.lun.address_mode", 1}});
    EXPECT_THAT(test::frame(frames, luns).numbers("scsi.lun"), testing::Contains(258));
    expect_fields(test::frame(frames, codes), {{"scsi.report_opcodes.support", 3},
                                               {"scsi.report_opcodes_one.ctdp", 0},
                                               {"scsi.report_opcodes.cdb_length", 10}});
}

TEST(ScsiAsTsharkSeesIt, SenseData) {
    ScsiTalk talk;
    auto fixed_sense = talk.fails(
        TestUnitReady{}, encoded(FixedSense{.information_valid = true,
                                            .key = SenseKey::miscompare,
                                            .information = 0x1234,
                                            .additional = AdditionalSense::miscompare_during_verify,
                                            .field_replaceable_unit = 3}));
    auto descriptors = talk.fails(
        TestUnitReady{},
        join({encoded(DescriptorSense{.key = SenseKey::illegal_request,
                                      .additional = AdditionalSense::invalid_field_in_command_block,
                                      .additional_length = 8}),
              encoded(SenseKeySpecificDescriptor{.specific = {.valid = true,
                                                              .in_command_block = true,
                                                              .bit_valid = true,
                                                              .bit = 7,
                                                              .pointer = 2}})}));
    auto frames = talk.without_complaint();
    expect_fields(test::frame(frames, fixed_sense), {{"scsi.sns.errtype", 0x70},
                                                     {"scsi.sns.key", 0xe},
                                                     {"scsi.sns.info", 0x1234},
                                                     {"scsi.sns.addlen", 10},
                                                     {"scsi.sns.ascascq", 0x1d00},
                                                     {"scsi.sns.fru", 3}});
    expect_fields(test::frame(frames, descriptors), {{"scsi.sns.errtype", 0x72},
                                                     {"scsi.sns.key", 5},
                                                     {"scsi.sns.ascascq", 0x2400},
                                                     {"scsi.sns.addlen", 8},
                                                     {"scsi.sns.desc.type", 2},
                                                     {"scsi.sns.desc.length", 6},
                                                     {"scsi.sns.sks.fp.cd", 1},
                                                     {"scsi.sns.sks.fp.bpv", 1},
                                                     {"scsi.sns.sks.fp.bit", 7},
                                                     {"scsi.sns.sks.fp.field", 2}});
}

TEST(ScsiAsTsharkSeesIt, ExtendedCopy) {
    ScsiTalk talk;
    auto copy = talk.writes(
        ExtendedCopy{.parameter_length = 76},
        join({encoded(CopyListHeader{.list_identifier = 7,
                                     .list_identifier_usage = 2,
                                     .priority = 1,
                                     .target_descriptors_length = 32,
                                     .segment_descriptors_length = 28}),
              encoded(CopyTargetByIdentification{
                  .designator = {.code_set = CodeSet::binary,
                                 .type = DesignatorType::network_address_authority,
                                 .length = 8},
                  .designator_value = {0x30, 1, 2, 3, 4, 5, 6, 7},
                  .block_bytes = 512}),
              encoded(CopyBlocksToBlocks{
                  .block_count = 2048, .source_block = 0x1234, .destination_block = 0x56789a})}));
    auto frames = talk.without_complaint();
    expect_fields(test::frame(frames, copy), {{"scsi.extcopy.list_id", 7},
                                              {"scsi.extcopy.xcopy_param_list_id_usage", 2},
                                              {"scsi.extcopy.xcopy_param_priority", 1},
                                              {"scsi.extcopy.seg_desc_num_of_blocks", 2048},
                                              {"scsi.extcopy.disk_block_len", 512},
                                              {"scsi.extcopy.source_lba", 0x1234},
                                              {"scsi.extcopy.dest_lba", 0x56789a}});
}

}  // namespace
}  // namespace weft::wire
