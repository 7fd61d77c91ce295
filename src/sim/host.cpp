// SPDX-License-Identifier: Apache-2.0
#include "sim/host.hpp"

#include <cerrno>
#include <chrono>
#include <memory>
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
        setting_ = std::make_shared<bool>(true);
        appointment_.set(when, [&host = host_, task = task_, made_after = made_after_,
                                setting = std::weak_ptr(setting_)] {
            if (host.power_cuts_ != made_after) return;
            host.when_running([task, setting] {
                if (!setting.expired()) (*task)();
            });
        });
    }
    void cancel() override {
        appointment_.cancel();
        setting_.reset();
    }

private:
    Host& host_;
    std::shared_ptr<std::function<void()>> task_;
    std::uint64_t made_after_;
    std::shared_ptr<bool> setting_;  ///< what is due belongs to it
    Appointment appointment_;
};

void Host::defer(std::function<void()> task) {
    clockwork_.schedule.soon("deferred", 0,
                             [this, task = std::move(task), asked_after = power_cuts_] {
                                 if (power_cuts_ == asked_after) when_running(task);
                             });
}

void Host::when_running(std::function<void()> task) {
    if (paused_) return held_.push_back(std::move(task));
    task();
}

void Host::pause() {
    if (std::exchange(paused_, true)) return;
    clockwork_.note("fault: paused", 0);
    network_.pause(name_);
}

void Host::resume() {
    if (!std::exchange(paused_, false)) return;
    clockwork_.note("resumed", 0);
    for (auto& task : std::exchange(held_, {})) defer(std::move(task));
    network_.resume(name_);
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

void Host::provide_disk(const std::string& path, std::uint64_t size,
                        std::function<void(Result<void>)> done) {
    const auto whole = (size + sector_bytes - 1) / sector_bytes * sector_bytes;
    soon([this, path, whole, done = std::move(done)] {
        auto& disk = disks_[path];
        if (!disk)
            disk = std::make_unique<Disk>(clockwork_, disks_.size(), DiskSpec{.size = whole});
        else if (disk->spec().size < whole)
            disk->grow(whole);
        done({});
    });
}

void Host::remove_disk(const std::string& path, std::function<void(Result<void>)> done) {
    soon([this, path, done = std::move(done)] {
        opened_disks_.erase(path);
        if (auto found = disks_.find(path); found != disks_.end()) {
            removed_disks_.push_back(std::move(found->second));
            disks_.erase(found);
        }
        done({});
    });
}

/// What a thread beside the loop would do, unless the power goes first.
void Host::soon(std::function<void()> work) {
    clockwork_.schedule.at(now() + std::chrono::milliseconds(2), "file", 0,
                           [this, begun_after = power_cuts_, work = std::move(work)] {
                               if (power_cuts_ == begun_after) when_running(work);
                           });
}

Result<std::vector<std::byte>> Host::read_file(const std::string& path) {
    auto found = files_.find(path);
    if (found == files_.end()) return Error{.code = Code::not_found, .detail = ENOENT};
    return found->second;
}

void Host::replace_file(const std::string& path, ConstBuffer contents,
                        std::function<void(Result<void>)> done) {
    replacements_.push_back({path, {contents.begin(), contents.end()}, std::move(done)});
    if (replacements_.size() == 1) replace_next();
}

void Host::replace_next() {
    const auto takes =
        clockwork_.random.between(std::chrono::microseconds(100), std::chrono::milliseconds(20));
    clockwork_.schedule.at(now() + takes, "file", 0, [this, begun_after = power_cuts_] {
        if (power_cuts_ != begun_after) return;
        if (paused_) return held_.push_back([this] { replace_next(); });
        auto replaced = std::move(replacements_.front());
        replacements_.pop_front();
        files_[replaced.path] = std::move(replaced.contents);
        if (!replacements_.empty()) replace_next();
        replaced.done({});
    });
}

void Host::power_cut() {
    ++power_cuts_;
    paused_ = false;
    held_.clear();
    if (!replacements_.empty() && clockwork_.random.below(2) == 0)
        files_[replacements_.front().path] = std::move(replacements_.front().contents);
    replacements_.clear();
    network_.power_cut(name_);
    for (const std::string& disk : std::exchange(opened_disks_, {}))
        disks_.at(disk)->power_cut(AfterPowerCut::requests_vanish);
}

}  // namespace weft::sim
