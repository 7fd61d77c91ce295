// SPDX-License-Identifier: Apache-2.0
// The one loop everything of a World runs on: descriptors, timers, tasks, in that order, and then
// the end of the turn, where replies go out and file operations go in, many per system call.
//
//     wait -> descriptors -> timers -> tasks -> ready streams <-> disks -> free what was dropped
//
// No stage may keep the others waiting: each does what it found when it began, and leaves what
// was added meanwhile to the next turn. A poll is a turn that waits for nothing and most often
// spares itself the question to epoll.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "linux/descriptor.hpp"
#include "linux/hot_list.hpp"
#include "linux/limits.hpp"
#include "linux/ready_list.hpp"
#include "linux/timer_heap.hpp"
#include "weft/instant.hpp"
#include "weft/linux_world.hpp"
#include "weft/result.hpp"

namespace weft::linux {

/// The time itself. All but those who measure something want EventLoop::now().
Instant read_clock();

/// Hears what epoll has to say about a descriptor.
class DescriptorHandler {
public:
    virtual void ready(std::uint32_t events) = 0;

protected:
    ~DescriptorHandler() = default;
};

/// Gathers work during the turn and does it at its end.
class TurnEnd {
public:
    /// True if this may have made someone ready, who then still has this turn.
    virtual bool turn_ends() = 0;

protected:
    ~TurnEnd() = default;
};

/// What can be dropped from inside its own callback, and is then freed when nobody is in it.
class LateFreed {
public:
    virtual ~LateFreed() = default;
};

class EventLoop {
public:
    static Result<std::unique_ptr<EventLoop>> make();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;
    ~EventLoop() { drop_tasks(); }

    /// Until stop().
    void run();
    /// Until stop(), or until `done` says so; asked after each turn.
    void run_until(const std::function<bool()>& done);
    /// The current turn is the last.
    void stop() { stopped_ = true; }

    /// One turn, for callers with a loop of their own. What they have begun since the last turn
    /// counts as something that happens.
    void turn(Wait wait);
    /// A turn for callers who do nothing else but wait, and want no microsecond lost: tries those
    /// that are hot, and looks at everything else only now and then.
    void poll();
    /// Runs the tasks, serves whoever is ready, and looks for nothing new.
    void push();

    /// Readable when a turn would find something.
    int descriptor() const { return epoll_.number(); }
    /// When a turn is due even if the descriptor says nothing; in the past: now.
    std::optional<Instant> due() const;
    /// Somebody has closed our descriptor: whatever we would do now, we would do to others' files.
    bool is_lost() const { return lost_; }
    void look_whether_lost();
    /// In a child after fork(): closes its copies, and tells the epoll it shares with its parent
    /// nothing.
    void abandon();

    /// During a turn it stands still.
    Instant now() const {
        if (!running_) return read_clock();
        if (!now_) now_ = read_clock();
        return *now_;
    }

    Result<void> watch(int descriptor, std::uint32_t events, DescriptorHandler& handler);
    bool watches(int descriptor) const { return watched_.contains(descriptor); }
    void change(int descriptor, std::uint32_t events, DescriptorHandler& handler);
    /// The handler hears nothing more, not even what epoll has already reported.
    void forget(int descriptor, DescriptorHandler& handler);

    void defer(std::function<void()> task);
    /// Forgets the tasks that have not run and frees what they held: streams and timers, which
    /// come back here to be freed. For the end, while all those could refer to is still there.
    void drop_tasks();
    TimerHeap& timers() { return timers_; }
    void make_ready(ReadyItem& item) { ready_.add(item); }
    void make_hot(HotItem& item) { hot_.add(item); }
    void at_turn_end(TurnEnd& hook) { turn_ends_.push_back(&hook); }
    void not_at_turn_end(TurnEnd& hook) { std::erase(turn_ends_, &hook); }
    void free_later(std::unique_ptr<LateFreed> object) { dropped_.push_back(std::move(object)); }

private:
    explicit EventLoop(Descriptor epoll) : epoll_(std::move(epoll)) {}

    void enter();
    void leave() { running_ = false; }
    void look(Wait wait);
    int wait_ms() const;
    void dispatch(int count);
    void run_tasks();
    void end_turn();
    bool call_turn_ends();
    void free_dropped();

    Descriptor epoll_;
    std::set<int> watched_;
    bool running_ = false;
    bool stopped_ = false;
    bool lost_ = false;
    bool unfinished_ = false;  ///< the last turn ended by its bound, not for want of work
    mutable std::optional<Instant> now_;  ///< none until somebody asks: a poll seldom has to
    std::array<epoll_event, limits::events_per_turn> reported_{};
    int reported_count_ = 0;
    TimerHeap timers_;
    ReadyList ready_;
    HotList hot_;
    std::size_t tries_since_look_ = limits::tries_between_looks;
    std::vector<TurnEnd*> turn_ends_;
    std::vector<std::function<void()>> tasks_;
    std::vector<std::function<void()>> tasks_of_this_turn_;
    std::vector<std::unique_ptr<LateFreed>> dropped_;
};

}  // namespace weft::linux
