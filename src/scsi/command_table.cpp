// SPDX-License-Identifier: Apache-2.0
#include "scsi/command.hpp"
#include "scsi/commands.hpp"
#include "wire/scsi.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

using enum Trait;
using Operation = ScsiOperation;

constexpr int action_of(auto action) {
    return static_cast<int>(action);
}

// Combinations that many commands share.
constexpr Trait reading = needs_medium;
constexpr Trait writing = needs_medium | changes;
constexpr Trait telling = unattended | while_erasing | any_access | without_medium;
constexpr Trait status = while_erasing | any_access;

constexpr auto plain = no_service_action;
constexpr auto always = Offered::always;

// Of 32 octets, by the flags that count.
constexpr std::string_view long_usage_09 =
    "00 00 00 00 00 1f ff ff ff 09 00 ff ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00 "
    "ff ff ff ff";
constexpr std::string_view long_usage_16 =
    "00 00 00 00 00 1f ff ff ff 16 00 ff ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00 "
    "ff ff ff ff";
constexpr std::string_view long_usage_18 =
    "00 00 00 00 00 1f ff ff ff 18 00 ff ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00 "
    "ff ff ff ff";
constexpr std::string_view long_usage_1c =
    "00 00 00 00 00 1f ff ff ff 1c 00 ff ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00 "
    "ff ff ff ff";

