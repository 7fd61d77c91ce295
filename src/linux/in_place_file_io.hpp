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

#include <functional>
#include <optional>

#include "base/intrusive_queue.hpp"
#include "linux/file_io.hpp"

namespace weft::linux {

class InPlaceFileIo final : public FileIo, public TurnEnd {
public:
    enum class Reads : std::uint8_t { leave_to_engine, try_in_place };

    /// Not the loop's time, which stands still during a turn: what is timed happens inside one.
    using Clock = std::function<Instant()>;

    InPlaceFileIo(EventLoop& loop, std::unique_ptr<FileIo> engine, Reads reads, Clock clock);
    ~InPlaceFileIo() override;

    void start(FileOperation& operation) override;
    bool turn_ends() override;

private:
    void try_read(FileOperation& operation);
    void do_timed(FileOperation& operation);
    bool is_patient();

    EventLoop& loop_;
    std::unique_ptr<FileIo> engine_;
    Reads reads_;
    Clock clock_;
    std::optional<Instant> patient_until_;  ///< until then all that may wait is the engine's
    IntrusiveQueue<FileOperation> gathered_;
};

}  // namespace weft::linux
