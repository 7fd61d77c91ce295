// SPDX-License-Identifier: Apache-2.0
// What concerns a target as a whole: reservations, reports, port groups and copies, as sg3_utils,
// libiscsi and tgtd write or read them.
#include <gtest/gtest.h>

#include "support/header_walk.hpp"
#include "wire/scsi.hpp"

namespace weft::wire {
namespace {

using test::HeaderWalk;

constexpr auto old_key = ReservationKey{0x1122334455667788};
constexpr auto new_key = ReservationKey{0xa1a2a3a4a5a6a7a8};

TEST(PersistentReservation, IsAskedForAsSgPersistDoes) {
    HeaderWalk walk("scsi/reservation.hex");
    walk.expect(PersistentReserveIn{.action = ReserveInAction::read_full_status,
                                    .allocation_length = 0x1000});
    walk.expect(PersistentReserveOut{.action = ReserveOutAction::preempt_and_abort,
                                     .type = ReservationType::write_exclusive_all_registrants,
                                     .parameter_length = 24});
    walk.expect(ReserveOutParameters{.key = old_key,
                                     .service_action_key = new_key,
                                     .all_target_ports = true,
                                     .persist_through_power_loss = true});
    walk.expect(PersistentReserveOut{.action = ReserveOutAction::register_and_move,
                                     .parameter_length = 76});
    walk.expect(RegisterAndMoveParameters{.key = old_key,
                                          .service_action_key = new_key,
                                          .unregister = true,
                                          .relative_target_port = 0x203,
                                          .transport_identifier_length = 52});
    walk.expect(
        IscsiTransportIdentifier{.format = IscsiIdentifierFormat::port, .length_after = 48});
    auto name = walk.take(48);
    EXPECT_EQ(text_of(name).substr(0, 45), "iqn.2001-04.com.example:host,i,0x00023d000001");
}

TEST(PersistentReservation, IsReportedAsOthersDo) {
    HeaderWalk walk("scsi/reservation.hex");
    walk.take(0x82);
    walk.expect(ReserveInHeader{.generation = 3, .length_after = 16});
    walk.expect(ReservationDescriptor{.key = ReservationKey{0x6a8922ce},
                                      .type = ReservationType::exclusive_access_registrants_only});
    walk.expect(ReservationCapabilities{.compatible_reservation_handling = true,
                                        .specify_initiator_ports = true,
                                        .all_target_ports = true,
                                        .persist_through_power_loss = true,
                                        .type_mask_valid = true,
                                        .allowed_commands = 4,
                                        .power_loss_persistence_active = true,
                                        .write_exclusive_all_registrants = true,
                                        .exclusive_access_registrants_only = true,
                                        .write_exclusive_registrants_only = true,
                                        .exclusive_access = true,
                                        .write_exclusive = true,
                                        .exclusive_access_all_registrants = true});
    walk.expect(ReserveInHeader{.generation = 5, .length_after = 124});
    walk.expect(FullStatusDescriptor{.key = old_key,
                                     .holder = true,
                                     .type = ReservationType::write_exclusive_registrants_only,
                                     .relative_target_port = 1,
                                     .transport_identifier_length = 52});
    walk.expect(
        IscsiTransportIdentifier{.format = IscsiIdentifierFormat::port, .length_after = 48});
    walk.take(48);
    walk.expect(FullStatusDescriptor{.key = new_key,
                                     .all_target_ports = true,
                                     .relative_target_port = 0x203,
                                     .transport_identifier_length = 24});
    walk.expect(
        IscsiTransportIdentifier{.format = IscsiIdentifierFormat::node, .length_after = 20});
    walk.take(20);
    walk.expect_end();
}

TEST(ReportLuns, ListsUnitsInEverySpelling) {
    HeaderWalk walk("scsi/report_luns.hex");
    walk.expect(ReportLuns{.select = SelectReport::all, .allocation_length = 0x12340});
    walk.expect(LunListHeader{.list_length = 32});
    for (std::uint32_t number : {5u, 258u, 66051u}) {
        auto octets = walk.take(8);
        auto unit = LogicalUnit{load_big_endian<8>(octets.data())};
        EXPECT_EQ(*number_of(unit), number);
        EXPECT_EQ(*spell_logical_unit(number), unit);
    }
    auto well_known = walk.take(8);
    EXPECT_FALSE(number_of(LogicalUnit{load_big_endian<8>(well_known.data())}));
    walk.expect_end();
}

TEST(ReportSupportedOperationCodes, IsReadAndWrittenAsOthersDo) {
    HeaderWalk walk("scsi/report_operation_codes.hex");
    walk.expect(
        ReportSupportedOperationCodes{.with_timeouts = true,
                                      .options = ReportingOptions::one_of_either_kind,
                                      .requested_operation = ScsiOperation::service_action_in_16,
                                      .requested_service_action = 0x10,
                                      .allocation_length = 0x1234});
    walk.expect(AllCommandsHeader{.length_after = 1000});
    for (auto operation : {ScsiOperation::test_unit_ready, ScsiOperation::request_sense,
                           ScsiOperation::format_unit}) {
        walk.expect(CommandDescriptor{
            .operation = operation, .has_timeouts = true, .command_block_length = 6});
        walk.expect(CommandTimeouts{});
    }
    walk.expect(OneCommandHeader{.has_timeouts = true,
                                 .support = CommandSupport::as_standardized,
                                 .command_block_length = 10});
    EXPECT_EQ(walk.take(10)[0], static_cast<std::byte>(ScsiOperation::read_10));
    walk.expect(CommandTimeouts{.nominal_seconds = 30, .recommended_seconds = 60});
    walk.expect(ReportSupportedTaskManagementFunctions{.extended = true, .allocation_length = 16});
    EXPECT_EQ(*decode<SupportedTaskManagementFunctions>(walk.take(4)),
              (SupportedTaskManagementFunctions{.abort_task = true,
                                                .abort_task_set = true,
                                                .logical_unit_reset = true,
                                                .query_task = true,
                                                .query_task_set = true}));
    walk.expect_end();
}

// sg_opcodes 1.46 --tmf reads these octets as all nine functions.
TEST(SupportedTaskManagementFunctions, AreWrittenAsTheyAreRead) {
    test::expect_header(test::from_hex("fc 07 00 00"),
                        SupportedTaskManagementFunctions{.abort_task = true,
                                                         .abort_task_set = true,
                                                         .clear_auto_contingent_allegiance = true,
                                                         .clear_task_set = true,
                                                         .logical_unit_reset = true,
                                                         .query_task = true,
                                                         .query_asynchronous_event = true,
                                                         .query_task_set = true,
                                                         .nexus_reset = true});
}

TEST(TargetPortGroups, AreReadAndWrittenAsOthersDo) {
    HeaderWalk walk("scsi/port_groups.hex");
    walk.expect(ReportTargetPortGroups{.data_format = 1, .allocation_length = 0x400});
    walk.expect(TargetPortGroupsHeader{.length_after = 16});
    walk.expect(TargetPortGroupsExtension{.implicit_transition_seconds = 60});
    walk.expect(TargetPortGroup{.preferred = true,
                                .state = AccessState::transitioning,
                                .transitioning_supported = true,
                                .offline_supported = true,
                                .logical_block_dependent_supported = true,
                                .unavailable_supported = true,
                                .standby_supported = true,
                                .active_not_optimized_supported = true,
                                .active_optimized_supported = true,
                                .group = 0x102,
                                .reason = AccessStateReason::implicit,
                                .port_count = 1});
    walk.expect(TargetPort{.relative_identifier = 3});
    walk.expect(SetTargetPortGroups{.parameter_length = 8});
    walk.take(4);
    walk.expect(SetTargetPortGroup{.state = AccessState::active_optimized, .group = 0x102});
    walk.expect_end();
}

TEST(ExtendedCopy, IsReadAndWrittenAsOthersDo) {
    HeaderWalk walk("scsi/copy.hex");
    walk.expect(ExtendedCopy{.parameter_length = 76});
    walk.expect(CopyListHeader{.list_identifier = 1,
                               .list_identifier_usage = 2,
                               .target_descriptors_length = 32,
                               .segment_descriptors_length = 28});
    walk.expect(
        CopyTargetByIdentification{.designator = {.code_set = CodeSet::binary,
                                                  .type = DesignatorType::network_address_authority,
                                                  .length = 8},
                                   .designator_value = {0x30, 0, 0, 1, 0, 0, 0, 1},
                                   .block_bytes = 512});
    walk.expect(CopyBlocksToBlocks{.block_count = 2048, .destination_block = 0x31800});
    walk.expect(ReceiveCopyResults{.action = ReceiveCopyAction::operating_parameters,
                                   .allocation_length = 520});
    walk.expect(ReceiveCopyResults{.list_identifier = 0x5a, .allocation_length = 520});
    walk.expect(CopyOperatingParameters{.length_after = 42,
                                        .without_list_identifier = true,
                                        .max_target_descriptors = 2,
                                        .max_segment_descriptors = 1,
                                        .max_descriptor_list_length = 1024,
                                        .max_segment_length = 16777216,
                                        .max_inline_data_length = 512,
                                        .total_concurrent_copies = 8,
                                        .max_concurrent_copies = 4,
                                        .data_segment_granularity = 9,
                                        .descriptor_types_length = 2});
    EXPECT_EQ(test::to_hex(walk.take(2)), "02 e4");
    walk.expect(CopyStatus{.progress = CopyProgress::failed,
                           .segments_processed = 3,
                           .transfer_count_units = 1,
                           .transfer_count = 0x1234});
    walk.expect_end();
}

}  // namespace
}  // namespace weft::wire
