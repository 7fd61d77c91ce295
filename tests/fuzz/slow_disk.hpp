// SPDX-License-Identifier: Apache-2.0
// A disk that answers when the harness says so, the newest request first: a peer's next bytes may
// come before. It knows no googletest, which tests/support/held_disk.hpp does.
#pragma once

#include <vector>

#include "weft/block_device.hpp"

namespace weft::fuzz {

class SlowDisk final : public BlockDevice {
public:
    explicit SlowDisk(BlockDevice& under) : under_(under) {}
    BlockTraits traits() const override { return under_.traits(); }
    void submit(BlockRequest& request) override { held_.push_back(&request); }
    /// Answers the newest request it holds; false if there is none.
    bool answer() {
        if (held_.empty()) return false;
        auto& request = *held_.back();
        held_.pop_back();
        under_.submit(request);
        return true;
    }

private:
    BlockDevice& under_;
    std::vector<BlockRequest*> held_;
};

}  // namespace weft::fuzz
