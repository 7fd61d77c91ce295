// SPDX-License-Identifier: Apache-2.0
// What weft/linux_world.hpp promises, put together from this folder's parts.
#pragma once

#ifdef linux
#error "compile with -std=c++20, not gnu++20: there the word linux is a macro"
#endif

#include <functional>
#include <memory>
#include <optional>

#include "linux/connection.hpp"
#include "linux/disk_files.hpp"
#include "linux/event_loop.hpp"
#include "linux/file_io.hpp"
#include "linux/signals.hpp"
#include "linux/small_files.hpp"
#include "weft/linux_world.hpp"

namespace weft::linux {

class World final : public LinuxWorld {
public:
    static Result<std::unique_ptr<World>> make(const LinuxWorldOptions& options = {});
    ~World() override;

    void run() override { loop_->run(); }
    void run_until(const std::function<bool()>& done) override { loop_->run_until(done); }
    void stop() override { loop_->stop(); }
    void turn(Wait wait) override { loop_->turn(wait); }
    void poll() override { loop_->poll(); }
    void push() override { loop_->push(); }
    int descriptor() const override { return loop_->descriptor(); }
    std::optional<Instant> due() const override { return loop_->due(); }
    std::size_t lingering() const override { return sockets_.lingering.size(); }
    bool is_lost() const override { return loop_->is_lost(); }
    void look_whether_lost() override { loop_->look_whether_lost(); }
    bool owns(int descriptor) const override { return loop_->watches(descriptor); }
    void abandon() override { loop_->abandon(); }
    Result<void> on_signal(int number, std::function<void()> task) override;
    void call_on_thread(std::function<void()> work, std::function<void()> done) override;
    FileEngine file_engine() const override { return file_engine_; }

    Instant now() const override { return loop_->now(); }
    Date date() const override { return std::chrono::system_clock::now(); }
    /// Not to be guessed from earlier ones: challenges of a login are made of it.
    std::uint64_t random() override;
    void defer(std::function<void()> task) override { loop_->defer(std::move(task)); }
    std::unique_ptr<Timer> make_timer(std::function<void()> task) override;
    Result<std::unique_ptr<Listener>> listen(const Address& address, Accepted accepted) override;
    using weft::World::connect;
    Result<std::unique_ptr<Stream>> connect(const Address& address, StreamEngine& engine,
                                            const Address& from) override;
    Result<std::vector<Address>> resolve(const Address& address) override;
    Result<std::unique_ptr<BlockDevice>> open_disk(const DiskOptions& options) override;
    void provide_disk(const std::string& path, std::uint64_t size,
                      std::function<void(Result<void>)> done) override {
        call_for_outcome([path, size] { return provide_disk_file(path, size); }, std::move(done));
    }
    void remove_disk(const std::string& path, std::function<void(Result<void>)> done) override {
        call_for_outcome([path] { return remove_disk_file(path); }, std::move(done));
    }
    Result<std::vector<std::byte>> read_file(const std::string& path) override;
    void replace_file(const std::string& path, ConstBuffer contents,
                      std::function<void(Result<void>)> done) override;

private:
    World(std::unique_ptr<EventLoop> loop, const LinuxWorldOptions& options);
    Result<void> choose_files(FileEngine wanted);
    /// Where a thread may wait for the disk, and the loop does not.
    void call_for_outcome(std::function<Result<void>()> work,
                          std::function<void(Result<void>)> done);

    std::unique_ptr<EventLoop> loop_;
    SocketCommons sockets_;
    Signals signals_;
    FileEngine file_engine_ = FileEngine::automatic;
    std::unique_ptr<FileIo> files_;
    std::optional<SmallFiles> small_files_;
};

}  // namespace weft::linux
