// SPDX-License-Identifier: Apache-2.0
// The world as Linux has it, and how to drive it: sockets through epoll, files through io_uring or
// threads.
//
// It runs on the thread that calls run(), turn() or poll(), and no call of it may be made from
// another thread meanwhile: programs with several take turns, under a lock of their own. Everything
// it made (streams, listeners, timers, disks) must be gone before it is, except for what only its
// own deferred tasks hold.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "weft/result.hpp"
#include "weft/world.hpp"

namespace weft {

/// Who does the work of files.
enum class FileEngine {
    automatic,  ///< the ring if the kernel allows one, else threads
    ring,       ///< the ring or nothing
    threads,
    none,  ///< there will be no disks, and nothing is set up for them
};

struct LinuxWorldOptions {
    FileEngine files = FileEngine::automatic;

    // For every TCP socket. Empty and 0 mean what the system does by itself.
    std::string congestion_control{};  ///< as the kernel calls it: "cubic", "dctcp", "bbr"
    /// Fixed sizes instead of the kernel's own tuning; it grants no more than its own limits
    /// (net.core.wmem_max, net.core.rmem_max), and does not say so.
    std::size_t send_buffer_bytes = 0;
    std::size_t receive_buffer_bytes = 0;

    /// Listen also on a port where somebody listens who lets others do so (SO_REUSEPORT), and be
    /// given all who come there from then on.
    bool shares_ports = false;
};

/// Whether a turn may sleep before it does its work.
enum class Wait { until_something_happens, not_at_all };

class LinuxWorld : public World {
public:
    /// Until stop().
    virtual void run() = 0;
    /// Until stop(), or until `done` says so; asked after each turn of the loop.
    virtual void run_until(const std::function<bool()>& done) = 0;
    virtual void stop() = 0;

    /// One turn, for programs with a loop of their own. What they have begun since the last turn
    /// (a task, a woken stream, a disk request) counts as something that happens.
    virtual void turn(Wait wait) = 0;
    /// A turn for programs that spin because no microsecond may be lost. The few streams that
    /// lately received are read from at once; timers, disks and other streams are looked at only
    /// every few microseconds of polling. What was sent in between leaves with the same call.
    virtual void poll() = 0;
    /// Sends what is waiting to go out and looks for nothing new: for a program that will turn or
    /// poll later, and does not want its words to wait for that.
    virtual void push() = 0;

    /// For programs that sleep elsewhere: readable when a turn would find something, and the time
    /// by which one is due even if it is not. A time in the past: now. None: there is no hurry.
    virtual int descriptor() const = 0;
    virtual std::optional<Instant> due() const = 0;
    /// Streams that have ended here while their last bytes may not have arrived: a process that
    /// ends before they are gone may lose those.
    virtual std::size_t lingering() const = 0;
    /// Somebody has closed the descriptors of this world behind its back, as programs do that
    /// become daemons. It does nothing any more, and closes nothing: their numbers are others' now.
    virtual bool is_lost() const = 0;
    /// Asks the system whether that is so; else it is noticed by the next turn.
    virtual void look_whether_lost() = 0;
    /// Whether the descriptor is one of this world's sockets.
    virtual bool owns(int descriptor) const = 0;
    /// After fork(), in the child: closes what was inherited and touches nothing the parent uses.
    /// Nothing of this world may be used or destroyed afterwards.
    virtual void abandon() = 0;

    /// Calls `task` from the loop whenever the signal comes; it then has no other effect.
    virtual Result<void> on_signal(int number, std::function<void()> task) = 0;
    /// Calls `work` on a thread of the file engine's, for what has to wait for a disk and has no
    /// other way to; then `done` from the loop, never from inside. `work` touches nothing the loop
    /// may. Several run at once: who wants one after another gives the next when one is done.
    virtual void call_on_thread(std::function<void()> work, std::function<void()> done) = 0;
    /// What FileEngine::automatic has become.
    virtual FileEngine file_engine() const = 0;
};

/// Fails where a ring was insisted on and is refused, and where the kernel has no congestion
/// control of that name (`not_found`) or does not let us choose it (`access_denied`).
Result<std::unique_ptr<LinuxWorld>> open_linux_world(const LinuxWorldOptions& options);

}  // namespace weft
