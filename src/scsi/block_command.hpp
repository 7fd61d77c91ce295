// SPDX-License-Identifier: Apache-2.0
// What the commands that name blocks have in common, whatever the length of their command block:
// which blocks, which flags, and whether a unit can do it.
#pragma once

#include "scsi/commands.hpp"
#include "wire/scsi_block_commands.hpp"
#include "wire/scsi_block_commands_32.hpp"

namespace weft::scsi {

/// The blocks of any of these command blocks.
template <class CommandBlock>
BlockRange blocks_of(const CommandBlock& command) {
    if constexpr (requires { command.blocks(); })
        return {command.block_address, command.blocks()};
    else
        return {command.block_address, command.block_count};
}

/// Whether a transfer's length counts against the unit's longest.
enum class Bound : std::uint8_t { by_transfer, by_medium };

/// Remembers the range; or refuses what is not on the medium or too long.
bool accept_range(LogicalUnit& unit, Task& task, BlockRange range, Bound bound);

/// The flags a unit without protection information, and perhaps without cache control, refuses.
template <class Flags>
bool accept_flags(LogicalUnit& unit, Task& task, const Flags& flags) {
    const std::uint16_t octet = task.work.command->size == 32 ? 10 : 1;
    if (flags.protect != 0) {
        unit.refuse(task, bad_field(octet, 7));
        return false;
    }
    bool cache_bits = false;
    if constexpr (requires { flags.disable_page_out; }) cache_bits |= flags.disable_page_out;
    if constexpr (requires { flags.force_unit_access; }) cache_bits |= flags.force_unit_access;
    if (cache_bits && !unit.options().cache_control) {
        unit.refuse(task, bad_field(octet, 4));
        return false;
    }
    task.work.durable = !unit.state().mode.write_cache;
    if constexpr (requires { flags.force_unit_access; })
        task.work.durable |= flags.force_unit_access;
    return true;
}

/// All of what most of them ask.
template <class CommandBlock>
bool accept(LogicalUnit& unit, Task& task, const CommandBlock& command, Bound bound) {
    if constexpr (requires { command.flags.protect; }) {
        if (!accept_flags(unit, task, command.flags)) return false;
    } else {
        task.work.durable = !unit.state().mode.write_cache;
    }
    return accept_range(unit, task, blocks_of(command), bound);
}

/// The last step of what reads or changes the medium and has nothing to tell: good, or what the
/// device said.
void end_reading(LogicalUnit& unit, Task& task);
void end_change(LogicalUnit& unit, Task& task);

/// Writes what the initiator offers, less than the command says and not whole blocks: the rest of
/// the last block stays as it is.
void write_partially(LogicalUnit& unit, Task& task, std::uint64_t bytes);

/// In how many blocks at a time, and at multiples of how many, a unit writes atomically: the pieces
/// its device likes.
std::uint32_t atomic_blocks(LogicalUnit& unit);

/// Where the task's blocks begin, in bytes.
inline std::uint64_t offset_of(LogicalUnit& unit, const Task& task) {
    return task.work.range.first * unit.block_bytes();
}

/// One of the parts of equal size that a task divided its memory into.
inline Buffer part_of(const Task& task, std::size_t which) {
    const auto size = static_cast<std::size_t>(task.work.bytes);
    return task.work.memory.subspan(which * size, size);
}

}  // namespace weft::scsi
