// SPDX-License-Identifier: Apache-2.0
// READ and WRITE of all lengths. Where the device lends its memory nothing is copied: a read is
// sent out of it, a write arrives in it. Otherwise memory is pooled.
#include "base/bytes.hpp"
#include "scsi/block_command.hpp"

namespace weft::scsi {

using namespace wire;

bool accept_range(LogicalUnit& unit, Task& task, BlockRange range, Bound bound) {
    if (!within(range.first, range.count, unit.block_count())) {
        unit.refuse(task, out_of_range(range.first));
        return false;
    }
    if (bound == Bound::by_transfer && range.count > unit.transfer_blocks()) {
        const auto& command = *task.work.command;
        unit.refuse(task, bad_field(static_cast<std::uint16_t>(command.size == 10 ? 7 : 10)));
        return false;
    }
    task.work.range = range;
    return true;
}

void end_reading(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, false);
    unit.good(task);
}

void end_change(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, true);
    unit.good(task);
}

namespace {

// --- reading

void read_done(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, false);
    unit.answer_memory(task, task.work.memory.first(static_cast<std::size_t>(task.work.bytes)));
}

void read_submit(LogicalUnit& unit, Task& task) {
    unit.transfer(task, BlockOperation::read, offset_of(unit, task),
                  task.work.memory.first(static_cast<std::size_t>(task.work.bytes)), read_done);
}

void read_hold(LogicalUnit& unit, Task& task) {
    unit.hold_blocks(task, Hold::shared, read_submit);
}

// --- writing

void write_submit(LogicalUnit& unit, Task& task) {
    unit.transfer(task, BlockOperation::write, offset_of(unit, task),
                  task.work.memory.first(static_cast<std::size_t>(task.work.bytes)), end_change);
}

void write_hold(LogicalUnit& unit, Task& task) {
    unit.hold_blocks(task, Hold::shared, write_submit);
}

void write_collect(LogicalUnit& unit, Task& task) {
    unit.want_data(task, write_hold);
}

/// Bytes that arrive in the device's own memory are written as they come: the blocks are held from
/// the first on.
void write_collect_lent(LogicalUnit& unit, Task& task) {
    unit.want_data(task, write_submit);
}

// --- writing less than the command says, and not whole blocks: the rest of the last block stays

void write_part_merge(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, false);
    auto& work = task.work;
    const auto whole = static_cast<std::size_t>(round_up(work.bytes, unit.block_bytes()));
    const auto gone = static_cast<std::size_t>(work.bytes % unit.block_bytes());
    auto last = work.memory.subspan(whole, unit.block_bytes());
    std::ranges::copy(last.subspan(gone),
                      work.memory.begin() + static_cast<std::ptrdiff_t>(work.bytes));
    unit.transfer(task, BlockOperation::write, offset_of(unit, task), work.memory.first(whole),
                  end_change);
}

void write_part_read(LogicalUnit& unit, Task& task) {
    auto& work = task.work;
    const auto whole = round_up(work.bytes, unit.block_bytes());
    unit.transfer(task, BlockOperation::read, offset_of(unit, task) + whole - unit.block_bytes(),
                  work.memory.subspan(static_cast<std::size_t>(whole), unit.block_bytes()),
                  write_part_merge);
}

void write_part_hold(LogicalUnit& unit, Task& task) {
    unit.hold_blocks(task, Hold::exclusive, write_part_read);
}

void write_part_collect(LogicalUnit& unit, Task& task) {
    unit.want_data(task, write_part_hold);
}

}  // namespace

void write_partially(LogicalUnit& unit, Task& task, std::uint64_t bytes) {
    task.work.bytes = bytes;
    const auto whole = round_up(task.work.bytes, unit.block_bytes());
    unit.take_memory(task, static_cast<std::size_t>(whole) + unit.block_bytes(),
                     write_part_collect);
}

template <class CommandBlock>
void read_blocks(LogicalUnit& unit, Task& task) {
    if (!accept(unit, task, parse<CommandBlock>(task), Bound::by_transfer)) return;
    auto& work = task.work;
    const auto length = work.range.count * unit.block_bytes();
    task.answer.length_in = length;
    work.bytes = std::min(length, round_up(std::min(task.accepted_in, length), unit.block_bytes()));
    if (work.bytes == 0) return unit.good(task);
    if (unit.lend(task, BlockOperation::read, offset_of(unit, task), work.bytes))
        return read_hold(unit, task);
    unit.take_memory(task, static_cast<std::size_t>(work.bytes), read_hold);
}

template <class CommandBlock>
void write_blocks(LogicalUnit& unit, Task& task) {
    if (!accept(unit, task, parse<CommandBlock>(task), Bound::by_transfer)) return;
    auto& work = task.work;
    task.answer.length_out = work.range.count * unit.block_bytes();
    work.bytes = std::min(task.answer.length_out, task.offered_out);
    if (work.bytes == 0) return unit.good(task);
    if (work.bytes % unit.block_bytes() != 0) return write_partially(unit, task, work.bytes);
    if (unit.lend(task, BlockOperation::write, offset_of(unit, task), work.bytes))
        return unit.hold_blocks(task, Hold::shared, write_collect_lent);
    unit.take_memory(task, static_cast<std::size_t>(work.bytes), write_collect);
}

template void read_blocks<Read6>(LogicalUnit&, Task&);
template void read_blocks<Read10>(LogicalUnit&, Task&);
template void read_blocks<Read12>(LogicalUnit&, Task&);
template void read_blocks<Read16>(LogicalUnit&, Task&);
template void read_blocks<Read32>(LogicalUnit&, Task&);
template void write_blocks<Write6>(LogicalUnit&, Task&);
template void write_blocks<Write10>(LogicalUnit&, Task&);
template void write_blocks<Write12>(LogicalUnit&, Task&);
template void write_blocks<Write16>(LogicalUnit&, Task&);
template void write_blocks<Write32>(LogicalUnit&, Task&);

}  // namespace weft::scsi