// clang-format off
constexpr Command table[] = {
    {Operation::test_unit_ready, plain, 6, test_unit_ready, Reach::facts,
     needs_medium | without_medium, always, "00 00 00 00 00"},
    {Operation::request_sense, plain, 6, request_sense, Reach::anything, telling | without_unit,
     always, "01 00 00 ff 00"},
    {Operation::format_unit, plain, 6, format_unit, Reach::writes, writing, always,
     "f8 00 00 03 00"},
    {Operation::read_6, plain, 6, read_blocks<Read6>, Reach::reads, reading, always,
     "1f ff ff ff 00"},
    {Operation::write_6, plain, 6, write_blocks<Write6>, Reach::writes, writing, always,
     "1f ff ff ff 00"},
    {Operation::inquiry, plain, 6, inquiry, Reach::anything, telling | without_unit, always,
     "01 ff ff ff 00"},
    {Operation::mode_select_6, plain, 6, mode_select_6, Reach::writes, none, always,
     "11 00 00 ff 00"},
    {Operation::reserve_6, plain, 6, reserve, Reach::own, none, always, "00 00 00 00 00"},
    {Operation::release_6, plain, 6, release, Reach::own, none, always, "00 00 00 00 00"},
    {Operation::mode_sense_6, plain, 6, mode_sense_6, Reach::writes, none, always,
     "08 ff ff ff 00"},
    {Operation::start_stop_unit, plain, 6, start_stop_unit, Reach::writes, none, always,
     "01 00 0f f7 00"},
    {Operation::receive_diagnostic_results, plain, 6, receive_diagnostic_results, Reach::writes,
     none, always, "01 ff ff ff 00"},
    {Operation::send_diagnostic, plain, 6, send_diagnostic, Reach::writes, none, always,
     "f7 00 ff ff 00"},
    {Operation::prevent_allow_medium_removal, plain, 6, prevent_allow_removal, Reach::facts, none,
     Offered::if_removable, "00 00 00 01 00"},
    {Operation::read_capacity_10, plain, 10, read_capacity_10, Reach::facts, reading, always,
     "00 00 00 00 00 00 00 00 00"},
    {Operation::read_10, plain, 10, read_blocks<Read10>, Reach::reads, reading | cached, always,
     "18 ff ff ff ff 1f ff ff 00"},
    {Operation::write_10, plain, 10, write_blocks<Write10>, Reach::writes, writing | cached, always,
     "18 ff ff ff ff 1f ff ff 00"},
    {Operation::write_and_verify_10, plain, 10, write_and_verify<WriteAndVerify10>, Reach::writes,
     writing | cached, always, "16 ff ff ff ff 1f ff ff 00"},
    {Operation::verify_10, plain, 10, verify<Verify10>, Reach::reads, reading | cached, always,
     "16 ff ff ff ff 1f ff ff 00"},
    {Operation::prefetch_10, plain, 10, prefetch<Prefetch10>, Reach::reads, reading, always,
     "02 ff ff ff ff 1f ff ff 00"},
    {Operation::synchronize_cache_10, plain, 10, synchronize_cache<SynchronizeCache10>,
     Reach::writes, reading, always, "02 ff ff ff ff 1f ff ff 00"},
    {Operation::read_defect_data_10, plain, 10, read_defect_data_10, Reach::reads, reading, always,
     "00 1f 00 00 00 00 ff ff 00"},
    {Operation::write_same_10, plain, 10, write_same<WriteSame10>, Reach::writes, writing, always,
     "08 ff ff ff ff 1f ff ff 00"},
    {Operation::unmap, plain, 10, unmap, Reach::writes, writing, Offered::if_thin,
     "00 00 00 00 00 1f ff ff 00"},
    {Operation::sanitize, action_of(SanitizeAction::overwrite), 10, sanitize, Reach::writes,
     writing | strict, always, "bf 00 00 00 00 00 ff ff 00"},
    {Operation::sanitize, action_of(SanitizeAction::block_erase), 10, sanitize, Reach::writes,
     writing | strict, Offered::if_thin, "bf 00 00 00 00 00 ff ff 00"},
    {Operation::sanitize, action_of(SanitizeAction::cryptographic_erase), 10, sanitize,
     Reach::writes, writing | strict, Offered::if_thin, "bf 00 00 00 00 00 ff ff 00"},
    {Operation::sanitize, action_of(SanitizeAction::exit_failure_mode), 10, sanitize,
     Reach::writes, writing | strict, always, "bf 00 00 00 00 00 ff ff 00"},
    {Operation::log_sense, plain, 10, log_sense, Reach::facts, status, always,
     "00 ff ff 00 00 00 ff ff 00"},
    {Operation::xor_write_10, plain, 10, xor_write, Reach::writes, writing | cached, always,
     "1c ff ff ff ff 1f ff ff 00"},
    {Operation::xor_read_10, plain, 10, xor_read, Reach::reads, reading, always,
     "00 ff ff ff ff 1f ff ff 00"},
    {Operation::xor_parity_write_10, plain, 10, xor_parity_write<XorParityWrite10>, Reach::writes,
     writing | cached, always, "18 ff ff ff ff 1f ff ff 00"},
    {Operation::xor_write_read_10, plain, 10, xor_write_read<XorWriteRead10>, Reach::writes,
     writing | cached, always, "1c ff ff ff ff 1f ff ff 00"},
    {Operation::mode_select_10, plain, 10, mode_select_10, Reach::writes, none, always,
     "11 00 00 00 00 00 ff ff 00"},
    {Operation::reserve_10, plain, 10, reserve, Reach::own, none, always,
     "10 00 00 00 00 00 00 00 00"},
    {Operation::release_10, plain, 10, release, Reach::own, none, always,
     "10 00 00 00 00 00 00 00 00"},
    {Operation::mode_sense_10, plain, 10, mode_sense_10, Reach::writes, none, always,
     "18 ff ff 00 00 00 ff ff 00"},
    {Operation::persistent_reserve_in, action_of(ReserveInAction::read_keys), 10,
     persistent_reserve_in, Reach::own, any_access, always, "1f 00 00 00 00 00 ff ff 00"},
    {Operation::persistent_reserve_in, action_of(ReserveInAction::read_reservation), 10,
     persistent_reserve_in, Reach::own, any_access, always, "1f 00 00 00 00 00 ff ff 00"},
    {Operation::persistent_reserve_in, action_of(ReserveInAction::report_capabilities), 10,
     persistent_reserve_in, Reach::own, any_access, always, "1f 00 00 00 00 00 ff ff 00"},
    {Operation::persistent_reserve_in, action_of(ReserveInAction::read_full_status), 10,
     persistent_reserve_in, Reach::own, any_access, always, "1f 00 00 00 00 00 ff ff 00"},
    {Operation::persistent_reserve_out, action_of(ReserveOutAction::register_key), 10,
     persistent_reserve_out, Reach::own, any_access, always, "1f 00 00 00 ff ff ff ff 00"},
    {Operation::persistent_reserve_out, action_of(ReserveOutAction::reserve), 10,
     persistent_reserve_out, Reach::own, any_access, always, "1f ff 00 00 ff ff ff ff 00"},
    {Operation::persistent_reserve_out, action_of(ReserveOutAction::release), 10,
     persistent_reserve_out, Reach::own, any_access, always, "1f ff 00 00 ff ff ff ff 00"},
    {Operation::persistent_reserve_out, action_of(ReserveOutAction::clear), 10,
     persistent_reserve_out, Reach::own, any_access, always, "1f 00 00 00 ff ff ff ff 00"},
    {Operation::persistent_reserve_out, action_of(ReserveOutAction::preempt), 10,
     persistent_reserve_out, Reach::own, any_access, always, "1f ff 00 00 ff ff ff ff 00"},
    {Operation::persistent_reserve_out, action_of(ReserveOutAction::preempt_and_abort), 10,
     persistent_reserve_out, Reach::own, any_access, always, "1f ff 00 00 ff ff ff ff 00"},
    {Operation::persistent_reserve_out,
     action_of(ReserveOutAction::register_and_ignore_existing_key), 10, persistent_reserve_out,
     Reach::own, any_access, always, "1f 00 00 00 ff ff ff ff 00"},
    {Operation::persistent_reserve_out, action_of(ReserveOutAction::register_and_move), 10,
     persistent_reserve_out, Reach::own, any_access, always, "1f ff 00 00 ff ff ff ff 00"},
    {Operation::variable_length, action_of(VariableLengthAction::xor_parity_write_32), 32,
     xor_parity_write<XorParityWrite32>, Reach::writes, writing | cached,
     Offered::if_long, long_usage_18},
    {Operation::variable_length, action_of(VariableLengthAction::xor_write_read_32), 32,
     xor_write_read<XorWriteRead32>, Reach::writes, writing | cached,
     Offered::if_long, long_usage_1c},
    {Operation::variable_length, action_of(VariableLengthAction::read_32), 32, read_blocks<Read32>,
     Reach::reads, reading | cached, Offered::if_long, long_usage_18},
    {Operation::variable_length, action_of(VariableLengthAction::verify_32), 32, verify<Verify32>,
     Reach::reads, reading | cached, Offered::if_long, long_usage_16},
    {Operation::variable_length, action_of(VariableLengthAction::write_32), 32,
     write_blocks<Write32>, Reach::writes, writing | cached, Offered::if_long, long_usage_18},
    {Operation::variable_length, action_of(VariableLengthAction::write_and_verify_32), 32,
     write_and_verify<WriteAndVerify32>, Reach::writes, writing | cached,
     Offered::if_long, long_usage_16},
    {Operation::variable_length, action_of(VariableLengthAction::write_same_32), 32,
     write_same<WriteSame32>, Reach::writes, writing, Offered::if_long, long_usage_09},
    {Operation::extended_copy, action_of(ExtendedCopyAction::copy_lid1), 16, extended_copy,
     Reach::writes, writing, always, "1f 00 00 00 00 00 00 00 00 ff ff ff ff 00 00"},
    {Operation::receive_copy_results, action_of(ReceiveCopyAction::copy_status), 16,
     receive_copy_results, Reach::facts, none, always,
     "1f ff 00 00 00 00 00 00 00 ff ff ff ff 00 00"},
    {Operation::receive_copy_results, action_of(ReceiveCopyAction::operating_parameters), 16,
     receive_copy_results, Reach::facts, none, always,
     "1f 00 00 00 00 00 00 00 00 ff ff ff ff 00 00"},
    {Operation::read_16, plain, 16, read_blocks<Read16>, Reach::reads, reading | cached, always,
     "18 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::compare_and_write, plain, 16, compare_and_write, Reach::writes,
     writing | cached, always, "18 ff ff ff ff ff ff ff ff 00 00 00 ff 1f 00"},
    {Operation::write_16, plain, 16, write_blocks<Write16>, Reach::writes, writing | cached, always,
     "18 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::or_write_16, plain, 16, or_write, Reach::writes, writing | cached, always,
     "18 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::write_and_verify_16, plain, 16, write_and_verify<WriteAndVerify16>, Reach::writes,
     writing | cached, always, "16 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::verify_16, plain, 16, verify<Verify16>, Reach::reads, reading | cached, always,
     "16 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::prefetch_16, plain, 16, prefetch<Prefetch16>, Reach::reads, reading, always,
     "02 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::synchronize_cache_16, plain, 16, synchronize_cache<SynchronizeCache16>,
     Reach::writes, reading, always, "02 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::write_same_16, plain, 16, write_same<WriteSame16>, Reach::writes, writing, always,
     "09 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::write_atomic_16, plain, 16, write_atomic, Reach::writes, writing | cached, always,
     "18 ff ff ff ff ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::service_action_in_16, action_of(ServiceActionIn::read_capacity_16), 16,
     read_capacity_16, Reach::facts, reading, always,
     "1f 00 00 00 00 00 00 00 00 ff ff ff ff 00 00"},
    {Operation::service_action_in_16, action_of(ServiceActionIn::get_lba_status), 16,
     get_lba_status, Reach::reads, reading, always,
     "1f ff ff ff ff ff ff ff ff ff ff ff ff ff 00"},
    {Operation::report_luns, plain, 12, report_luns, Reach::anything, telling | without_unit,
     always, "00 ff 00 00 00 ff ff ff ff 00 00"},
    {Operation::maintenance_in, action_of(MaintenanceIn::report_target_port_groups), 12,
     report_port_groups, Reach::facts, status, always, "ff 00 00 00 00 ff ff ff ff 00 00"},
    {Operation::maintenance_in, action_of(MaintenanceIn::report_supported_operation_codes), 12,
     report_operation_codes, Reach::facts, status | without_medium, always,
     "1f 87 ff ff ff ff ff ff ff 00 00"},
    {Operation::maintenance_in,
     action_of(MaintenanceIn::report_supported_task_management_functions), 12,
     report_task_management, Reach::facts, status, always, "1f 80 00 00 00 ff ff ff ff 00 00"},
    {Operation::maintenance_in, action_of(MaintenanceIn::report_timestamp), 12, report_timestamp,
     Reach::facts, status, always, "1f 00 00 00 00 ff ff ff ff 00 00"},
    {Operation::maintenance_out, action_of(MaintenanceOut::set_target_port_groups), 12,
     set_port_groups, Reach::writes, any_access, always, "1f 00 00 00 00 ff ff ff ff 00 00"},
    {Operation::maintenance_out, action_of(MaintenanceOut::set_timestamp), 12, set_timestamp,
     Reach::writes, none, always, "1f 00 00 00 00 ff ff ff ff 00 00"},
    {Operation::read_12, plain, 12, read_blocks<Read12>, Reach::reads, reading | cached, always,
     "18 ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::write_12, plain, 12, write_blocks<Write12>, Reach::writes, writing | cached, always,
     "18 ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::write_and_verify_12, plain, 12, write_and_verify<WriteAndVerify12>, Reach::writes,
     writing | cached, always, "16 ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::verify_12, plain, 12, verify<Verify12>, Reach::reads, reading | cached, always,
     "16 ff ff ff ff ff ff ff ff 1f 00"},
    {Operation::read_defect_data_12, plain, 12, read_defect_data_12, Reach::reads, reading, always,
     "1f ff ff ff ff ff ff ff ff 00 00"},
    {Operation::array_order, plain, 16, vendor_command, Reach::anything, telling,
     Offered::if_vendor, "ff ff ff ff ff ff ff ff ff ff ff ff ff 00 00"},
};
// clang-format on

