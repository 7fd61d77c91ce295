// SPDX-License-Identifier: Apache-2.0
#include "scsi/range_holds.hpp"

namespace weft::scsi {

namespace {

constexpr std::size_t usual_tasks = 256;

bool collide(Hold one, BlockRange its_range, Hold other, BlockRange other_range) {
    return (one == Hold::exclusive || other == Hold::exclusive) && its_range.overlaps(other_range);
}

}  // namespace

RangeHolds::RangeHolds() {
    held_.reserve(usual_tasks);
    waiting_.reserve(usual_tasks);
}

bool RangeHolds::free_for(BlockRange range, Hold hold) const {
    if (exclusive_ == 0 && hold == Hold::shared) return true;
    for (const auto& held : held_)
        if (collide(hold, range, held.hold, held.range)) return false;
    return true;
}

bool RangeHolds::free_of_waiting(const Task& until, BlockRange range, Hold hold) const {
    for (const auto& waiting : waiting_) {
        if (waiting.task == &until) return true;
        if (collide(hold, range, waiting.hold, waiting.range)) return false;
    }
    return true;
}

bool RangeHolds::acquire(Task& task, BlockRange range, Hold hold) {
    WEFT_CHECK(task.work.hold == Hold::none && hold != Hold::none);
    const bool free = free_for(range, hold) && free_of_waiting(task, range, hold);
    exclusive_ += hold == Hold::exclusive;
    if (free)
        grant({&task, range, hold});
    else
        waiting_.push_back({&task, range, hold});
    return free;
}

void RangeHolds::grant(const Held& held) {
    held.task->work.hold = held.hold;
    held.task->work.hold_place = held_.size();
    held_.push_back(held);
}

void RangeHolds::drop(Task& task) {
    const auto place = task.work.hold_place;
    WEFT_CHECK(place < held_.size() && held_[place].task == &task);
    exclusive_ -= held_[place].hold == Hold::exclusive;
    held_[place] = held_.back();
    held_[place].task->work.hold_place = place;
    held_.pop_back();
    task.work.hold = Hold::none;
}

void RangeHolds::stop_waiting(Task& task) {
    std::erase_if(waiting_, [&](const Held& waiting) {
        if (waiting.task != &task) return false;
        exclusive_ -= waiting.hold == Hold::exclusive;
        return true;
    });
}

Task* RangeHolds::next_served() {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
        Held candidate = waiting_[i];
        if (!free_for(candidate.range, candidate.hold) ||
            !free_of_waiting(*candidate.task, candidate.range, candidate.hold))
            continue;
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
        grant(candidate);
        return candidate.task;
    }
    return nullptr;
}

}  // namespace weft::scsi
