// SPDX-License-Identifier: Apache-2.0
// A device open on a simulated disk. Private to the disk's own files.
#pragma once

#include <cstddef>
#include <optional>

#include "block/request_queue.hpp"
#include "sim/disk.hpp"

namespace weft::sim {

class Disk::Device final : public BlockDevice {
public:
    Device(Disk& disk_, Access access_) : disk(disk_), access(access_) {}
    ~Device() override;

    BlockTraits traits() const override;
    void submit(BlockRequest& request) override;
    void announce(std::uint64_t size) { announce_size(size); }

    Disk& disk;
    Access access;
    block::RequestQueue waiting;
    std::size_t outstanding = 0;
    std::optional<AfterPowerCut> cut_off;  ///< opened before a power cut: useless since
};

}  // namespace weft::sim
