// SPDX-License-Identifier: Apache-2.0
// One request on its way through a file: which system call is under way, and what follows it.
//
// Short transfers are continued, a durable trim is a trim and then a sync, zeroes the file system
// cannot make are written out. Each disk has a fixed number of these; that is its depth.
#pragma once

#include <array>
#include <cstdlib>
#include <memory>

#include "block/scatter.hpp"
#include "linux/file_io.hpp"
#include "linux/limits.hpp"
#include "weft/block_device.hpp"

namespace weft::linux {

class FileDisk;

class DiskOperation final : public FileOperation {
public:
    explicit DiskOperation(FileDisk& disk) : disk_(disk) {}

    /// The request has been checked: it lies within the disk and the disk can do it.
    void begin(BlockRequest& request);

    std::int64_t on_thread() override;
    void finished(std::int64_t result) override;

private:
    enum class Step : std::uint8_t {
        moving,  ///< read or write
        making_durable,
        trimming,
        punching,        ///< zeroes as a hole
        zeroing,         ///< zeroes that keep their space
        writing_zeroes,  ///< zeroes by hand
        asking,          ///< what is data, what is a hole
        advising,
    };
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };

    void start(Step step, Kind kind, int flags);
    void move_next();
    bool is_aligned(std::span<const iovec> pieces) const;
    bool is_brief() const;
    void use_bounce();
    void moved(std::size_t count);
    void begin_trim();
    void begin_zeroing();
    void write_zeroes_next();
    void make_durable(std::uint64_t from, std::uint64_t octets);
    void end_change();
    std::int64_t find_extents();
    std::int64_t discard();
    void complete(Result<void> outcome);

    std::uint64_t left() const { return request_->length - done_; }
    int durability() const;

    FileDisk& disk_;
    BlockRequest* request_ = nullptr;
    Step step_ = Step::moving;
    bool bounced_ = false;
    std::uint64_t done_ = 0;  ///< bytes of the request
    block::ScatterCursor cursor_;
    std::array<iovec, limits::pieces_per_operation> pieces_;
    std::unique_ptr<std::byte, Free> bounce_;  ///< made when first needed, then kept
};

}  // namespace weft::linux
