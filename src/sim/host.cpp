// SPDX-License-Identifier: Apache-2.0
#include "sim/host.hpp"

#include <cerrno>
#include <utility>

namespace weft::sim {

class Host::HostTimer final : public Timer {
public:
    HostTimer(Host& host, std::function<void()> task)
        : host_(host),
          task_(std::make_shared<std::function<void()>>(std::move(task))),
          made_after_(host.power_cuts_),
          appointment_(host.clockwork_.schedule, "timer", 0) {}

    void set(Instant when) override {
        // The task may destroy this timer, so the event shares it and touches nothing else here.
        appointment_.set(when, [&host = host_, task = task_, made_after = made_after_] {
            if (host.power_cuts_ == made_after) (*task)();
        });
    }
    void cancel() override { appointment_.cancel(); }

private:
    Host& host_;
    std::shared_ptr<std::function<void()>> task_;
    std::uint64_t made_after_;
    Appointment appointment_;
};

void Host::defer(std::function<void()> task) {
    clockwork_.schedule.soon("deferred", 0,
                             [this, task = std::move(task), asked_after = power_cuts_] {
                                 if (power_cuts_ == asked_after) task();
                             });
}

std::unique_ptr<Timer> Host::make_timer(std::function<void()> task) {
    return std::make_unique<HostTimer>(*this, std::move(task));
}

Result<std::unique_ptr<Listener>> Host::listen(const Address& address, Accepted accepted) {
    return network_.listen(name_, address, std::move(accepted));
}

Result<std::unique_ptr<Stream>> Host::connect(const Address& address, StreamEngine& engine,
                                              const Address& from) {
    // A simulated machine has one address, and its ports choose themselves.
    if (from != Address{}) return Error{.code = Code::unsupported};
    return network_.connect(name_, address, engine);
}

Result<std::unique_ptr<BlockDevice>> Host::open_disk(const DiskOptions& options) {
    auto found = disks_.find(options.path);
    if (found == disks_.end()) return Error{.code = Code::not_found, .detail = ENOENT};
    opened_disks_.insert(options.path);
    return found->second->open(options.read_only ? Disk::Access::read_only
                                                 : Disk::Access::read_write);
}

void Host::power_cut() {
    ++power_cuts_;
    network_.power_cut(name_);
    for (const std::string& disk : std::exchange(opened_disks_, {}))
        disks_.at(disk)->power_cut(AfterPowerCut::requests_vanish);
}

}  // namespace weft::sim
