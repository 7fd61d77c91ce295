// SPDX-License-Identifier: Apache-2.0
// What sees and changes blocks in one go: COMPARE AND WRITE, ORWRITE, WRITE ATOMIC and the XOR
// commands. Their blocks are held alone from before they are read until they are written, so no
// other command's data comes in between. Their data is collected first, and from the first of them
// on no command lends the unit's memory (see LogicalUnit::lend): nobody waits for another initiator
// to send or to take its data, but for those whose commands were under way at that moment.
#include "scsi/block_command.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

/// The data must be exactly as long as the command says: half of it would mean something else.
bool accept_length(LogicalUnit& unit, Task& task, std::uint64_t bytes) {
    task.answer.length_out = bytes;
    if (task.offered_out == bytes) return true;
    unit.refuse(task, bad_field(13));
    return false;
}

/// Odd lengths of ORWRITE and its kin: what came, as far as it is whole blocks.
void collect(LogicalUnit& unit, Task& task, std::size_t parts, Step then) {
    auto& work = task.work;
    const auto length = work.range.count * unit.block_bytes();
    task.answer.length_out = length;
    if (task.offered_out < length)
        return unit.refuse(task,
                           illegal(AdditionalSense::invalid_field_in_command_information_unit));
    work.bytes = length;
    if (length == 0) return unit.good(task);
    unit.take_memory(task, static_cast<std::size_t>(length) * parts, then);
}

// --- COMPARE AND WRITE: what to compare with, what to write, what is there

void compare_and_write_found(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, false);
    const auto wanted = part_of(task, 0);
    const auto differ = std::ranges::mismatch(wanted, part_of(task, 2)).in1;
    if (differ != wanted.end())
        return unit.refuse(task, miscompare(static_cast<std::uint64_t>(differ - wanted.begin())));
    unit.transfer(task, BlockOperation::write, offset_of(unit, task), part_of(task, 1), end_change);
}

void compare_and_write_read(LogicalUnit& unit, Task& task) {
    unit.transfer(task, BlockOperation::read, offset_of(unit, task), part_of(task, 2),
                  compare_and_write_found);
}

void compare_and_write_hold(LogicalUnit& unit, Task& task) {
    unit.hold_blocks(task, Hold::exclusive, compare_and_write_read);
}

void compare_and_write_collect(LogicalUnit& unit, Task& task) {
    unit.want_data(task, compare_and_write_hold);
}

// --- ORWRITE and XPWRITE: the data, and what is there

template <class Merge>
void merge_and_write(LogicalUnit& unit, Task& task, Merge merge) {
    if (!task.work.outcome) return unit.refuse_outcome(task, false);
    auto data = part_of(task, 0);
    auto found = part_of(task, 1);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = merge(data[i], found[i]);
    unit.transfer(task, BlockOperation::write, offset_of(unit, task), data, end_change);
}

void or_found(LogicalUnit& unit, Task& task) {
    merge_and_write(unit, task, [](std::byte one, std::byte other) { return one | other; });
}

void xor_found(LogicalUnit& unit, Task& task) {
    merge_and_write(unit, task, [](std::byte one, std::byte other) { return one ^ other; });
}

template <Step found>
void merge_read(LogicalUnit& unit, Task& task) {
    unit.transfer(task, BlockOperation::read, offset_of(unit, task), part_of(task, 1), found);
}

template <Step found>
void merge_hold(LogicalUnit& unit, Task& task) {
    unit.hold_blocks(task, Hold::exclusive, merge_read<found>);
}

template <Step found>
void merge_collect(LogicalUnit& unit, Task& task) {
    unit.want_data(task, merge_hold<found>);
}

// --- XDWRITEREAD: the data is written, and its difference from what was there is the answer

/// Over what was there.
Buffer difference_in(Task& task) {
    auto data = part_of(task, 0);
    auto found = part_of(task, 1);
    for (std::size_t i = 0; i < data.size(); ++i) found[i] ^= data[i];
    return found;
}

void difference_answer(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, true);
    unit.answer_memory(task, difference_in(task));
}

void difference_found(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, false);
    if (task.work.option != 0) return difference_answer(unit, task);
    unit.transfer(task, BlockOperation::write, offset_of(unit, task), part_of(task, 0),
                  difference_answer);
}

// --- XDWRITE and XDREAD: the same in two commands, with the difference kept in between

void difference_keep(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, true);
    unit.state().differences.keep(*task.nexus, task.work.range, difference_in(task));
    unit.good(task);
}

