// SPDX-License-Identifier: Apache-2.0
// A device open on a simulated disk. Private to the disk's own files.
#pragma once

#include <cstddef>
#include <optional>

#include "base/check.hpp"
#include "sim/disk.hpp"

namespace weft::sim {

/// Requests in order, linked through themselves: it costs no memory, so it needs no bound.
class RequestQueue {
public:
    bool empty() const { return first_ == nullptr; }
    void push(BlockRequest& request) {
        (empty() ? first_ : last_->next) = &request;
        last_ = &request;
    }
    BlockRequest& pop() {
        WEFT_CHECK(!empty());
        BlockRequest& request = *first_;
        first_ = request.next;
        request.next = nullptr;
        return request;
    }

private:
    BlockRequest* first_ = nullptr;
    BlockRequest* last_ = nullptr;
};

class Disk::Device final : public BlockDevice {
public:
    Device(Disk& disk_, Access access_) : disk(disk_), access(access_) {}
    ~Device() override;

    BlockTraits traits() const override;
    void submit(BlockRequest& request) override;
    void announce(std::uint64_t size) { announce_size(size); }

    Disk& disk;
    Access access;
    RequestQueue waiting;
    std::size_t outstanding = 0;
    std::optional<AfterPowerCut> cut_off;  ///< opened before a power cut: useless since
};

}  // namespace weft::sim
