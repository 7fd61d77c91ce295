// SPDX-License-Identifier: Apache-2.0
// Reading, writing and flushing in one call, for engines that ask a disk for many things at a time.
// What is asked lives until it is answered, which may be from inside the call, or as long as the
// engine, whose machine may have lost its power meanwhile.
#pragma once

#include <functional>
#include <list>
#include <utility>
#include <vector>

#include "weft/block_device.hpp"

namespace weft::raid {

using Told = std::function<void(Result<void>)>;

class DiskAsker final {
public:
    explicit DiskAsker(BlockDevice& disk) : disk_(disk) {}
    DiskAsker(const DiskAsker&) = delete;
    DiskAsker& operator=(const DiskAsker&) = delete;

    void read(std::uint64_t at, Buffer into, Told told) {
        submit(BlockOperation::read, at, {into}, std::move(told));
    }
    void write(std::uint64_t at, std::vector<Buffer> from, Told told) {
        submit(BlockOperation::write, at, std::move(from), std::move(told));
    }
    /// Told when it outlives the power; of what else was written that says nothing.
    void write_durably(std::uint64_t at, std::vector<Buffer> from, Told told) {
        submit(BlockOperation::write, at, std::move(from), std::move(told), true);
    }
    void flush(Told told) { submit(BlockOperation::flush, 0, {}, std::move(told)); }

    void submit(BlockOperation operation, std::uint64_t at, std::vector<Buffer> octets, Told told,
                bool durable = false) {
        auto& made = asked_.emplace_back(*this, std::move(octets), std::move(told));
        made.self = std::prev(asked_.end());
        made.operation = operation;
        made.offset = at;
        made.durable = durable;
        disk_.submit(made);
    }

private:
    struct Request final : BlockRequest {
        Request(DiskAsker& made_by, std::vector<Buffer> list, Told whom)
            : asker(made_by), octets(std::move(list)), told(std::move(whom)) {
            memory = octets;
            for (Buffer part : octets) length += part.size();
        }
        void completed(Result<void> outcome) override {
            auto whom = std::move(told);
            asker.asked_.erase(self);  // which is this
            whom(outcome);
        }

        DiskAsker& asker;
        std::vector<Buffer> octets;
        Told told;
        std::list<Request>::iterator self{};
    };

    BlockDevice& disk_;
    std::list<Request> asked_;
};

}  // namespace weft::raid
