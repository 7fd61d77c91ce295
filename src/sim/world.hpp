// SPDX-License-Identifier: Apache-2.0
// world.hpp simulated: a run is a function of its seed and of the code under test.
//
// Used as a weft::World it is one machine, called "local". Ask it for host("elm") to have more.
// Time passes only inside step() and the run functions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "sim/clockwork.hpp"
#include "sim/disk.hpp"
#include "sim/host.hpp"
#include "sim/network.hpp"
#include "weft/world.hpp"

namespace weft::sim {

class World final : public weft::World {
public:
    explicit World(std::uint64_t seed);
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    /// Every stream, listener, timer and disk it gave must be gone, but for those its own
    /// waiting tasks hold.
    ~World() override;

    Instant now() const override { return clockwork_.now(); }
    Date date() const override { return Date(now() - Instant{}); }
    std::uint64_t random() override { return clockwork_.random.next(); }
    void defer(std::function<void()> task) override { local_.defer(std::move(task)); }
    std::unique_ptr<Timer> make_timer(std::function<void()> task) override;
    Result<std::unique_ptr<Listener>> listen(const Address& address, Accepted accepted) override;
    using weft::World::connect;
    Result<std::unique_ptr<Stream>> connect(const Address& address, StreamEngine& engine,
                                            const Address& from) override;
    Result<std::vector<Address>> resolve(const Address& address) override;
    Result<std::unique_ptr<BlockDevice>> open_disk(const DiskOptions& options) override;
    void provide_disk(const std::string& path, std::uint64_t size,
                      std::function<void(Result<void>)> done) override {
        local_.provide_disk(path, size, std::move(done));
    }
    void remove_disk(const std::string& path, std::function<void(Result<void>)> done) override {
        local_.remove_disk(path, std::move(done));
    }
    Result<std::vector<std::byte>> read_file(const std::string& path) override {
        return local_.read_file(path);
    }
    void replace_file(const std::string& path, ConstBuffer contents,
                      std::function<void(Result<void>)> done) override {
        local_.replace_file(path, contents, std::move(done));
    }

    /// The machine of that name, made when first asked for.
    Host& host(const std::string& name);
    Disk& make_disk(const std::string& name, const DiskSpec& spec);
    Disk& disk(const std::string& name) { return *disks_.at(name); }
    const Disks& disks() const { return disks_; }
    Network& network() { return network_; }
    /// The one source of chance; tests and faults draw from it too, so that a seed is enough.
    Random& chance() { return clockwork_.random; }
    Clockwork& clockwork() { return clockwork_; }

    bool step() { return clockwork_.schedule.step(); }
    /// Runs until nothing more would happen, or `event_limit` events have: then it says false.
    bool run_until_quiet(std::uint64_t event_limit) {
        return clockwork_.schedule.run_until_quiet(event_limit);
    }
    void run_for(Duration span) { clockwork_.schedule.run_for(span); }

    std::uint64_t seed() const { return seed_; }
    std::uint64_t trace_hash() const { return clockwork_.trace.hash(); }
    void show_trace(Trace::Sink sink) { clockwork_.trace.show(std::move(sink)); }

private:
    std::uint64_t seed_;
    Clockwork clockwork_;
    Network network_;
    Disks disks_;
    Host local_;
    std::map<std::string, std::unique_ptr<Host>> hosts_;
};

}  // namespace weft::sim
