// SPDX-License-Identifier: Apache-2.0
// File operations through one io_uring per loop. Submissions go out once per turn; completions
// are read from shared memory, and an eventfd that the kernel rings for each sits in epoll, for
// when there is nothing else to do. A read that the page cache answers completes inside the
// submission.
//
// lseek(SEEK_HOLE) and ioctl(BLKDISCARD) have no ring operation and may wait for the disk (one
// reads metadata, the other may take seconds), so they go to one helper thread, never inline.
#pragma once

#include <liburing.h>

#include "base/intrusive_queue.hpp"
#include "linux/file_io.hpp"
#include "linux/thread_file_io.hpp"

namespace weft::linux {

class RingFileIo final : public FileIo, public DescriptorHandler, public TurnEnd {
public:
    /// Fails where the kernel has no io_uring, is too old for what we need, or refuses it.
    static Result<std::unique_ptr<RingFileIo>> make(EventLoop& loop);
    /// Every operation must have finished.
    ~RingFileIo() override;

    void start(FileOperation& operation) override;
    bool turn_ends() override;
    void ready(std::uint32_t events) override;

private:
    explicit RingFileIo(EventLoop& loop) : loop_(loop) {}
    Result<void> set_up();
    void prepare(FileOperation& operation);
    void submit();
    bool reap();

    EventLoop& loop_;
    io_uring ring_{};
    bool has_ring_ = false;
    Descriptor bell_;  ///< rung by the kernel when something has finished; never read
    std::unique_ptr<ThreadFileIo> helper_;
    IntrusiveQueue<FileOperation> waiting_;
    unsigned in_flight_ = 0;
};

}  // namespace weft::linux
