// SPDX-License-Identifier: Apache-2.0
// A memory disk that answers when it is told to, so that tests can look at what is under way.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>

#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"

namespace weft::test {

class TestDisk final : public BlockDevice {
public:
    enum class Answers { at_once, when_told };

    explicit TestDisk(std::size_t size, Answers answers = Answers::at_once)
        : size_(size), disk_(std::make_unique<block::HeapMemory>(size), size), answers_(answers) {}

    BlockTraits traits() const override {
        auto traits = disk_.traits();
        traits.size = size_;
        traits.minimum_block = minimum_block;
        return traits;
    }
    void submit(BlockRequest& request) override {
        ++submitted;
        if (answers_ == Answers::at_once)
            disk_.submit(request);
        else
            held_.push_back(&request);
    }
    Buffer lend(BlockOperation operation, std::uint64_t offset, std::uint64_t length) override {
        return disk_.lend(operation, offset, length);
    }

    std::size_t held() const { return held_.size(); }
    /// Answers the i-th oldest of those it holds.
    void answer(std::size_t i = 0) {
        auto* request = held_.at(i);
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
        disk_.submit(*request);
    }
    void answer_all() {
        while (!held_.empty()) answer();
    }
    void answer_from_now_on(Answers answers) { answers_ = answers; }
    void resize(std::uint64_t size) {
        size_ = size;
        announce_size(size);
    }

    int submitted = 0;
    std::uint32_t minimum_block = 1;

private:
    std::uint64_t size_;
    block::MemoryDisk disk_;
    Answers answers_;
    std::deque<BlockRequest*> held_;
};

}  // namespace weft::test
