// SPDX-License-Identifier: Apache-2.0
// One machine of a simulated world, as the code that runs on it sees it: a weft::World.
//
// Machines share time, chance, network and disks, and differ in what a power cut takes away.
// Whatever a machine gave out (streams, timers, disks) must be destroyed before the world is; after
// a power cut all of it is deaf and dumb, and only waits to be destroyed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/clockwork.hpp"
#include "sim/disk.hpp"
#include "sim/network.hpp"
#include "weft/world.hpp"

namespace weft::sim {

using Disks = std::map<std::string, std::unique_ptr<Disk>>;

class Host final : public weft::World {
public:
    Host(Clockwork& clockwork, Network& network, Disks& disks, std::string name)
        : clockwork_(clockwork), network_(network), disks_(disks), name_(std::move(name)) {
        network_.add_machine(name_);
    }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    const std::string& name() const { return name_; }

    Instant now() const override { return clockwork_.now(); }
    Date date() const override { return Date(now() - Instant{}); }
    std::uint64_t random() override { return clockwork_.random.next(); }
    void defer(std::function<void()> task) override;
    std::unique_ptr<Timer> make_timer(std::function<void()> task) override;
    Result<std::unique_ptr<Listener>> listen(const Address& address, Accepted accepted) override;
    using weft::World::connect;
    Result<std::unique_ptr<Stream>> connect(const Address& address, StreamEngine& engine,
                                            const Address& from) override;
    Result<std::vector<Address>> resolve(const Address& address) override {
        return network_.resolve(address);
    }
    /// Opens the disk that World::make_disk() made under this name; `direct` changes nothing.
    Result<std::unique_ptr<BlockDevice>> open_disk(const DiskOptions& options) override;
    /// Of the usual kind, known to the world by its path from then on.
    void provide_disk(const std::string& path, std::uint64_t size,
                      std::function<void(Result<void>)> done) override;
    void remove_disk(const std::string& path, std::function<void(Result<void>)> done) override;
    /// A machine's files are its own, and last. One that is being replaced at a power cut is the
    /// old or the new.
    Result<std::vector<std::byte>> read_file(const std::string& path) override;
    void replace_file(const std::string& path, ConstBuffer contents,
                      std::function<void(Result<void>)> done) override;

    /// Nothing that was started here is ever called again, peers hear nothing, and the disks it
    /// had opened lose what was not stable. What runs here next, after power_on(), starts afresh.
    void power_cut();
    void power_on() { network_.power_on(name_); }

    /// Nothing that was started here runs until resume(), as after SIGSTOP: what was due meanwhile
    /// runs then. Kernels of peers see nothing of it.
    void pause();
    void resume();
    bool is_paused() const { return paused_; }
    /// At once, or when it is resumed; never if it loses its power before.
    void when_running(std::function<void()> task);

private:
    class HostTimer;
    struct Replacement {
        std::string path;
        std::vector<std::byte> contents;
        std::function<void(Result<void>)> done;
    };
    void replace_next();
    void soon(std::function<void()> work);

    Clockwork& clockwork_;
    Network& network_;
    Disks& disks_;
    std::string name_;
    std::uint64_t power_cuts_ = 0;
    bool paused_ = false;
    std::deque<std::function<void()>> held_;  ///< what was due while it stood still
    std::set<std::string> opened_disks_;
    /// As with files: what ran here before a power cut may have had them open.
    std::vector<std::unique_ptr<Disk>> removed_disks_;
    std::map<std::string, std::vector<std::byte>> files_;
    std::deque<Replacement> replacements_;  ///< the first is under way
};

}  // namespace weft::sim
