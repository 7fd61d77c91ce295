// SPDX-License-Identifier: Apache-2.0
// A disk that knows what was written to it: a checksum for every 4 KiB, looked at with every read.
// What does not match is an error and never data.
//
//     | checksums, 4 KiB | data, 2 MiB | checksums | data | ...
//
// Checksums lie among the data, so that a disk can grow. They are written when the disk is flushed,
// behind the data they are of; a power cut between the two leaves blocks that do not match, and
// whoever writes here keeps a journal from which they are written again.
//
// Nobody reads what another is just writing: the array's controller sees to that.
#pragma once

#include <deque>
#include <list>
#include <map>

#include "raid/disk_io.hpp"
#include "raid/limits.hpp"
#include "weft/block_device.hpp"

namespace weft::raid {

class CheckedDisk final : public BlockDevice {
public:
    static constexpr std::uint32_t block = 4096;
    static constexpr std::uint64_t group_bytes = 2u << 20;  ///< as many blocks as a page has words

    /// Octets it takes to keep so many.
    static constexpr std::uint64_t length_below(std::uint64_t length) {
        return length + (length + group_bytes - 1) / group_bytes * block;
    }

    /// Home 0 is the first data behind `offset` of the disk below; `pages` of checksums are kept in
    /// memory at most.
    CheckedDisk(BlockDevice& below, std::uint64_t offset, std::uint64_t length, std::size_t pages);
    BlockTraits traits() const override;
    void submit(BlockRequest& request) override;
    /// With the stamp of whoever wrote it, which is kept beside the checksum.
    void write(std::uint64_t home, Buffer octets, std::uint32_t stamp, Told told);
    void grow(std::uint64_t length) { length_ = length; }

    std::uint64_t mismatches() const { return mismatches_; }
    bool idle() const { return works_.empty() && flushes_.empty() && !flushing_ && storing_ == 0; }

private:
    /// A group's checksums, in memory.
    struct Page {
        std::array<std::byte, block> octets{};
        std::array<std::byte, block> written{};  ///< as it is on its way to the disk
        bool loading = true, dirty = false, writing = false;
        Result<void> load_outcome{};
        unsigned users = 0;
        std::uint64_t used_at = 0;
    };
    /// A read or a write under way.
    struct Work {
        BlockRequest* request = nullptr;
        Told told;  ///< instead of it
        BlockOperation operation{};
        bool durable = false;
        std::uint64_t home = 0, length = 0;
        std::uint32_t stamp = 0;
        std::vector<Buffer> memory;
        bool has_pages = false, begun = false;
        std::size_t parts = 0;  ///< on their way
        Result<void> outcome{};
    };
    using WorkPlace = std::list<Work>::iterator;

    void take(Work work);
    void advance();
    bool get_pages(Work& work);
    bool make_room_for(std::size_t missing);
    bool are_loaded(const Work& work) const;
    void load(std::uint64_t group, Page& page);
    void store(std::uint64_t group, Page& page);
    void page_stored();
    void begin(WorkPlace work);
    void part_ended(WorkPlace work, Result<void> outcome);
    Result<void> pages_outcome(const Work& work) const;
    void check(Work& work);
    void note(const Work& work);
    void finish(WorkPlace work);
    void flush(Told told);
    void begin_flush();
    void end_flush(Result<void> outcome);
    std::uint64_t place_of(std::uint64_t home) const {
        return offset_ + home + (home / group_bytes + 1) * block;
    }
    std::uint64_t place_of_page(std::uint64_t group) const {
        return offset_ + group * (group_bytes + block);
    }

    BlockDevice& below_;
    DiskAsker asker_;
    std::uint64_t offset_, length_;
    std::size_t pages_max_;
    std::map<std::uint64_t, Page> pages_;  ///< by group
    std::list<Work> works_, finished_;
    std::vector<Told> flushes_, flushing_told_;
    std::size_t storing_ = 0;  ///< pages on their way to the disk
    bool flushing_ = false, flush_has_failed_ = false;
    bool advancing_ = false, changed_ = false;
    std::uint64_t uses_ = 0, mismatches_ = 0;
};

/// Whether a read failed because what is there is not what was written.
constexpr Error checksum_mismatch(std::uint64_t home) {
    return {.code = Code::io_failed,
            .detail = 0x4352,
            .where = static_cast<std::uint32_t>(home / CheckedDisk::block)};
}
constexpr bool is_mismatch(const Error& error) {
    return error.code == Code::io_failed && error.detail == 0x4352;
}

}  // namespace weft::raid
