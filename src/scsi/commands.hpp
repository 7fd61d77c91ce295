// SPDX-License-Identifier: Apache-2.0
// The first step of every command, by the file that has it.
#pragma once

#include <optional>

#include "scsi/logical_unit.hpp"
#include "weft/result.hpp"

namespace weft::scsi {

/// The command block as what the table says it is: it cannot fail once a command was found.
template <class CommandBlock>
CommandBlock parse(const Task& task) {
    auto parsed = decode<CommandBlock>(task.command_block());
    WEFT_CHECK(parsed.has_value());
    return *parsed;
}

// inquiry.cpp
void inquiry(LogicalUnit& unit, Task& task);

// status.cpp
void test_unit_ready(LogicalUnit& unit, Task& task);
void request_sense(LogicalUnit& unit, Task& task);
void read_capacity_10(LogicalUnit& unit, Task& task);
void read_capacity_16(LogicalUnit& unit, Task& task);
void report_luns(LogicalUnit& unit, Task& task);
void read_defect_data_10(LogicalUnit& unit, Task& task);
void read_defect_data_12(LogicalUnit& unit, Task& task);
void send_diagnostic(LogicalUnit& unit, Task& task);
void receive_diagnostic_results(LogicalUnit& unit, Task& task);
void log_sense(LogicalUnit& unit, Task& task);

// mode.cpp
void mode_sense_6(LogicalUnit& unit, Task& task);
void mode_sense_10(LogicalUnit& unit, Task& task);
void mode_select_6(LogicalUnit& unit, Task& task);
void mode_select_10(LogicalUnit& unit, Task& task);

// transfer.cpp; each for the command blocks of 6, 10, 12, 16 and 32 octets there are
template <class CommandBlock>
void read_blocks(LogicalUnit& unit, Task& task);
template <class CommandBlock>
void write_blocks(LogicalUnit& unit, Task& task);

// verify.cpp
template <class CommandBlock>
void verify(LogicalUnit& unit, Task& task);
template <class CommandBlock>
void write_and_verify(LogicalUnit& unit, Task& task);

// cache.cpp
template <class CommandBlock>
void synchronize_cache(LogicalUnit& unit, Task& task);
template <class CommandBlock>
void prefetch(LogicalUnit& unit, Task& task);

// atomic.cpp: what reads and writes in one go
void compare_and_write(LogicalUnit& unit, Task& task);
void or_write(LogicalUnit& unit, Task& task);
void write_atomic(LogicalUnit& unit, Task& task);
template <class CommandBlock>
void xor_parity_write(LogicalUnit& unit, Task& task);
void xor_write(LogicalUnit& unit, Task& task);
void xor_read(LogicalUnit& unit, Task& task);
template <class CommandBlock>
void xor_write_read(LogicalUnit& unit, Task& task);

// write_same.cpp
template <class CommandBlock>
void write_same(LogicalUnit& unit, Task& task);

// provisioning.cpp
void unmap(LogicalUnit& unit, Task& task);
void get_lba_status(LogicalUnit& unit, Task& task);

// reserve.cpp
void reserve(LogicalUnit& unit, Task& task);
void release(LogicalUnit& unit, Task& task);
void persistent_reserve_in(LogicalUnit& unit, Task& task);

// reserve_out.cpp
void persistent_reserve_out(LogicalUnit& unit, Task& task);

// medium.cpp
void start_stop_unit(LogicalUnit& unit, Task& task);
void prevent_allow_removal(LogicalUnit& unit, Task& task);

// erase.cpp
void sanitize(LogicalUnit& unit, Task& task);
void format_unit(LogicalUnit& unit, Task& task);

// report.cpp
void report_operation_codes(LogicalUnit& unit, Task& task);
void report_task_management(LogicalUnit& unit, Task& task);
void report_timestamp(LogicalUnit& unit, Task& task);
void set_timestamp(LogicalUnit& unit, Task& task);

// port_groups.cpp
void report_port_groups(LogicalUnit& unit, Task& task);
void set_port_groups(LogicalUnit& unit, Task& task);
/// What the state of the port the nexus came through forbids.
std::optional<Sense> access_refusal(LogicalUnit& unit, Nexus& nexus);

// copy.cpp
void extended_copy(LogicalUnit& unit, Task& task);

// vendor_commands.cpp
void vendor_command(LogicalUnit& unit, Task& task);

// copy_results.cpp
void receive_copy_results(LogicalUnit& unit, Task& task);

}  // namespace weft::scsi
