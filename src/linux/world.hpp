// SPDX-License-Identifier: Apache-2.0
// The world as Linux has it: sockets through epoll, files through io_uring or threads.
//
// It runs on the thread that calls run(). Everything it made (streams, listeners, timers, disks)
// must be gone before it is, except for what only its own deferred tasks hold.
#pragma once

#ifdef linux
#error "compile with -std=c++20, not gnu++20: there the word linux is a macro"
#endif

#include <functional>
#include <memory>
#include <random>

#include "linux/connection.hpp"
#include "linux/event_loop.hpp"
#include "linux/file_io.hpp"
#include "linux/signals.hpp"
#include "weft/world.hpp"

namespace weft::linux {

enum class FileEngine {
    automatic,  ///< the ring if the kernel allows one, else threads
    ring,       ///< the ring or nothing
    threads,
};

struct WorldOptions {
    FileEngine files = FileEngine::automatic;
};

class World final : public weft::World {
public:
    static Result<std::unique_ptr<World>> make(const WorldOptions& options = {});
    ~World() override;

    /// Until stop().
    void run() { loop_->run(); }
    /// Until stop(), or until `done` says so; asked after each turn of the loop.
    void run_until(const std::function<bool()>& done) { loop_->run_until(done); }
    void stop() { loop_->stop(); }

    /// Calls `task` from the loop whenever the signal comes; it then has no other effect.
    Result<void> on_signal(int number, std::function<void()> task);

    /// What `automatic` has become.
    FileEngine file_engine() const { return file_engine_; }

    Instant now() const override { return loop_->now(); }
    std::uint64_t random() override { return random_(); }
    void defer(std::function<void()> task) override { loop_->defer(std::move(task)); }
    std::unique_ptr<Timer> make_timer(std::function<void()> task) override;
    Result<std::unique_ptr<Listener>> listen(const Address& address, Accepted accepted) override;
    Result<std::unique_ptr<Stream>> connect(const Address& address, StreamEngine& engine) override;
    Result<std::unique_ptr<BlockDevice>> open_disk(const DiskOptions& options) override;

private:
    explicit World(std::unique_ptr<EventLoop> loop);
    Result<void> choose_files(FileEngine wanted);

    std::unique_ptr<EventLoop> loop_;
    SocketCommons sockets_;
    Signals signals_;
    FileEngine file_engine_ = FileEngine::automatic;
    std::unique_ptr<FileIo> files_;
    std::mt19937_64 random_;
};

}  // namespace weft::linux