void difference_write(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, false);
    if (task.work.option != 0) return difference_keep(unit, task);
    unit.transfer(task, BlockOperation::write, offset_of(unit, task), part_of(task, 0),
                  difference_keep);
}

void difference_tell(LogicalUnit& unit, Task& task) {
    auto& differences = unit.state().differences;
    const auto octets = differences.of(*task.nexus, task.work.range);
    if (octets.empty()) return unit.refuse(task, bad_field(2));
    std::ranges::copy(octets, task.work.memory.begin());
    differences.forget(*task.nexus, task.work.range);
    unit.answer_memory(task, task.work.memory.first(octets.size()));
}

bool accept_kept(LogicalUnit& unit, Task& task) {
    if (task.work.range.count * unit.block_bytes() <= piece_bytes) return true;
    unit.refuse(task, bad_field(7));
    return false;
}

// --- WRITE ATOMIC

void atomic_write(LogicalUnit& unit, Task& task) {
    unit.transfer(task, BlockOperation::write, offset_of(unit, task), part_of(task, 0), end_change);
}

void atomic_hold(LogicalUnit& unit, Task& task) {
    unit.hold_blocks(task, Hold::exclusive, atomic_write);
}

void atomic_collect(LogicalUnit& unit, Task& task) {
    unit.want_data(task, atomic_hold);
}

}  // namespace

void compare_and_write(LogicalUnit& unit, Task& task) {
    const auto command = parse<CompareAndWrite>(task);
    if (!accept(unit, task, command, Bound::by_transfer)) return;
    auto& work = task.work;
    work.bytes = work.range.count * unit.block_bytes();
    if (!accept_length(unit, task, work.bytes * 2)) return;
    if (work.bytes == 0) return unit.good(task);
    unit.take_memory(task, static_cast<std::size_t>(work.bytes) * 3, compare_and_write_collect);
}

void or_write(LogicalUnit& unit, Task& task) {
    if (!accept(unit, task, parse<OrWrite16>(task), Bound::by_transfer)) return;
    collect(unit, task, 2, merge_collect<or_found>);
}

template <class CommandBlock>
void xor_parity_write(LogicalUnit& unit, Task& task) {
    if (!accept(unit, task, parse<CommandBlock>(task), Bound::by_transfer)) return;
    collect(unit, task, 2, merge_collect<xor_found>);
}

template <class CommandBlock>
void xor_write_read(LogicalUnit& unit, Task& task) {
    const auto command = parse<CommandBlock>(task);
    if (!accept(unit, task, command, Bound::by_transfer)) return;
    task.work.option = command.flags.disable_write ? 1 : 0;
    task.answer.length_in = task.work.range.count * unit.block_bytes();
    collect(unit, task, 2, merge_collect<difference_found>);
}

void xor_write(LogicalUnit& unit, Task& task) {
    const auto command = parse<XorWrite10>(task);
    if (!accept(unit, task, command, Bound::by_transfer) || !accept_kept(unit, task)) return;
    task.work.option = command.flags.disable_write ? 1 : 0;
    collect(unit, task, 2, merge_collect<difference_write>);
}

void xor_read(LogicalUnit& unit, Task& task) {
    if (!accept(unit, task, parse<XorRead10>(task), Bound::by_transfer)) return;
    if (!accept_kept(unit, task)) return;
    if (task.work.range.count == 0) return unit.good(task);
    const auto length = task.work.range.count * unit.block_bytes();
    unit.take_memory(task, static_cast<std::size_t>(length), difference_tell);
}

std::uint32_t atomic_blocks(LogicalUnit& unit) {
    return std::max<std::uint32_t>(1, unit.traits().preferred_block / unit.block_bytes());
}

void write_atomic(LogicalUnit& unit, Task& task) {
    const auto command = parse<WriteAtomic16>(task);
    if (!accept(unit, task, command, Bound::by_transfer)) return;
    if (command.atomic_boundary != 0) return unit.refuse(task, bad_field(10));
    const auto unit_of_atoms = atomic_blocks(unit);
    if (command.block_address % unit_of_atoms != 0) return unit.refuse(task, bad_field(2));
    if (command.block_count % unit_of_atoms != 0) return unit.refuse(task, bad_field(12));
    collect(unit, task, 1, atomic_collect);
}

template void xor_parity_write<XorParityWrite10>(LogicalUnit&, Task&);
template void xor_parity_write<XorParityWrite32>(LogicalUnit&, Task&);
template void xor_write_read<XorWriteRead10>(LogicalUnit&, Task&);
template void xor_write_read<XorWriteRead32>(LogicalUnit&, Task&);

}  // namespace weft::scsi
