// SPDX-License-Identifier: Apache-2.0
#include "scsi/vendor_commands.hpp"

#include "scsi/commands.hpp"
#include "scsi/target.hpp"
#include "wire/scsi_array.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

void answered(LogicalUnit& unit, Task& task) {
    unit.end(task, task.answer.status);
}

void hand_over(LogicalUnit& unit, Task& task) {
    if (unit.first_undelivered(*task.nexus) != &task)
        return unit.wait(task, Waiting::order, hand_over);
    unit.delivered(task);
    unit.wait(task, Waiting::vendor, answered);
    unit.options().vendor_commands->receive(task.work.call);
    unit.deliver_next(*task.nexus);
}

void collect(LogicalUnit& unit, Task& task) {
    unit.want_data(task, hand_over);
}

}  // namespace

void vendor_command(LogicalUnit& unit, Task& task) {
    const auto block = parse<ArrayCommandBlock>(task);
    if (block.parameter_length > vendor_bytes_max)
        return unit.refuse(task, parameter_length_error());
    task.answer.length_out = block.parameter_length;
    unit.await_delivery(task);
    const auto room = std::max<std::uint64_t>(
        block.parameter_length, std::min<std::uint64_t>(task.accepted_in, vendor_bytes_max));
    if (room == 0) return hand_over(unit, task);
    unit.take_memory(task, static_cast<std::size_t>(room), collect);
}

ConstBuffer VendorCall::command_block() const {
    return task_.command_block().first(wire_size<ArrayCommandBlock>());
}

ConstBuffer VendorCall::parameters() const {
    const auto came = std::min(task_.offered_out, task_.answer.length_out);
    return ConstBuffer(task_.work.memory).first(static_cast<std::size_t>(came));
}

const Nexus& VendorCall::sender() const {
    return *task_.nexus;
}

std::size_t VendorCall::room_in() const {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(task_.accepted_in, task_.work.memory.size()));
}

void VendorCall::answer(ScsiStatus status, ConstBuffer descriptors, ConstBuffer data_in) {
    WEFT_CHECK(task_.work.waiting == Waiting::vendor);
    const auto key =
        status == ScsiStatus::check_condition ? SenseKey::vendor_specific : SenseKey::no_sense;
    task_.answer.status = status;
    task_.answer.sense = encode_descriptors(key, descriptors);
    task_.answer.length_in = data_in.size();
    const auto sent = std::min(data_in.size(), room_in());
    if (sent > 0) {
        std::copy_n(data_in.begin(), sent, task_.work.memory.begin());
        task_.work.in[0] = task_.work.memory.first(sent);
        task_.answer.data_in = task_.work.in;
    }
    task_.work.waiting = Waiting::nothing;
    task_.work.unit->resume(task_);
}

// --- the order in which calls of one nexus are handed over

void LogicalUnit::await_delivery(Task& task) {
    task.work.undelivered = true;
    ++at(*task.nexus).undelivered;
}

void LogicalUnit::delivered(Task& task) {
    task.work.undelivered = false;
    --at(*task.nexus).undelivered;
}

Task* LogicalUnit::first_undelivered(const Nexus& nexus) const {
    Task* oldest = nullptr;  // the list has the newest first
    for (Task* task = first_; task != nullptr; task = task->work.after)
        if (task->nexus == &nexus && task->work.undelivered) oldest = task;
    return oldest;
}

/// Those whose parameters came before their turn, one after another and not inside each other.
void LogicalUnit::deliver_next(Nexus& nexus) {
    auto& here = at(nexus);
    if (here.delivering) return;
    Target::Pause pause(target_);  // the nexus stays, whatever those who are resumed do
    here.delivering = true;
    while (here.undelivered > 0) {
        Task* next = first_undelivered(nexus);
        if (next->work.waiting != Waiting::order) break;
        resume(*next);
    }
    here.delivering = false;
}

}  // namespace weft::scsi
