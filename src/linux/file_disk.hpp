// SPDX-License-Identifier: Apache-2.0
// A disk that is a regular file or a block device.
//
// A request is checked here and then given to one of the disk's operations; when all are busy it
// waits, chained to the others through its own `next`, in the order they came.
#pragma once

#include <deque>
#include <vector>

#include "base/intrusive_queue.hpp"
#include "linux/disk_operation.hpp"
#include "linux/file_facts.hpp"

namespace weft::linux {

class FileDisk final : public BlockDevice {
public:
    static Result<std::unique_ptr<BlockDevice>> open(FileIo& io, const DiskOptions& options);
    FileDisk(FileIo& io, OpenedFile file);
    ~FileDisk() override;

    BlockTraits traits() const override { return file_.facts.traits; }
    void submit(BlockRequest& request) override;

    // For the operations.
    FileIo& io() { return io_; }
    int descriptor() const { return file_.descriptor.number(); }
    const FileFacts& facts() const { return file_.facts; }
    void put_back(DiskOperation& operation);
    bool can_punch;              ///< until the file system says no
    bool can_zero_range = true;  ///< until the file system says no

private:
    void start_waiting();

    FileIo& io_;
    OpenedFile file_;
    std::deque<DiskOperation> operations_;
    std::vector<DiskOperation*> idle_;
    IntrusiveQueue<BlockRequest> waiting_;
    bool starting_ = false;
};

}  // namespace weft::linux
