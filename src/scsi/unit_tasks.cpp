// SPDX-License-Identifier: Apache-2.0
// The way of a task that has begun: what carrier and device say, the blocks it waits for, and its
// end, be it its own or an abort.
#include "scsi/logical_unit.hpp"
#include "scsi/target.hpp"

namespace weft::scsi {

using namespace wire;

// --- what a carrier calls

void LogicalUnit::data_came(Task& task) {
    WEFT_CHECK(task.work.waiting == Waiting::data);
    task.work.waiting = Waiting::nothing;
    resume(task);
}

void LogicalUnit::data_failed(Task& task, Sense why) {
    WEFT_CHECK(task.work.waiting == Waiting::data);
    task.work.waiting = Waiting::nothing;
    task.answer.status = ScsiStatus::check_condition;
    task.answer.sense = encode_sense(why, state_.mode.descriptor_sense);
    // What has come is in the device already: it must be told, and then the task has failed.
    if (task.work.data_in_device)
        task.work.failed = true;
    else
        task.work.ending = true;
    resume(task);
}

void LogicalUnit::release(Task& task) {
    auto& work = task.work;
    WEFT_CHECK(work.finished);
    ++entered_;
    Nexus& nexus = *task.nexus;
    const bool served = work.pooled;
    if (work.pooled) nexus.share().give_back(work.memory);
    work.memory = {};
    work.pooled = false;
    give_up_blocks(task);
    resume_granted();
    unlink(task);
    work.unit = nullptr;
    nexus.task_gone();
    auto& pool = *target_.options().pool;
    if (served) pool.serve_waiting();
    --entered_;
    target_.progressed();
}

void LogicalUnit::device_completed(Task& task, Result<void> outcome) {
    auto& work = task.work;
    WEFT_CHECK(work.waiting == Waiting::device);
    work.waiting = Waiting::nothing;
    work.outcome = outcome;
    resume(task);
}

/// Steps run one after another: what one began and was done at once goes on when it has returned.
void LogicalUnit::resume(Task& task) {
    auto& work = task.work;
    if (work.running) {
        work.ready = true;
        return;
    }
    work.running = true;
    do {
        work.ready = false;
        work.waiting = Waiting::nothing;
        if (work.aborted && !work.data_in_device) work.ending = true;
        if (work.ending) break;
        auto step = std::exchange(work.step, nullptr);
        WEFT_CHECK(step != nullptr);
        step(*this, task);
    } while (work.ready && !work.ending);
    work.running = false;
    if (work.ending) finish(task);
}

/// Those who waited for them stand in line from now on, until resume_granted().
void LogicalUnit::give_up_blocks(Task& task) {
    holds_.release(task, [this](Task& other) { granted_.push_back(other); });
}

void LogicalUnit::stop_waiting_for_blocks(Task& task) {
    if (task.work.hold != Hold::none)
        granted_.remove(task);
    else
        holds_.forget(task, [this](Task& other) { granted_.push_back(other); });
}

void LogicalUnit::resume_granted() {
    while (!granted_.empty()) {
        Task& task = granted_.pop_front();
        auto& unit = *task.work.unit;
        if (!task.work.visits) unit.refuse_if_erasing(task);
        unit.resume(task);
    }
}

/// What was accepted before an erasure began, and comes to its blocks after that, would undo it.
void LogicalUnit::refuse_if_erasing(Task& task) {
    if (auto sense = erasure_refusal(task.work.command)) refuse(task, *sense);
}

void LogicalUnit::finish(Task& task) {
    auto& work = task.work;
    WEFT_CHECK(!work.finished && work.waiting != Waiting::device);
    if (work.visits) leave_blocks(task);
    work.finished = true;
    if (work.aborted) {
        task.answer.end = TaskEnd::aborted;
        task.answer.data_in = {};
    }
    ++entered_;
    if (work.has_turn) {
        --running_;
        if (work.ordered) ordered_runs_ = false;
    }
    // What is sent out of the device's own memory stays held until it has left.
    const bool keeps_blocks = !task.answer.data_in.empty() && !work.pooled;
    if (!keeps_blocks) give_up_blocks(task);
    if (work.undelivered) {
        delivered(task);
        deliver_next(*task.nexus);
    }
    // Others that waited go on only when this one's answer has been given.
    task.finished();
    resume_granted();
    give_turns();
    --entered_;
    target_.progressed();
}

// --- the end of tasks

void LogicalUnit::abort(Task& task) {
    auto& work = task.work;
    if (work.finished || work.aborted) return;
    work.aborted = true;
    switch (work.waiting) {
        case Waiting::turn:
            line_.remove(task);
            work.has_turn = false;
            break;
        case Waiting::memory:
            task.nexus->stop_waiting(task);
            break;
        case Waiting::blocks:
            work.at->stop_waiting_for_blocks(task);
            break;
        case Waiting::reservers:
            state_.waiting_reservers.remove(task);
            break;
        case Waiting::erasure:
            state_.erasing_task = nullptr;
            break;
        case Waiting::order:
            break;
        case Waiting::vendor:
            return options_.vendor_commands->forget(work.call);
        case Waiting::data:
            return task.data_unwanted();
        case Waiting::device:
        case Waiting::store:
        case Waiting::nothing:
            return;
    }
    work.ending = true;
    resume(task);
}

namespace {

bool meant(LogicalUnit::Whose whose, const Nexus* nexus, const Task& task) {
    switch (whose) {
        case LogicalUnit::Whose::of_nexus:
            return task.nexus == nexus;
        case LogicalUnit::Whose::of_others:
            return task.nexus != nexus;
        case LogicalUnit::Whose::of_all:
            break;
    }
    return true;
}

}  // namespace

void LogicalUnit::abort_tasks(Whose whose, const Nexus* nexus) {
    // One that ends may let others go on and end: begin again from the front each time.
    ++entered_;
    for (bool again = true; again;) {
        again = false;
        for (Task* task = first_; task != nullptr && !again; task = task->work.after) {
            if (task->work.aborted || task->work.finished || !meant(whose, nexus, *task)) continue;
            abort(*task);
            again = true;
        }
    }
    --entered_;
}

bool LogicalUnit::has_aborted(Whose whose, const Nexus* nexus) const {
    for (const Task* task = first_; task != nullptr; task = task->work.after)
        if (task->work.aborted && !task->work.finished && meant(whose, nexus, *task)) return true;
    return false;
}

bool LogicalUnit::has_tasks(const Nexus& nexus) const {
    for (const Task* task = first_; task != nullptr; task = task->work.after)
        if (!task->work.finished && task->nexus == &nexus) return true;
    return false;
}

void LogicalUnit::reset(AdditionalSense why) {
    abort_tasks(Whose::of_all, nullptr);
    state_.reserved_by = nullptr;
    state_.mode = {};
    state_.copies.clear();
    state_.differences.clear();
    for (auto& nexus : target_.nexuses()) {
        at(*nexus).prevents_removal = false;
        tell(*nexus, why);
    }
}

void LogicalUnit::nexus_lost(Nexus& nexus) {
    abort_tasks(Whose::of_nexus, &nexus);
    if (state_.reserved_by == &nexus) state_.reserved_by = nullptr;
    state_.copies.forget(nexus);
    state_.differences.forget(nexus);
    at(nexus).prevents_removal = false;
}

// --- Task and its request to the device, as carrier and device call them

void TaskWork::DeviceRequest::completed(Result<void> how) {
    task.work.unit->device_completed(task, how);
}

void Task::data_came() {
    work.unit->data_came(*this);
}

void Task::data_failed(SenseKey key, AdditionalSense additional) {
    work.unit->data_failed(*this, {.key = key, .additional = additional});
}

void Task::release() {
    work.unit->release(*this);
}

}  // namespace weft::scsi
