// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "sim/limits.hpp"

namespace weft::sim {

Schedule::EventId Schedule::at(Instant when, const char* kind, std::uint64_t subject,
                               Action action) {
    WEFT_CHECK(waiting_.size() < limits::waiting_events);
    EventId event{std::max(when, now_), ++last_number_};
    waiting_.emplace(event, Event{kind, subject, std::move(action)});
    return event;
}

Schedule::EventId Schedule::soon(const char* kind, std::uint64_t subject, Action action) {
    return at(now_, kind, subject, std::move(action));
}

bool Schedule::step() {
    if (waiting_.empty()) return false;
    // Taken out first: the action may cancel itself, or destroy whoever asked for it.
    auto next = waiting_.extract(waiting_.begin());
    run_at_this_instant_ = next.key().when == now_ ? run_at_this_instant_ + 1 : 0;
    WEFT_CHECK(run_at_this_instant_ < limits::events_per_instant);
    now_ = next.key().when;
    const Event& event = next.mapped();
    trace_.note(now_, event.kind, event.subject, 0, 0);
    event.action();
    return true;
}

bool Schedule::run_until_quiet(std::uint64_t event_limit) {
    for (std::uint64_t run = 0; run < event_limit; ++run)
        if (!step()) return true;
    return waiting_.empty();
}

void Schedule::run_for(Duration span) {
    Instant end = now_ + span;
    while (!waiting_.empty() && waiting_.begin()->first.when <= end) step();
    now_ = end;
}

void Schedule::clear() {
    // What an action owns may cancel or ask for more while it goes.
    while (!waiting_.empty()) std::exchange(waiting_, {}).clear();
}

}  // namespace weft::sim
