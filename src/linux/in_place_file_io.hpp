// SPDX-License-Identifier: Apache-2.0
// Does in place, on the loop's own thread, what most likely does not wait, and leaves the rest to
// an engine. Handing a 4 KiB operation to another thread costs several times the operation.
//
// A small write to the page cache is a copy, until the kernel makes writers wait for the disk.
// So each is timed: a slow one is followed by fifty times its time in which the engine does them
// all, and waiting can never take more than a fiftieth of the loop's time.
//
// A cached read is tried with RWF_NOWAIT, which is exact. Only threads need that; a ring does the
// same inside the kernel, for many reads at once.
#pragma once

#include "linux/file_io.hpp"
#include "base/intrusive_queue.hpp"

namespace weft::linux {

class InPlaceFileIo final : public FileIo, public TurnEnd {
public:
    enum class Reads : std::uint8_t { leave_to_engine, try_in_place };

    InPlaceFileIo(EventLoop& loop, std::unique_ptr<FileIo> engine, Reads reads);
    ~InPlaceFileIo() override;

    void start(FileOperation& operation) override;
    bool turn_ends() override;

private:
    void try_read(FileOperation& operation);
    void do_timed(FileOperation& operation);

    EventLoop& loop_;
    std::unique_ptr<FileIo> engine_;
    Reads reads_;
    Instant patient_until_;  ///< until then all that may wait is the engine's
    IntrusiveQueue<FileOperation> gathered_;
};

}  // namespace weft::linux
