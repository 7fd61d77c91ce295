// SPDX-License-Identifier: Apache-2.0
// A window of a device: a partition, an image inside a file. Its first byte is the window's first.
#pragma once

#include <memory>

#include "block/relay_filter.hpp"

namespace weft::block {

class OffsetFilter final : public RelayFilter {
public:
    /// Fails with out_of_range if the window does not lie in the device, and with malformed if its
    /// edges are not on the device's blocks.
    static Result<std::unique_ptr<OffsetFilter>> make(BlockDevice& below, std::uint64_t offset,
                                                      std::uint64_t length);

    /// As below, but for the size. If the device below shrinks, what is left of the window is.
    BlockTraits traits() const override;
    Buffer lend(BlockOperation operation, std::uint64_t offset, std::uint64_t length) override;

private:
    OffsetFilter(BlockDevice& below, std::uint64_t offset, std::uint64_t length)
        : RelayFilter(below, relay_places), offset_(offset), length_(length) {}

    Result<void> admit(const BlockRequest& request) override;
    void going_down(BlockRequest& copy) override { copy.offset += offset_; }

    std::uint64_t offset_;
    std::uint64_t length_;
};

}  // namespace weft::block
