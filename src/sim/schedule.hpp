// SPDX-License-Identifier: Apache-2.0
// Virtual time: what will happen, in order of instant and then of asking.
//
// Time stands still while an action runs and jumps to the next action's instant when it is done.
// Actions never run inside each other, so an action may destroy anything but the world.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "sim/trace.hpp"
#include "weft/instant.hpp"

namespace weft::sim {

class Schedule {
public:
    using Action = std::function<void()>;

    /// Names a waiting event; number 0 names none.
    struct EventId {
        Instant when;
        std::uint64_t number = 0;
        auto operator<=>(const EventId&) const = default;
    };

    explicit Schedule(Trace& trace) : trace_(trace) {}
    Schedule(const Schedule&) = delete;
    Schedule& operator=(const Schedule&) = delete;

    Instant now() const { return now_; }

    /// `kind` must be a literal: it is kept, for the trace. An instant in the past means now.
    EventId at(Instant when, const char* kind, std::uint64_t subject, Action action);
    /// As soon as the present action is done and those already waiting for this instant.
    EventId soon(const char* kind, std::uint64_t subject, Action action);
    void cancel(EventId event) { waiting_.erase(event); }
    bool waits(EventId event) const { return waiting_.contains(event); }

    /// Runs the next event; false if there is none.
    bool step();
    /// Runs until nothing waits, or `event_limit` events have run: then it says false.
    bool run_until_quiet(std::uint64_t event_limit);
    /// Runs everything due within `span`, and leaves the clock at its end.
    void run_for(Duration span);

    /// Forgets all that waits. Actions may own streams and disks: do this before those go.
    void clear();

private:
    struct Event {
        const char* kind;
        std::uint64_t subject;
        Action action;
    };

    Trace& trace_;
    Instant now_;
    std::uint64_t last_number_ = 0;
    std::uint64_t run_at_this_instant_ = 0;
    std::map<EventId, Event> waiting_;
};

/// At most one waiting event, forgotten with its owner.
class Appointment {
public:
    Appointment(Schedule& schedule, const char* kind, std::uint64_t subject)
        : schedule_(schedule), kind_(kind), subject_(subject) {}
    Appointment(const Appointment&) = delete;
    Appointment& operator=(const Appointment&) = delete;
    ~Appointment() { cancel(); }

    /// Replaces what was set before.
    void set(Instant when, Schedule::Action action) {
        cancel();
        event_ = schedule_.at(when, kind_, subject_, std::move(action));
    }
    void cancel() { schedule_.cancel(event_); }
    bool is_set() const { return schedule_.waits(event_); }
    Instant when() const { return event_.when; }

private:
    Schedule& schedule_;
    const char* kind_;
    std::uint64_t subject_;
    Schedule::EventId event_;
};

}  // namespace weft::sim
