// SPDX-License-Identifier: Apache-2.0
// A disk that is opened anew when it has grown. What was begun on it before ends where it began; so
// those opened earlier are kept until the end.
#pragma once

#include <memory>
#include <vector>

#include "weft/block_device.hpp"

namespace weft::node {

class GrowingDisk final : public BlockDevice {
public:
    explicit GrowingDisk(std::unique_ptr<BlockDevice> disk) { opened_.push_back(std::move(disk)); }

    /// The same disk, larger.
    void use(std::unique_ptr<BlockDevice> disk) {
        opened_.push_back(std::move(disk));
        announce_size(traits().size);
    }

    BlockTraits traits() const override { return opened_.back()->traits(); }
    void submit(BlockRequest& request) override { opened_.back()->submit(request); }
    Buffer lend(BlockOperation operation, std::uint64_t offset, std::uint64_t length) override {
        return opened_.back()->lend(operation, offset, length);
    }

private:
    std::vector<std::unique_ptr<BlockDevice>> opened_;
};

}  // namespace weft::node