constexpr std::uint8_t digit_of(char letter) {
    return static_cast<std::uint8_t>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
}

/// Three characters for each octet after the first, less the last space.
constexpr bool usages_fit() {
    for (const auto& command : table)
        if (command.usage.size() != (command.size - 1u) * 3 - 1) return false;
    return true;
}
static_assert(usages_fit());

/// Where the rows of an operation begin: the table is sorted by neither, but rows of one operation
/// stand together.
struct Places {
    std::array<std::uint8_t, 256> first{};
    std::array<std::uint8_t, 256> count{};
};
constexpr Places places_of_table() {
    Places places;
    for (std::size_t i = 0; i < std::size(table); ++i) {
        auto operation = static_cast<std::size_t>(table[i].operation);
        if (places.count[operation]++ == 0) places.first[operation] = static_cast<std::uint8_t>(i);
    }
    return places;
}
constexpr Places places = places_of_table();

constexpr bool rows_stand_together() {
    for (std::size_t i = 0; i < std::size(table); ++i) {
        auto operation = static_cast<std::size_t>(table[i].operation);
        if (i < places.first[operation] || i >= places.first[operation] + places.count[operation])
            return false;
    }
    return true;
}
static_assert(std::size(table) < 256 && rows_stand_together());

std::span<const Command> rows_of(ScsiOperation operation) {
    auto code = static_cast<std::size_t>(operation);
    return std::span(table).subspan(places.first[code], places.count[code]);
}

}  // namespace

