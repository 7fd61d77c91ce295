// SPDX-License-Identifier: Apache-2.0
// One software RNIC per process, and who drives it.
//
// The world and the device are single-threaded; an application's threads take turns, each inside a
// Hold. Whoever posts or polls moves the network in place, with no other thread involved. A helper
// thread moves it when nobody does, so that a peer's reads and writes go on while the application
// computes, looks for them in its memory, or sleeps in a poll() of its own. While somebody polls
// without end, or waits in one of our own functions and drives from there, the helper stands back
// and only looks now and then whether they still do. docs/decisions/who-drives-the-engine.md has
// that as a table.
#pragma once

#include <signal.h>

#include <atomic>
#include <functional>
#include <memory>

#include "abi/bell.hpp"
#include "weft/linux_world.hpp"
#include "weft/rdma.hpp"

namespace weft::abi {

/// Inside, everything of the libraries is this thread's alone, and the thread cannot be cancelled:
/// pthread_cancel() amid a system call of the engine would leave it half changed.
class Hold {
public:
    Hold();
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

private:
    int cancel_state_ = 0;
};

/// While one lives, threads that are begun leave the application's signals to its own threads. What
/// an access of their own raises stays theirs: blocked, it would end the process uncaught.
class SignalsLeftToOthers {
public:
    SignalsLeftToOthers();
    ~SignalsLeftToOthers();

private:
    sigset_t before_;
};

class Engine {
public:
    /// Inside a Hold. Starts it, unless it runs; a child of fork() gets one of its own. False where
    /// the system refuses what it needs; errno says what.
    static bool start();
    /// Inside a Hold, after start(). What is left of one that was lost will do: it does nothing.
    static Engine& get();
    /// Counts the forks this process has behind it: an object that was made under another number
    /// belongs to the parent, and all that may be done with it is to forget it. An engine that has
    /// lost its descriptors counts as one. It can be asked at any time.
    static unsigned generation();

    /// Objects of earlier generations have descriptors that somebody else has closed, so that their
    /// numbers may be others' by now.
    static unsigned first_with_descriptors();

    /// In a child of fork().
    void abandon();

    LinuxWorld& world() { return *world_; }
    verbs::Device& device() { return *device_; }

    // Inside a Hold.
    /// One look at the network, for a caller that will come back soon if it found nothing.
    void poll();
    /// Lets go out what was posted.
    void push();
    /// The application will wait for a descriptor of ours in a way we do not see.
    void will_wait_elsewhere();
    /// The same, until it is over: somebody waits for news that may come at any time, and is to
    /// have them at once although others drive now and then. May be begun several times.
    void begin_wait_elsewhere();
    void end_wait_elsewhere() { waits_elsewhere_.fetch_sub(1, std::memory_order_relaxed); }

    // Outside a Hold.
    /// Until `descriptor` is readable or the time is over, and moves the network meanwhile. Returns
    /// as poll(2) does, and is as it is a place where a thread can be cancelled.
    int wait_readable(int descriptor, int timeout_ms = -1);

    /// A thread that waits, and moves the network meanwhile unless another does. Made and unmade
    /// outside a Hold; unmade also if the thread is cancelled in its sleep. It begins to drive with
    /// its first turn(), if at all.
    class Waiting {
    public:
        /// Who waits for completions is in a hurry, and takes the driving from who is not.
        enum class Hurry : bool { no, yes };
        Waiting(Engine& engine, Hurry hurry) : engine_(engine), hurry_(hurry) {}
        ~Waiting();
        Waiting(const Waiting&) = delete;
        Waiting& operator=(const Waiting&) = delete;

        /// Inside a Hold: looks at the network, if that is for this one to do.
        void turn();
        /// Outside: until `descriptor` is readable, or the network has something for turn(), or the
        /// time is over. Returns as poll(2) does, with 1 for the descriptor alone.
        int sleep(int descriptor, std::optional<Instant> end);

    private:
        bool drives() const { return engine_.driver_.load() == this; }
        // Inside a Hold.
        void begin_to_drive();
        void resign();

        Engine& engine_;
        const Hurry hurry_;
        bool has_turned_ = false;
        std::uint32_t looks_seen_ = 0;  ///< at the end of the last turn
        std::optional<Instant> due_;    ///< of the network, as of then
    };

    /// Who hears of the device's asynchronous events, inside a Hold.
    static void on_event(std::function<void(const verbs::AsyncEvent&)> heard);

private:
    friend class Hold;
    Engine() = default;

    bool begin();
    void help();
    /// Inside a Hold. Programs that become daemons close all descriptors there are. To what was
    /// made before that is what a fork() is to the parent's objects in a child, but that nothing of
    /// it may be closed. What is made from then on gets an engine of its own.
    static void give_up_if_lost();
    /// Of the helper: whether somebody else sees to the network, and until nobody does.
    bool is_driven(std::uint32_t looks_seen) const;
    void stand_back();
    // Inside a Hold.
    void ring_driver();
    void answer_for_driver();
    /// At the end of a Hold: whether who sleeps in charge sleeps longer than it now may.
    void mind_the_time();

    std::unique_ptr<LinuxWorld> world_;
    std::unique_ptr<verbs::Device> device_;
    Bell wake_{Bell::Kind::once};         ///< the helper listens to it
    Bell driver_wake_{Bell::Kind::once};  ///< and who drives to this one

    std::atomic<std::uint32_t> looks_{0};          ///< at the network, by others than the helper
    std::atomic<const Waiting*> driver_{nullptr};  ///< of those who wait; changes inside Holds
    std::atomic<int> waits_elsewhere_{0};
    std::atomic<bool> is_given_up_{false};  ///< it was lost, and is nobody's engine any more
    enum class Helper : std::uint8_t { at_work, standing_back, off_duty, watching };
    std::atomic<Helper> helper_{Helper::at_work};
    // Inside a Hold: when they wake by themselves. Outside of one the driver sleeps, or is about
    // to.
    std::optional<Instant> helper_wakes_, driver_wakes_;
    bool driver_is_rung_ = false;
};

}  // namespace weft::abi
