// SPDX-License-Identifier: Apache-2.0
// Reading, writing and flushing in one call, for what happens rarely or takes long anyway: each
// makes a request that lives until it is answered, which may be from inside the call.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "weft/block_device.hpp"

namespace weft::raid {

using Told = std::function<void(Result<void>)>;

class LoneRequest final : public BlockRequest {
public:
    static void submit(BlockDevice& disk, BlockOperation wanted, std::uint64_t at,
                       std::vector<Buffer> octets, Told told) {
        auto* made = new LoneRequest(std::move(octets), std::move(told));
        made->operation = wanted;
        made->offset = at;
        made->memory = made->octets_;
        for (Buffer part : made->octets_) made->length += part.size();
        disk.submit(*made);
    }
    void completed(Result<void> outcome) override {
        auto told = std::move(told_);
        delete this;
        told(outcome);
    }

private:
    LoneRequest(std::vector<Buffer> octets, Told told)
        : octets_(std::move(octets)), told_(std::move(told)) {}
    ~LoneRequest() = default;

    std::vector<Buffer> octets_;
    Told told_;
};

inline void read_disk(BlockDevice& disk, std::uint64_t at, Buffer into, Told told) {
    LoneRequest::submit(disk, BlockOperation::read, at, {into}, std::move(told));
}
inline void write_disk(BlockDevice& disk, std::uint64_t at, std::vector<Buffer> from, Told told) {
    LoneRequest::submit(disk, BlockOperation::write, at, std::move(from), std::move(told));
}
inline void flush_disk(BlockDevice& disk, Told told) {
    LoneRequest::submit(disk, BlockOperation::flush, 0, {}, std::move(told));
}

}  // namespace weft::raid
