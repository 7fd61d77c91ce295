// SPDX-License-Identifier: Apache-2.0
// How requests travel through the disk. What they do to the bytes is in disk_operations.cpp.
#include "sim/disk.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "sim/disk_device.hpp"

namespace weft::sim {

Disk::Disk(Clockwork& clockwork, std::uint64_t number, const DiskSpec& spec)
    : clockwork_(clockwork), number_(number), spec_(spec), medium_(spec.cache_sectors) {
    WEFT_CHECK(spec.size % sector_bytes == 0 && spec.queue_depth > 0);
}

Disk::~Disk() {
    WEFT_CHECK(devices_.empty());
}

std::unique_ptr<BlockDevice> Disk::open(Access access) {
    auto device = std::make_unique<Device>(*this, access);
    devices_.push_back(device.get());
    return device;
}

Disk::Device::~Device() {
    // Requests that will never complete, because the disk hangs, are let go with the device.
    WEFT_CHECK(outstanding == 0 || disk.life_ == Life::hangs);
    std::erase_if(disk.in_service_, [this](auto& entry) {
        if (entry.second.device == this) disk.clockwork_.schedule.cancel(entry.second.end);
        return entry.second.device == this;
    });
    std::erase(disk.devices_, this);
}

BlockTraits Disk::Device::traits() const {
    return {.size = disk.spec_.size,
            .minimum_block = sector_bytes,
            .read_only = access == Access::read_only,
            .can_trim = true,
            .can_write_zeroes = true,
            .can_report_status = true};
}

void Disk::Device::submit(BlockRequest& request) {
    disk.submit(request, *this);
}

void Disk::grow(std::uint64_t size) {
    WEFT_CHECK(size >= spec_.size && size % sector_bytes == 0);
    spec_.size = size;
    // Who hears may close any device of this disk.
    for (Device* device : std::vector(devices_))
        if (std::ranges::find(devices_, device) != devices_.end()) device->announce(size);
}

void Disk::submit(BlockRequest& request, Device& device) {
    request.next = nullptr;
    if (device.cut_off) {
        if (*device.cut_off == AfterPowerCut::requests_vanish) return;
        clockwork_.schedule.soon("disk cut off", number_, [&request] {
            request.completed(Error{.code = Code::disconnected});
        });
        return;
    }
    ++device.outstanding;
    bool idle = in_service_.size() < spec_.queue_depth && device.waiting.empty();
    if (!idle) return device.waiting.push_back(request);
    if (life_ == Life::well && clockwork_.random.chance(spec_.immediate_percent)) {
        auto outcome = execute({&request, &device, medium_.mark(), {}});
        --device.outstanding;
        return request.completed(outcome);
    }
    serve(request, device);
}

void Disk::serve(BlockRequest& request, Device& device) {
    std::uint64_t number = ++last_service_;
    auto& service = in_service_[number] = {&request, &device, medium_.mark(), {}};
    if (life_ != Life::hangs) plan_end(number, service);
}

void Disk::plan_end(std::uint64_t number, Service& service) {
    bool flushes = service.request->operation == BlockOperation::flush || service.request->durable;
    Duration latency =
        flushes ? clockwork_.random.between(spec_.shortest_flush, spec_.longest_flush)
                : clockwork_.random.between(spec_.shortest_latency, spec_.longest_latency);
    service.end = clockwork_.schedule.at(clockwork_.now() + latency, "disk", number_,
                                         [this, number] { end(number); });
}

void Disk::end(std::uint64_t number) {
    Service service = in_service_.at(number);
    auto outcome = execute(service);
    in_service_.erase(number);
    --service.device->outstanding;
    serve_waiting();
    service.request->completed(outcome);
}

void Disk::serve_waiting() {
    for (Device* device : devices_)
        while (!device->waiting.empty() && in_service_.size() < spec_.queue_depth)
            serve(device->waiting.pop_front(), *device);
}

void Disk::power_cut(AfterPowerCut after) {
    clockwork_.note("fault: disk power cut", number_);
    std::vector<BlockRequest*> requests;
    for (auto& [number, service] : in_service_) {
        clockwork_.schedule.cancel(service.end);
        leave_in_cache(service);
        requests.push_back(service.request);
    }
    in_service_.clear();
    medium_.power_cut(clockwork_.random);
    for (Device* device : devices_) {
        while (!device->waiting.empty()) requests.push_back(&device->waiting.pop_front());
        device->outstanding = 0;
        if (!device->cut_off) device->cut_off = after;
    }
    if (after == AfterPowerCut::requests_vanish) return;
    for (BlockRequest* request : requests)
        clockwork_.schedule.soon("disk cut off", number_, [request] {
            request->completed(Error{.code = Code::disconnected});
        });
}

void Disk::die(Death death) {
    clockwork_.note("fault: disk dies", number_);
    life_ = death == Death::fails ? Life::fails : Life::hangs;
    if (life_ != Life::hangs) return;
    for (auto& [number, service] : in_service_)
        clockwork_.schedule.cancel(std::exchange(service.end, {}));
}

void Disk::revive() {
    clockwork_.note("disk revives", number_);
    life_ = Life::well;
    for (auto& [number, service] : in_service_)
        if (!clockwork_.schedule.waits(service.end)) plan_end(number, service);
}

void Disk::make_bad(std::uint64_t offset, std::uint64_t length, BadFor bad_for) {
    bad_ranges_.push_back({offset, length, bad_for});
}

void Disk::set_error_percent(double reads, double writes) {
    spec_.read_error_percent = reads;
    spec_.write_error_percent = writes;
}

void Disk::heal() {
    bad_ranges_.clear();
    set_error_percent(0, 0);
}

}  // namespace weft::sim
