// SPDX-License-Identifier: Apache-2.0
#include "scsi/nexus.hpp"

#include "scsi/logical_unit.hpp"
#include "scsi/task.hpp"

namespace weft::scsi {

Nexus::Nexus(Target& target, NexusName name, block::BufferPool& pool)
    : target_(target),
      name_(std::move(name)),
      pool_(pool),
      at_units_(units_max),
      share_(pool, [this] { memory_came(); }) {}

Nexus::~Nexus() {
    WEFT_CHECK(tasks_ == 0 && waiting_.empty());
}

bool Nexus::give_to(Task& task) {
    Buffer memory = share_.take(task.work.memory_wanted);
    if (memory.empty()) return false;
    task.work.memory = memory;
    task.work.pooled = true;
    return true;
}

bool Nexus::take_memory(Task& task) {
    if (waiting_.empty() && give_to(task)) return true;
    waiting_.push_back(task);
    return false;
}

void Nexus::memory_came() {
    while (!waiting_.empty()) {
        Task& task = waiting_.front();
        if (!give_to(task)) return;
        waiting_.pop_front();
        task.work.unit->resume(task);
    }
}

void Nexus::stop_waiting(Task& task) {
    const bool first = &waiting_.front() == &task;
    waiting_.remove(task);
    if (!first) return;
    // The share waited for what this one wanted.
    share_.stop_waiting();
    memory_came();
}

void Nexus::task_gone() {
    --tasks_;
    // Who waits for its end is told by the target, when nothing of this nexus is in use any more.
}

void Nexus::leave(std::function<void()> gone) {
    gone_ = std::move(gone);
}

}  // namespace weft::scsi
