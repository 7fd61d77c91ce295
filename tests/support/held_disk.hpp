// SPDX-License-Identifier: Apache-2.0
// A disk that answers when the test says so: late, in another order, or with an error. It lends no
// memory, so those who use it must bring their own.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "weft/block_device.hpp"

namespace weft::test {

class HeldDisk final : public BlockDevice {
public:
    /// `under` does the work.
    explicit HeldDisk(BlockDevice& under) : shown(under.traits()), under_(under) {}
    ~HeldDisk() override { EXPECT_TRUE(held.empty()); }

    BlockTraits traits() const override { return shown; }
    void submit(BlockRequest& request) override {
        if (holding)
            held.push_back(&request);
        else
            under_.submit(request);
    }
    Buffer lend(BlockOperation operation, std::uint64_t offset, std::uint64_t length) override {
        return lending ? under_.lend(operation, offset, length) : Buffer{};
    }

    /// Carries out the request that came as the index-th of those still held.
    void let_go(std::size_t index) { under_.submit(take(index)); }
    void let_all_go() {
        while (!held.empty()) let_go(0);
    }
    void fail(std::size_t index, Error why) { take(index).completed(why); }

    BlockTraits shown;
    bool holding = true;
    bool lending = false;
    std::vector<BlockRequest*> held;

private:
    BlockRequest& take(std::size_t index) {
        auto& request = *held.at(index);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
        return request;
    }

    BlockDevice& under_;
};

}  // namespace weft::test
