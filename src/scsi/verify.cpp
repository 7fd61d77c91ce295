// SPDX-License-Identifier: Apache-2.0
// VERIFY: is the medium readable, and does it hold what it should? WRITE AND VERIFY: write, then
// see whether it does.
#include "base/bytes.hpp"
#include "scsi/block_command.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

void compare_read(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, false);
    const auto wanted = part_of(task, 0);
    const auto found = part_of(task, 1);
    const auto differ = std::ranges::mismatch(wanted, found).in1;
    if (differ == wanted.end()) return unit.good(task);
    unit.refuse(task, miscompare(static_cast<std::uint64_t>(differ - wanted.begin())));
}

void compare_submit(LogicalUnit& unit, Task& task) {
    unit.transfer(task, BlockOperation::read, offset_of(unit, task), part_of(task, 1),
                  compare_read);
}

void compare_hold(LogicalUnit& unit, Task& task) {
    unit.hold_blocks(task, Hold::shared, compare_submit);
}

/// One block was sent, to be compared with each: it is written out over the first part.
void compare_repeat(LogicalUnit& unit, Task& task) {
    auto wanted = part_of(task, 0);
    for (std::size_t at = unit.block_bytes(); at < wanted.size(); at += unit.block_bytes())
        std::ranges::copy(wanted.first(unit.block_bytes()),
                          wanted.begin() + static_cast<std::ptrdiff_t>(at));
    compare_hold(unit, task);
}

void compare_collect(LogicalUnit& unit, Task& task) {
    const bool repeated = task.answer.length_out < task.work.bytes;
    unit.want_data(task, repeated ? compare_repeat : compare_hold);
}

// --- no data: the medium alone

void scan_pieces(LogicalUnit& unit, Task& task) {
    unit.transfer_pieces(task, BlockOperation::read);
}

void scan_hold(LogicalUnit& unit, Task& task) {
    unit.hold_blocks(task, Hold::shared, scan_pieces);
}

void scan(LogicalUnit& unit, Task& task) {
    auto& work = task.work;
    work.position = offset_of(unit, task);
    work.remaining = work.range.count * unit.block_bytes();
    if (work.remaining == 0) return unit.good(task);
    unit.take_memory(task,
                     static_cast<std::size_t>(std::min<std::uint64_t>(work.remaining, piece_bytes)),
                     scan_hold);
}

// --- write, and verify

void written(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, true);
    compare_submit(unit, task);
}

void write_submit(LogicalUnit& unit, Task& task) {
    unit.transfer(task, BlockOperation::write, offset_of(unit, task), part_of(task, 0), written);
}

void write_hold(LogicalUnit& unit, Task& task) {
    unit.hold_blocks(task, Hold::shared, write_submit);
}

void write_collect(LogicalUnit& unit, Task& task) {
    unit.want_data(task, write_hold);
}

bool accept_byte_check(LogicalUnit& unit, Task& task, ByteCheck check, bool single_too) {
    if (check == ByteCheck::medium_only || check == ByteCheck::every_block ||
        (single_too && check == ByteCheck::single_block))
        return true;
    unit.refuse(task, bad_field(task.work.command->size == 32 ? 10 : 1, 2));
    return false;
}

}  // namespace

template <class CommandBlock>
void verify(LogicalUnit& unit, Task& task) {
    const auto command = parse<CommandBlock>(task);
    const auto check = command.flags.byte_check;
    const bool alone = check == ByteCheck::medium_only;
    if (!accept(unit, task, command, alone ? Bound::by_medium : Bound::by_transfer)) return;
    if (!accept_byte_check(unit, task, check, true)) return;
    if (alone) return scan(unit, task);
    auto& work = task.work;
    const auto length = work.range.count * unit.block_bytes();
    const bool repeated = check == ByteCheck::single_block && length > 0;
    task.answer.length_out = repeated ? unit.block_bytes() : length;
    const bool whole = task.offered_out >= task.answer.length_out;
    // Of less than the command says, whole blocks are compared; the odd bytes lie where what is
    // read comes afterwards.
    work.bytes = repeated && whole
                     ? length
                     : round_down(std::min(task.offered_out, length), unit.block_bytes());
    if (work.bytes == 0) return unit.good(task);
    unit.take_memory(task, static_cast<std::size_t>(work.bytes) * 2, compare_collect);
}

template <class CommandBlock>
void write_and_verify(LogicalUnit& unit, Task& task) {
    const auto command = parse<CommandBlock>(task);
    if (!accept(unit, task, command, Bound::by_transfer)) return;
    if (!accept_byte_check(unit, task, command.flags.byte_check, false)) return;
    task.work.durable = true;
    auto& work = task.work;
    task.answer.length_out = work.range.count * unit.block_bytes();
    const auto offered = std::min(task.offered_out, task.answer.length_out);
    if (offered == 0) return unit.good(task);
    // Less than the command says: written, and there is nothing whole to verify.
    if (offered % unit.block_bytes() != 0) return write_partially(unit, task, offered);
    work.bytes = offered;
    unit.take_memory(task, static_cast<std::size_t>(work.bytes) * 2, write_collect);
}

template void verify<Verify10>(LogicalUnit&, Task&);
template void verify<Verify12>(LogicalUnit&, Task&);
template void verify<Verify16>(LogicalUnit&, Task&);
template void verify<Verify32>(LogicalUnit&, Task&);
template void write_and_verify<WriteAndVerify10>(LogicalUnit&, Task&);
template void write_and_verify<WriteAndVerify12>(LogicalUnit&, Task&);
template void write_and_verify<WriteAndVerify16>(LogicalUnit&, Task&);
template void write_and_verify<WriteAndVerify32>(LogicalUnit&, Task&);

}  // namespace weft::scsi
