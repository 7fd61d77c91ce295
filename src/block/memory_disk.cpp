// SPDX-License-Identifier: Apache-2.0
#include "block/memory_disk.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "block/admission.hpp"
#include "block/scatter.hpp"

namespace weft::block {
namespace {

/// Calls `each(word index, mask)` for the bits [first, last) of a bitmap of 64-bit words.
template <class Each>
void for_each_word(std::uint64_t first, std::uint64_t last, Each each) {
    while (first < last) {
        std::uint64_t count = std::min(64 - first % 64, last - first);
        std::uint64_t ones = count == 64 ? ~0ull : (1ull << count) - 1;
        each(first / 64, ones << first % 64);
        first += count;
    }
}

}  // namespace

MemoryDisk::MemoryDisk(std::unique_ptr<SparseMemory> memory, std::uint64_t bound)
    : memory_(std::move(memory)),
      octets_(memory_->all()),
      bound_blocks_(bound / block_size + (bound % block_size != 0)),  // the sum could wrap round
      bitmap_(round_up(octets_.size(), block_size * 64) / (block_size * 64)) {}

BlockTraits MemoryDisk::traits() const {
    return {.size = octets_.size(),
            .can_trim = true,
            .can_write_zeroes = true,
            .can_report_status = true};
}

void MemoryDisk::submit(BlockRequest& request) {
    request.completed(perform(request));
}

Result<void> MemoryDisk::perform(BlockRequest& request) {
    if (auto refused = refusal_of(request, traits())) return *refused;
    WEFT_CHECK(memory_fits(request));
    switch (request.operation) {
        case BlockOperation::read:
        case BlockOperation::write:
            return move(request);
        case BlockOperation::trim:
            return zero(request.offset, request.length, false);
        case BlockOperation::write_zeroes:
            return zero(request.offset, request.length, request.keep_space);
        case BlockOperation::status:
            report(request);
            return {};
        case BlockOperation::flush:
        case BlockOperation::prefetch:
            return {};
    }
    return Error{.code = Code::unsupported};
}

Result<void> MemoryDisk::move(BlockRequest& request) {
    bool writing = request.operation == BlockOperation::write;
    Buffer here = octets_.subspan(request.offset, request.length);
    if (writing && !allocate(request.offset, request.length)) {
        // The bytes of a lent write are here already, and where there is no block they must go.
        bool lent = !request.memory.empty() && request.memory.front().data() == here.data();
        if (lent) clear_blocks(request.offset, request.offset + request.length, false);
        return Error{.code = Code::exhausted};
    }
    ScatterCursor there(request.memory, 0, request.length);
    if (writing)
        copy_out(there, here);
    else
        copy_in(here, there);
    return {};
}

Result<void> MemoryDisk::zero(std::uint64_t offset, std::uint64_t length, bool keep_space) {
    // Whole blocks go back; the edges of a range are zeroed in place, and only where there is data.
    // Space that is to be kept stays counted, though its memory too goes back until it is written.
    std::uint64_t end = offset + length;
    auto whole_end =
        end == octets_.size() ? round_up(end, block_size) : round_down(end, block_size);
    std::uint64_t first = round_up(offset, block_size) / block_size;
    std::uint64_t last = whole_end / block_size;
    std::uint64_t with_data = 0;
    for_each_word(first, last, [&](std::uint64_t word, std::uint64_t mask) {
        with_data += static_cast<std::uint64_t>(std::popcount(bitmap_[word] & mask));
    });
    if (keep_space && !allocate(offset, length)) return Error{.code = Code::exhausted};
    if (first >= last) {
        clear_blocks(offset, end, true);
        return {};
    }
    clear_blocks(offset, first * block_size, true);
    clear_blocks(last * block_size, end, true);
    if (!keep_space) {
        for_each_word(first, last,
                      [&](std::uint64_t word, std::uint64_t mask) { bitmap_[word] &= ~mask; });
        allocated_blocks_ -= with_data;
    }
    if (with_data > 0) {
        auto from = first * block_size;
        memory_->release(from, std::min(last * block_size, octets_.size()) - from);
    }
    return {};
}

void MemoryDisk::clear_blocks(std::uint64_t from, std::uint64_t to, bool with_data) {
    while (from < to) {
        std::uint64_t next = std::min(round_down(from, block_size) + block_size, to);
        if (allocated(from / block_size) == with_data)
            std::memset(octets_.data() + from, 0, next - from);
        from = next;
    }
}

bool MemoryDisk::allocate(std::uint64_t offset, std::uint64_t length) {
    if (length == 0) return true;
    std::uint64_t first = offset / block_size;
    std::uint64_t last = round_up(offset + length, block_size) / block_size;
    std::uint64_t missing = 0;
    for_each_word(first, last, [&](std::uint64_t word, std::uint64_t mask) {
        missing += static_cast<std::uint64_t>(std::popcount(~bitmap_[word] & mask));
    });
    if (missing == 0) return true;
    if (allocated_blocks_ + missing > bound_blocks_) return false;
    for_each_word(first, last,
                  [&](std::uint64_t word, std::uint64_t mask) { bitmap_[word] |= mask; });
    allocated_blocks_ += missing;
    return true;
}

void MemoryDisk::report(BlockRequest& request) const {
    request.extent_count = 0;
    std::uint64_t at = request.offset;
    std::uint64_t end = request.offset + request.length;
    while (at < end && request.extent_count < request.extents.size()) {
        bool data = allocated(at / block_size);
        std::uint64_t next = at;
        while (next < end && allocated(next / block_size) == data) {
            // Whole words of one state are stepped over at once: a terabyte of hole is quick.
            std::uint64_t word = bitmap_[next / block_size / 64];
            std::uint64_t unit = word == (data ? ~0ull : 0) ? block_size * 64 : block_size;
            next = std::min(round_down(next, unit) + unit, end);
        }
        request.extents[request.extent_count++] = {next - at, !data, !data};
        at = next;
    }
}

Buffer MemoryDisk::lend(BlockOperation operation, std::uint64_t offset, std::uint64_t length) {
    if (length == 0 || !within(offset, length, octets_.size())) return {};
    if (operation == BlockOperation::write && !allocate(offset, length)) return {};
    return octets_.subspan(offset, length);
}

}  // namespace weft::block
