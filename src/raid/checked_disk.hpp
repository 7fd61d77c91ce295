// SPDX-License-Identifier: Apache-2.0
// A disk that knows what was written to it: a checksum for every 4 KiB, looked at with every read.
// What does not match is an error and never data.
//
//     | checksums, 4 KiB | versions, 4 KiB for every column | data, 2 MiB | checksums | ...
//
// Beside them it keeps, as far as writers say so, of which write each block is, by the columns of
// its row that it is made of (raid/version.hpp): a disk that has lost a write, and the checksum
// with it, gives back something old that matches; that it is old, others can then tell.
//
// Checksums lie among the data, so that a disk can grow. They are written when the disk is flushed,
// behind the data they are of; a power cut between the two leaves blocks that do not match, and
// whoever writes here keeps a journal from which they are written again. So it is with versions.
//
// Nobody reads what another is just writing: the array's controller sees to that.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <optional>

#include "raid/disk_io.hpp"
#include "raid/limits.hpp"
#include "raid/version.hpp"
#include "weft/block_device.hpp"

namespace weft::raid {

class CheckedDisk final : public BlockDevice {
public:
    static constexpr std::uint32_t block = 4096;
    static constexpr std::uint64_t group_bytes = 2u << 20;  ///< as many blocks as a page has words

    /// Octets it takes to keep so many, with the versions of so many columns.
    static constexpr std::uint64_t length_below(std::uint64_t length, std::uint8_t columns) {
        return length + (length + group_bytes - 1) / group_bytes * (columns + 1u) * block;
    }
    /// How far behind the first page a block of this home lies.
    static constexpr std::uint64_t place_below(std::uint64_t home, std::uint8_t columns) {
        return home + (home / group_bytes + 1) * (columns + 1u) * block;
    }

    /// Of what home there is such an octet, behind its group's pages; none: it is one of theirs.
    static constexpr std::optional<std::uint64_t> home_at(std::uint64_t place,
                                                          std::uint8_t columns) {
        const std::uint64_t pages = (columns + 1u) * block, group = group_bytes + pages;
        if (place % group < pages) return std::nullopt;
        return place / group * group_bytes + place % group - pages;
    }
    /// Where a group's first page is, which has the checksums.
    static constexpr std::uint64_t page_below(std::uint64_t home, std::uint8_t columns) {
        return home / group_bytes * (group_bytes + (columns + 1u) * block);
    }

    struct Shape {
        std::uint64_t offset = 0;  ///< on the disk below: home 0's checksums
        std::uint64_t length = 0;
        std::uint8_t columns = 0;  ///< whose versions are kept
    };
    /// Who writes, and what of the row it changes.
    struct Writer {
        std::uint32_t stamp = 0;  ///< kept beside the checksum
        Mask columns = 0;         ///< their versions become this one; what is not kept is left out
        Version version{};
    };
    using VersionsTold = std::function<void(Result<Versions>)>;

    /// Pages of checksums and versions are kept in memory, so many at most; while none can be
    /// stored, also those of reads under way.
    CheckedDisk(BlockDevice& below, const Shape& shape, std::size_t pages);
    BlockTraits traits() const override;
    void submit(BlockRequest& request) override;
    void write(std::uint64_t home, Buffer octets, const Writer& writer, Told told);
    /// Of the block at this home.
    void read_versions(std::uint64_t home, VersionsTold told);
    void grow(std::uint64_t length) { shape_.length = length; }

    std::uint64_t mismatches() const { return mismatches_; }
    bool idle() const { return works_.empty() && flushes_.empty() && !flushing_ && storing_ == 0; }

private:
    /// A group's checksums, or its versions of one column, in memory.
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
        Told told;                   ///< instead of it
        VersionsTold versions_told;  ///< or that: nothing but versions is read
        BlockOperation operation{};
        bool durable = false;
        std::uint64_t home = 0, length = 0;
        Writer writer{};
        std::vector<Buffer> memory;
        std::vector<std::uint64_t> pages{};  ///< by number
        bool has_pages = false, begun = false;
        std::size_t parts = 0;  ///< on their way
        Result<void> outcome{};
        Versions versions{};
    };
    using WorkPlace = std::list<Work>::iterator;

    void take(Work work);
    void advance();
    bool get_pages(Work& work);
    bool make_room_for(std::size_t missing);
    bool are_loaded(const Work& work) const;
    void load(std::uint64_t number, Page& page);
    void store(std::uint64_t number, Page& page);
    void page_stored();
    void begin(WorkPlace work);
    void refuse(WorkPlace work);
    void part_ended(WorkPlace work, Result<void> outcome);
    Result<void> pages_outcome(const Work& work) const;
    void check(Work& work);
    void note(const Work& work);
    void finish(WorkPlace work);
    void flush(Told told);
    void begin_flush();
    void end_flush(Result<void> outcome);
    void collect_versions(Work& work);
    std::uint64_t place_of(std::uint64_t home) const {
        return shape_.offset + place_below(home, shape_.columns);
    }
    /// Pages are numbered over all groups: of each the checksums, then the versions by columns.
    std::uint64_t page_of(std::uint64_t home) const {
        return home / group_bytes * (shape_.columns + 1u);
    }
    std::uint64_t page_of(std::uint64_t home, Column column) const {
        return page_of(home) + 1 + column;
    }
    std::uint64_t place_of_page(std::uint64_t number) const {
        return shape_.offset + number / (shape_.columns + 1u) * group_bytes + number * block;
    }
    std::vector<std::uint64_t> pages_needed(const Work& work) const;

    BlockDevice& below_;
    DiskAsker asker_;
    Shape shape_;
    std::size_t pages_max_;
    std::map<std::uint64_t, Page> pages_;  ///< by number
    std::list<Work> works_, finished_;
    std::vector<Told> flushes_, flushing_told_;
    std::size_t storing_ = 0;     ///< pages on their way to the disk
    Result<void> last_stored_{};  ///< how that ended, unless somebody has wanted to write since
    bool flushing_ = false, flush_has_failed_ = false, flush_lacks_room_ = false;
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
