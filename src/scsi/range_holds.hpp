// SPDX-License-Identifier: Apache-2.0
// Who works on which blocks of a unit. Reads and writes share blocks as they always did; what must
// see and change them in one go (COMPARE AND WRITE, WRITE ATOMIC, ...) has them alone.
//
// Those who wait are served in the order they came: one that wants blocks alone is not passed by
// later ones that overlap it, or it would wait for ever.
#pragma once

#include <vector>

#include "scsi/task.hpp"

namespace weft::scsi {

class RangeHolds {
public:
    RangeHolds();

    /// True: it has them now. False: it waits, and comes out of release() or forget() some day.
    bool acquire(Task& task, BlockRange range, Hold hold);
    /// Gives back what the task has, and calls `granted` for each that has got its blocks.
    template <class Granted>
    void release(Task& task, Granted granted) {
        if (task.work.hold == Hold::none) return;
        drop(task);
        serve(granted);
    }
    /// It waits no more.
    template <class Granted>
    void forget(Task& task, Granted granted) {
        stop_waiting(task);
        serve(granted);
    }
    bool idle() const { return held_.empty() && waiting_.empty(); }

private:
    struct Held {
        Task* task = nullptr;
        BlockRange range{};
        Hold hold{};
    };
    bool free_for(BlockRange range, Hold hold) const;
    bool free_of_waiting(const Task& until, BlockRange range, Hold hold) const;
    void grant(const Held& held);
    void drop(Task& task);
    void stop_waiting(Task& task);
    Task* next_served();

    template <class Granted>
    void serve(Granted granted) {
        while (Task* task = next_served()) granted(*task);
    }

    std::vector<Held> held_;
    std::vector<Held> waiting_;  ///< in the order they came
    std::size_t exclusive_ = 0;  ///< of held_ and waiting_; zero is the usual case
};

}  // namespace weft::scsi
