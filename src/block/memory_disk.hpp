// SPDX-License-Identifier: Apache-2.0
// A disk in memory: sparse, bounded, and able to lend its bytes.
//
// The bytes lie together and never move, so lend() is an address computation and a request whose
// scatter list is lent memory costs no copy. Which parts hold data is kept in a bitmap of 4 KiB
// blocks: it answers block status, lets trim give memory back, and enforces the bound.
#pragma once

#include <memory>
#include <vector>

#include "block/sparse_memory.hpp"
#include "weft/block_device.hpp"

namespace weft::block {

class MemoryDisk final : public BlockDevice {
public:
    static constexpr std::uint64_t block_size = 4096;

    /// The disk is as large as the memory; at most `bound` bytes of it, rounded up to whole blocks,
    /// may hold data at a time. A write that would need more completes with Code::exhausted and
    /// changes nothing.
    MemoryDisk(std::unique_ptr<SparseMemory> memory, std::uint64_t bound);

    BlockTraits traits() const override;
    void submit(BlockRequest& request) override;
    Buffer lend(BlockOperation operation, std::uint64_t offset, std::uint64_t length) override;

    std::uint64_t allocated_bytes() const { return allocated_blocks_ * block_size; }

private:
    Result<void> perform(BlockRequest& request);
    Result<void> move(BlockRequest& request);
    Result<void> zero(std::uint64_t offset, std::uint64_t length, bool keep_space);
    void report(BlockRequest& request) const;

    /// Zeroes what lies in [from, to) of the blocks that hold data, or of those that do not.
    void clear_blocks(std::uint64_t from, std::uint64_t to, bool with_data);
    /// Marks the blocks a write touches; false if that would pass the bound.
    bool allocate(std::uint64_t offset, std::uint64_t length);
    bool allocated(std::uint64_t block) const { return bitmap_[block / 64] >> block % 64 & 1; }

    std::unique_ptr<SparseMemory> memory_;
    Buffer octets_;
    std::uint64_t bound_blocks_;
    std::uint64_t allocated_blocks_ = 0;
    std::vector<std::uint64_t> bitmap_;
};

}  // namespace weft::block
