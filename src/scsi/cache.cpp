// SPDX-License-Identifier: Apache-2.0
// SYNCHRONIZE CACHE and PRE-FETCH. The device flushes all or nothing, so a range only says what
// must not be beyond the end. Both answer when they are done, asked to or not: that is allowed.
#include "scsi/block_command.hpp"

namespace weft::scsi {

using namespace wire;

namespace {

/// A device without a cache has nothing to fetch into, which is no failure: it was only a hint.
void fetched(LogicalUnit& unit, Task& task) {
    const auto& outcome = task.work.outcome;
    if (!outcome && outcome.error().code == Code::unsupported) return unit.good(task);
    end_reading(unit, task);
}

}  // namespace

template <class CommandBlock>
void synchronize_cache(LogicalUnit& unit, Task& task) {
    if (!accept(unit, task, parse<CommandBlock>(task), Bound::by_medium)) return;
    unit.ask_device(task, BlockOperation::flush, 0, 0, end_change);
}

template <class CommandBlock>
void prefetch(LogicalUnit& unit, Task& task) {
    if (!accept(unit, task, parse<CommandBlock>(task), Bound::by_medium)) return;
    auto count = task.work.range.count;
    if (count == 0) count = unit.block_count() - task.work.range.first;
    if (count == 0) return unit.good(task);
    task.work.durable = false;
    unit.ask_device(task, BlockOperation::prefetch, offset_of(unit, task),
                    count * unit.block_bytes(), fetched);
}

template void synchronize_cache<SynchronizeCache10>(LogicalUnit&, Task&);
template void synchronize_cache<SynchronizeCache16>(LogicalUnit&, Task&);
template void prefetch<Prefetch10>(LogicalUnit&, Task&);
template void prefetch<Prefetch16>(LogicalUnit&, Task&);

}  // namespace weft::scsi
