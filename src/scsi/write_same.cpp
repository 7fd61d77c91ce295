// SPDX-License-Identifier: Apache-2.0
// WRITE SAME: one block, over and over. Zeroes are the device's own business where it can make
// them; with UNMAP they may become a hole.
#include "scsi/block_command.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

void done(LogicalUnit& unit, Task& task) {
    if (!task.work.outcome) return unit.refuse_outcome(task, true);
    unit.good(task);
}

void begin_writing(LogicalUnit& unit, Task& task) {
    auto& work = task.work;
    const auto block = work.memory.first(unit.block_bytes());
    // Unmapped blocks read as zero whatever was sent: initiators send zeroes, and libiscsi's tests
    // send others and want zeroes.
    const bool zero = (work.option != 0 && unit.unmapped_reads_zero()) ||
                      std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; });
    if (zero && unit.traits().can_write_zeroes) {
        work.keep_space = work.option == 0;
        return unit.ask_device(task, BlockOperation::write_zeroes, work.position, work.remaining,
                               done);
    }
    for (auto at = block.size(); at + block.size() <= work.memory.size(); at += block.size())
        std::ranges::copy(block, work.memory.begin() + static_cast<std::ptrdiff_t>(at));
    unit.transfer_pieces(task, BlockOperation::write);
}

void hold(LogicalUnit& unit, Task& task) {
    unit.hold_blocks(task, Hold::shared, begin_writing);
}

void collect(LogicalUnit& unit, Task& task) {
    if (task.answer.length_out == 0)
        std::ranges::fill(task.work.memory.first(unit.block_bytes()), std::byte{0});
    unit.want_data(task, hold);
}

bool accept_flags_of_same(LogicalUnit& unit, Task& task, const WriteSameFlags& flags,
                          bool may_have_no_data) {
    const std::uint16_t octet = task.work.command->size == 32 ? 10 : 1;
    const bool unmap_allowed = unit.thin();
    std::optional<std::uint8_t> wrong;
    if (flags.protect != 0) wrong = 7;
    if (flags.anchor) wrong = 4;
    if (flags.unmap && !unmap_allowed) wrong = 3;
    if (flags.no_data_buffer && !may_have_no_data) wrong = 0;
    if (!wrong) return true;
    unit.refuse(task, bad_field(octet, *wrong));
    return false;
}

}  // namespace

template <class CommandBlock>
void write_same(LogicalUnit& unit, Task& task) {
    const auto command = parse<CommandBlock>(task);
    constexpr bool may_have_no_data = wire_size<CommandBlock>() > 10;
    if (!accept_flags_of_same(unit, task, command.flags, may_have_no_data)) return;
    if (!accept_range(unit, task, blocks_of(command), Bound::by_medium)) return;
    auto& work = task.work;
    work.durable = !unit.state().mode.write_cache;
    // No count says: to the end.
    if (work.range.count == 0) work.range.count = unit.block_count() - work.range.first;
    work.position = offset_of(unit, task);
    work.remaining = work.range.count * unit.block_bytes();
    if (work.range.count > write_same_blocks_max)
        return unit.refuse(
            task, bad_field(static_cast<std::uint16_t>(wire_size<CommandBlock>() == 10 ? 7 : 10)));
    work.option = command.flags.unmap ? 1 : 0;
    task.answer.length_out = command.flags.no_data_buffer ? 0 : unit.block_bytes();
    if (task.offered_out != task.answer.length_out)
        return unit.refuse(task,
                           illegal(AdditionalSense::invalid_field_in_command_information_unit));
    if (work.remaining == 0) return unit.good(task);
    // A whole number of blocks, so that pieces follow each other.
    auto piece = std::min<std::uint64_t>(work.remaining, piece_bytes);
    unit.take_memory(task, static_cast<std::size_t>(piece - piece % unit.block_bytes()), collect);
}

template void write_same<WriteSame10>(LogicalUnit&, Task&);
template void write_same<WriteSame16>(LogicalUnit&, Task&);
template void write_same<WriteSame32>(LogicalUnit&, Task&);

}  // namespace weft::scsi
