// SPDX-License-Identifier: Apache-2.0
// One software RNIC per process, and who drives it.
//
// The world and the device are single-threaded; an application's threads take turns, each inside a
// Hold. Whoever posts or polls moves the network in place, with no other thread involved. A helper
// thread moves it when nobody does, so that a peer's reads and writes go on while the application
// computes, or sleeps in a poll() of its own; while others drive, the helper stands back and only
// looks now and then whether they still do.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

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

/// How connections are to be made, as `weft run` and the environment say.
verbs::ConnectOptions connect_options();

class Engine {
public:
    /// Inside a Hold. Starts it, unless it runs; a child of fork() gets one of its own. False where
    /// the system refuses what it needs; errno says what.
    static bool start();
    /// Inside a Hold, after start().
    static Engine& get();
    /// Inside a Hold. Counts the forks this process has behind it: an object that was made under
    /// another number belongs to the parent, and all that may be done with it is to forget it.
    static unsigned generation();

    ~Engine();
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

    // Outside a Hold.
    /// Until `descriptor` is readable or the time is over, and moves the network meanwhile. Returns
    /// as poll(2) does, and is as it is a place where a thread can be cancelled.
    int wait_readable(int descriptor, int timeout_ms = -1);

    /// Who hears of the device's asynchronous events, inside a Hold.
    static void on_event(std::function<void(const verbs::AsyncEvent&)> heard);

private:
    friend class Hold;
    Engine() = default;

    bool begin();
    void help();
    void wake_helper();
    /// At the end of a Hold: whether whoever minds the network sleeps longer than it now may.
    void mind_the_time();
    void wake_sleepers(Instant due);

    std::unique_ptr<LinuxWorld> world_;
    std::unique_ptr<verbs::Device> device_;
    int wake_ = -1;  ///< an eventfd the helper listens to

    std::atomic<std::uint32_t> drives_{0};  ///< by others than the helper
    std::atomic<bool> someone_waits_{false};
    enum class Helper : std::uint8_t { at_work, standing_back, watching };
    std::atomic<Helper> helper_{Helper::at_work};
    std::optional<Instant> helper_wakes_;  ///< inside a Hold: by itself, while watching

    // The same of the thread in wait_readable() that moves the network.
    int wake_waiter_ = -1;
    std::atomic<bool> waiter_sleeps_{false};
    std::optional<Instant> waiter_wakes_;
};

}  // namespace weft::abi
