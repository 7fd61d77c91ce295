// SPDX-License-Identifier: Apache-2.0
// What a logical unit does for its commands: memory, data, blocks, the device, and answers.
#include "scsi/logical_unit.hpp"
#include "scsi/target.hpp"

namespace weft::scsi {

using namespace wire;

void LogicalUnit::wait(Task& task, Waiting what, Step then) {
    task.work.waiting = what;
    task.work.step = then;
}

void LogicalUnit::take_memory(Task& task, std::size_t bytes, Step then) {
    WEFT_CHECK(task.work.memory.empty() && bytes > 0);
    auto& work = task.work;
    work.memory_wanted = bytes;
    wait(task, Waiting::memory, then);
    if (task.nexus->take_memory(task)) return resume(task);
    if (!task.impatient) return;
    task.nexus->stop_waiting(task);
    refuse_busy(task);
}

/// One that has other tasks here can wait for those; others must try again later.
void LogicalUnit::refuse_busy(Task& task) {
    end(task, task.nexus->tasks() > 1 ? ScsiStatus::task_set_full : ScsiStatus::busy);
}

bool LogicalUnit::lend(Task& task, BlockOperation operation, std::uint64_t offset,
                       std::uint64_t bytes) {
    // Once blocks are used exclusively, lent ones would make others wait: for a reader that is slow
    // to take its data, for a writer that is slow to send it.
    if (exclusive_seen_) return false;
    if (operation == BlockOperation::read && task.stable_data_in) return false;
    task.work.memory = device_->lend(operation, offset, bytes);
    task.work.pooled = false;
    return !task.work.memory.empty();
}

void LogicalUnit::want_data(Task& task, Step then) {
    auto bytes = std::min(task.offered_out, task.answer.length_out);
    wait(task, Waiting::data, then);
    if (bytes == 0) return resume(task);
    WEFT_CHECK(bytes <= task.work.memory.size());
    task.work.out[0] = task.work.memory.first(static_cast<std::size_t>(bytes));
    task.work.data_in_device = !task.work.pooled;
    task.data_wanted(task.work.out);
}

void LogicalUnit::hold_blocks(Task& task, Hold hold, Step then) {
    exclusive_seen_ |= hold == Hold::exclusive;
    refuse_if_erasing(task);
    if (task.work.ending) return;
    wait(task, Waiting::blocks, then);
    if (holds_.acquire(task, task.work.range, hold)) resume(task);
}

void LogicalUnit::visit_blocks(LogicalUnit& other, Task& task, BlockRange range, Step then) {
    WEFT_CHECK(!task.work.visits);
    task.work.visits = true;
    task.work.at = &other;
    ++other.visits_;
    wait(task, Waiting::blocks, then);
    if (other.holds_.acquire(task, range, Hold::shared)) resume(task);
}

void LogicalUnit::leave_blocks(Task& task) {
    WEFT_CHECK(task.work.visits);
    task.work.visits = false;
    auto& left = *std::exchange(task.work.at, this);
    left.give_up_blocks(task);
    left.resume_granted();
    --left.visits_;
    target_.progressed();
}

void LogicalUnit::transfer(Task& task, BlockOperation operation, std::uint64_t offset,
                           Buffer memory, Step then) {
    auto& work = task.work;
    work.device.operation = operation;
    work.device.durable = operation == BlockOperation::write && work.durable;
    work.device.offset = offset;
    work.device.length = 0;
    work.rest = memory;
    work.then = then;
    work.outcome = {};
    transfer_more(*this, task);
}

/// As much at a time as the device takes.
void LogicalUnit::transfer_more(LogicalUnit& unit, Task& task) {
    auto& work = task.work;
    if (!work.outcome || work.rest.empty()) return work.then(unit, task);
    auto& request = work.device;
    auto bytes = std::min<std::size_t>(work.rest.size(), work.at->traits().maximum_transfer);
    work.piece = work.rest.first(bytes);
    work.rest = work.rest.subspan(bytes);
    request.offset += request.length;
    request.length = bytes;
    request.memory = {&work.piece, 1};
    request.extents = {};
    unit.wait(task, Waiting::device, transfer_more);
    work.at->device_->submit(request);
}

void LogicalUnit::transfer_pieces(Task& task, BlockOperation operation) {
    task.work.device.operation = operation;
    task.work.outcome = {};
    next_piece(*this, task);
}

void LogicalUnit::next_piece(LogicalUnit& unit, Task& task) {
    auto& work = task.work;
    const auto operation = work.device.operation;
    if (!work.outcome) return unit.refuse_outcome(task, operation == BlockOperation::write);
    if (work.remaining == 0) return unit.good(task);
    const auto bytes = std::min<std::uint64_t>(work.remaining, work.memory.size());
    const auto at = work.position;
    work.position += bytes;
    work.remaining -= bytes;
    unit.transfer(task, operation, at, work.memory.first(static_cast<std::size_t>(bytes)),
                  next_piece);
}

void LogicalUnit::ask_device(Task& task, BlockOperation operation, std::uint64_t offset,
                             std::uint64_t length, Step then) {
    auto& request = task.work.device;
    request.operation = operation;
    request.durable = task.work.durable;
    request.keep_space = task.work.keep_space;
    request.offset = offset;
    request.length = length;
    request.memory = {};
    task.work.rest = {};
    task.work.outcome = {};
    wait(task, Waiting::device, then);
    device_->submit(request);
}

void LogicalUnit::good(Task& task) {
    end(task, ScsiStatus::good);
}

void LogicalUnit::end(Task& task, ScsiStatus status) {
    task.work.ending = true;
    if (!task.work.failed) task.answer.status = status;
}

void LogicalUnit::refuse(Task& task, const Sense& sense) {
    if (!task.work.failed) task.answer.sense = encode_sense(sense, state_.mode.descriptor_sense);
    end(task, ScsiStatus::check_condition);
}

void LogicalUnit::refuse_outcome(Task& task, bool changing) {
    const auto& request = task.work.device;
    refuse(task,
           sense_of(task.work.outcome.error(), changing, request.offset / options_.block_bytes));
}

void LogicalUnit::answer(Task& task, std::size_t bytes, std::uint64_t allocation_length) {
    auto told = std::min<std::uint64_t>({bytes, allocation_length, task.work.memory.size()});
    answer_memory(task, task.work.memory.first(static_cast<std::size_t>(told)));
}

void LogicalUnit::answer_memory(Task& task, Buffer memory) {
    task.answer.length_in = std::max<std::uint64_t>(task.answer.length_in, memory.size());
    auto sent = std::min<std::uint64_t>(memory.size(), task.accepted_in);
    task.work.in[0] = memory.first(static_cast<std::size_t>(sent));
    if (sent > 0) task.answer.data_in = task.work.in;
    good(task);
}

}  // namespace weft::scsi