std::uint8_t Command::usage_of(std::size_t octet, bool cache_control) const {
    const std::size_t flags = operation == ScsiOperation::variable_length ? 10 : 1;
    auto bits = usage_of(octet);
    if (octet == flags && is(cached) && !cache_control) bits &= 0xe7;
    return bits;
}

std::uint8_t Command::usage_of(std::size_t octet) const {
    if (octet == 0) return static_cast<std::uint8_t>(operation);
    auto at = (octet - 1) * 3;
    return static_cast<std::uint8_t>(digit_of(usage[at]) << 4 | digit_of(usage[at + 1]));
}

std::span<const Command> all_commands() {
    return table;
}

Found find_command(ScsiOperation operation, int service_action) {
    auto rows = rows_of(operation);
    if (rows.empty()) return {nullptr, Unknown::operation};
    for (const auto& command : rows)
        if (!command.has_service_action() || command.service_action == service_action)
            return {&command, {}};
    return {nullptr, Unknown::service_action};
}

Found find_command(ConstBuffer block) {
    if (block.size() < 6) return {nullptr, Unknown::operation};
    const auto operation = static_cast<ScsiOperation>(block[0]);
    int service_action = std::to_integer<int>(block[1]) & 0x1f;
    if (operation == ScsiOperation::variable_length) {
        auto start = decode<VariableLengthStart>(block);
        if (!start) return {nullptr, Unknown::operation};
        service_action = static_cast<int>(start->action);
        auto found = find_command(operation, service_action);
        if (found.command != nullptr && start->additional_length + 8u != found.command->size)
            return {nullptr, Unknown::service_action};
        if (found.command != nullptr && block.size() < found.command->size)
            return {nullptr, Unknown::operation};
        return found;
    }
    auto found = find_command(operation, service_action);
    if (found.command != nullptr && block.size() < found.command->size)
        return {nullptr, Unknown::operation};
    return found;
}

}  // namespace weft::scsi
