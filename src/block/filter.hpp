// SPDX-License-Identifier: Apache-2.0
// A device over another. Alone, Filter says and lends what the device below does; what happens
// to requests is for the kinds: offset_filter, error_filter, delay_filter, log_filter.
//
// The device below must outlive its filter.
#pragma once

#include "weft/block_device.hpp"

namespace weft::block {

class Filter : public BlockDevice, private SizeWatcher {
public:
    explicit Filter(BlockDevice& below) : below_(below) { below_.watch_size(*this); }
    ~Filter() override { below_.unwatch_size(*this); }

    BlockTraits traits() const override { return below_.traits(); }
    Buffer lend(BlockOperation operation, std::uint64_t offset, std::uint64_t length) override {
        return below_.lend(operation, offset, length);
    }

protected:
    BlockDevice& below() const { return below_; }

private:
    void size_changed(std::uint64_t /*size*/) override { announce_size(traits().size); }

    BlockDevice& below_;
};

}  // namespace weft::block
