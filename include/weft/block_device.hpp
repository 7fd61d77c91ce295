// SPDX-License-Identifier: Apache-2.0
// The one storage shape. A memory disk, a file, an NBD client, a RAID volume and the filters in
// between are all a BlockDevice; the NBD server and the iSCSI target serve any of them.
//
// A request is an object its maker owns and keeps alive until completed() is called. The device
// never allocates per request and never copies the scatter list. completed() may be called from
// inside submit(), so a maker must be ready for the answer before it asks. A device may be
// destroyed from inside the completed() of its last request: a device completes last, and touches
// nothing of its own afterwards.
//
// Every device refuses alike (block/admission.hpp is how), whatever else is wrong with it:
//     access_denied   a change, on a device that is read_only
//     out_of_range    beyond the end, or a read or write longer than maximum_transfer
//     malformed       offset or length not a multiple of minimum_block
//     unsupported     trim, write_zeroes or status where the traits say it cannot
// A flush has no range: its offset and length mean nothing and are never refused.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/buffer.hpp"
#include "weft/result.hpp"

namespace weft {

enum class BlockOperation : std::uint8_t {
    read,
    write,
    flush,         ///< every write completed before this was submitted is now durable
    trim,          ///< the contents are no longer needed; a device may keep them
    write_zeroes,  ///< reads as zero afterwards
    prefetch,      ///< will be read soon
    status,        ///< which parts are holes, which read as zero
};

/// A run of bytes with one allocation state.
struct Extent {
    std::uint64_t length = 0;
    bool hole = false;  ///< takes no space
    bool zero = false;  ///< reads as zero

    bool operator==(const Extent&) const = default;
};

/// What a device is and can do. Operations it cannot do complete with Code::unsupported.
struct BlockTraits {
    std::uint64_t size = 0;           ///< bytes; changes are announced to SizeWatchers
    std::uint32_t minimum_block = 1;  ///< offsets and lengths must be multiples of this
    std::uint32_t preferred_block = 4096;
    std::uint32_t maximum_transfer = ~0u;  ///< the longest read or write
    bool read_only = false;
    bool rotational = false;
    bool can_trim = false;
    bool can_write_zeroes = false;  ///< faster than writing zeroes; else do that
    bool can_report_status = false;
    /// False: the device cannot say what has reached stable storage. A flush then succeeds, since
    /// there is nothing that could be asked, and so does what was to be durable.
    bool can_flush = true;
    bool can_write_durably = true;
};

class BlockRequest {
public:
    BlockOperation operation = BlockOperation::read;
    bool durable = false;  ///< write, trim, write_zeroes: complete only when on stable storage
    bool keep_space =
        false;  ///< write_zeroes: leave no hole, later writes must not run out of space
    bool fast_only = false;  ///< write_zeroes: fail with `unsupported` rather than write zeroes out
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::span<const Buffer> memory;  ///< read, write: the scatter list, `length` bytes in all

    /// status: room for the answer and, when completed, how many were written. They start at
    /// `offset`, follow each other, and may cover less than `length` when room ran out.
    std::span<Extent> extents;
    std::size_t extent_count = 0;

    /// For the device that holds the request, so that a queue of requests costs no memory.
    BlockRequest* next = nullptr;

    /// Called exactly once per submit(). The request is the maker's again.
    virtual void completed(Result<void> outcome) = 0;

protected:
    BlockRequest() = default;
    BlockRequest(const BlockRequest&) = default;
    BlockRequest& operator=(const BlockRequest&) = default;
    ~BlockRequest() = default;
};

/// Hears that a device's size is now another.
class SizeWatcher {
public:
    virtual void size_changed(std::uint64_t size) = 0;

protected:
    ~SizeWatcher() = default;
};

class BlockDevice {
public:
    BlockDevice() = default;
    BlockDevice(const BlockDevice&) = delete;
    BlockDevice& operator=(const BlockDevice&) = delete;
    /// Every request must have completed.
    virtual ~BlockDevice() = default;

    virtual BlockTraits traits() const = 0;
    virtual void submit(BlockRequest& request) = 0;

    /// The device's own memory for these bytes, if it has such and they lie together; else empty.
    /// A request whose scatter list is exactly this memory moves no bytes: that is how payload
    /// goes from socket to disk without a copy. For `write` the bytes may be seen by readers while
    /// they arrive, before the write is submitted; once some have arrived the write must be
    /// submitted, even if the rest never came, or the device does not know what it holds. Valid as
    /// long as the device is.
    virtual Buffer lend(BlockOperation, std::uint64_t /*offset*/, std::uint64_t /*length*/) {
        return {};
    }

    void watch_size(SizeWatcher& watcher) { watchers_.push_back(&watcher); }
    void unwatch_size(SizeWatcher& watcher) { std::erase(watchers_, &watcher); }

protected:
    /// A watcher may end its own watch or another's from inside size_changed().
    void announce_size(std::uint64_t size) {
        for (auto* watcher : std::vector(watchers_))
            if (std::find(watchers_.begin(), watchers_.end(), watcher) != watchers_.end())
                watcher->size_changed(size);
    }

private:
    std::vector<SizeWatcher*> watchers_;
};

}  // namespace weft
