// SPDX-License-Identifier: Apache-2.0
// File operations on a few threads, with results handed back through an eventfd. Started with the
// first operation, so that a world without disks has no threads.
//
// The only place of this folder where two threads meet: everything shared is under one lock, and
// an operation belongs to exactly one side at a time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "linux/file_io.hpp"
#include "base/intrusive_queue.hpp"

namespace weft::linux {

class ThreadFileIo final : public FileIo, public DescriptorHandler, public TurnEnd {
public:
    static Result<std::unique_ptr<ThreadFileIo>> make(EventLoop& loop, unsigned threads);
    /// Every operation must have finished.
    ~ThreadFileIo() override;

    void start(FileOperation& operation) override { gathered_.push_back(operation); }
    bool turn_ends() override;
    void ready(std::uint32_t events) override;

private:
    ThreadFileIo(EventLoop& loop, Descriptor bell, unsigned threads);
    void start_threads();
    bool work_alone();
    void work();

    EventLoop& loop_;
    Descriptor bell_;  ///< rung when done_ stops being empty
    unsigned wanted_threads_;
    std::vector<std::thread> threads_;
    IntrusiveQueue<FileOperation> gathered_;  ///< the loop's own, not under the lock
    std::size_t in_flight_ = 0;

    std::mutex lock_;
    std::condition_variable work_came_;
    IntrusiveQueue<FileOperation> to_do_;
    IntrusiveQueue<FileOperation> done_;
    bool leaving_ = false;
};

}  // namespace weft::linux
