// SPDX-License-Identifier: Apache-2.0
#include "sim/world.hpp"

#include "base/check.hpp"

namespace weft::sim {

World::World(std::uint64_t seed)
    : seed_(seed),
      clockwork_(seed),
      network_(clockwork_),
      local_(clockwork_, network_, disks_, "local") {}

World::~World() {
    clockwork_.schedule.clear();
}

std::unique_ptr<Timer> World::make_timer(std::function<void()> task) {
    return local_.make_timer(std::move(task));
}

Result<std::unique_ptr<Listener>> World::listen(const Address& address, Accepted accepted) {
    return local_.listen(address, std::move(accepted));
}

Result<std::unique_ptr<Stream>> World::connect(const Address& address, StreamEngine& engine,
                                               const Address& from) {
    return local_.connect(address, engine, from);
}

Result<std::vector<Address>> World::resolve(const Address& address) {
    return local_.resolve(address);
}

Result<std::unique_ptr<BlockDevice>> World::open_disk(const DiskOptions& options) {
    return local_.open_disk(options);
}

Host& World::host(const std::string& name) {
    if (name == local_.name()) return local_;
    auto& host = hosts_[name];
    if (!host) host = std::make_unique<Host>(clockwork_, network_, disks_, name);
    return *host;
}

Disk& World::make_disk(const std::string& name, const DiskSpec& spec) {
    WEFT_CHECK(!disks_.contains(name));
    return *(disks_[name] = std::make_unique<Disk>(clockwork_, disks_.size(), spec));
}

}  // namespace weft::sim
