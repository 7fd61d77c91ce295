// SPDX-License-Identifier: Apache-2.0
#include "raid/checked_disk.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/crc32c.hpp"
#include "block/admission.hpp"
#include "block/scatter.hpp"
#include "wire/array_journal.hpp"

namespace weft::raid {
namespace {

constexpr std::size_t entry_size = wire_size<wire::ArrayBlockChecksum>();
static_assert(CheckedDisk::group_bytes / CheckedDisk::block * entry_size == CheckedDisk::block);
constexpr std::uint32_t longest = 16u << 20;
constexpr std::uint32_t stamp_of_nobody = 1;

constexpr std::uint64_t first_group(std::uint64_t home) {
    return home / CheckedDisk::group_bytes;
}
constexpr std::uint64_t last_group(std::uint64_t home, std::uint64_t length) {
    return (home + length - 1) / CheckedDisk::group_bytes;
}
constexpr std::size_t entry_at(std::uint64_t home) {
    return home % CheckedDisk::group_bytes / CheckedDisk::block * entry_size;
}

std::uint32_t checksum_of_zeroes() {
    static const std::uint32_t value = crc32c(std::array<std::byte, CheckedDisk::block>{});
    return value;
}

/// Of the next block of a list, however it is cut.
std::uint32_t take_checksum(block::ScatterCursor& from) {
    Crc32c sum;
    for (std::size_t left = CheckedDisk::block; left > 0;) {
        const auto part = from.piece().first(std::min(from.piece().size(), left));
        sum.add(part);
        from.advance(part.size());
        left -= part.size();
    }
    return sum.value();
}

}  // namespace

CheckedDisk::CheckedDisk(BlockDevice& below, std::uint64_t offset, std::uint64_t length,
                         std::size_t pages)
    : below_(below), asker_(below), offset_(offset), length_(length), pages_max_(pages) {
    WEFT_CHECK(pages > longest / group_bytes + 1);
}

BlockTraits CheckedDisk::traits() const {
    return {.size = length_,
            .minimum_block = block,
            .preferred_block = block,
            .maximum_transfer = longest,
            .read_only = below_.traits().read_only,
            .rotational = below_.traits().rotational};
}

void CheckedDisk::submit(BlockRequest& request) {
    if (auto refusal = block::refusal_of(request, traits())) return request.completed(*refusal);
    if (request.operation == BlockOperation::flush)
        return flush([&request](Result<void> outcome) { request.completed(outcome); });
    if (!block::moves_data(request.operation) || request.length == 0) return request.completed({});
    take({.request = &request,
          .told = {},
          .operation = request.operation,
          .durable = request.durable,
          .home = request.offset,
          .length = request.length,
          .stamp = stamp_of_nobody,
          .memory = {request.memory.begin(), request.memory.end()}});
}

void CheckedDisk::write(std::uint64_t home, Buffer octets, std::uint32_t stamp, Told told) {
    if (auto refusal = block::refusal_of(BlockOperation::write, home, octets.size(), traits()))
        return told(*refusal);
    take({.request = nullptr,
          .told = std::move(told),
          .operation = BlockOperation::write,
          .durable = false,
          .home = home,
          .length = octets.size(),
          .stamp = stamp == 0 ? stamp_of_nobody : stamp,
          .memory = {octets}});
}

void CheckedDisk::take(Work work) {
    works_.push_back(std::move(work));
    advance();
}

/// Begins whatever has its checksums in memory, and tells of what has ended: last, since whoever is
/// told may ask again, or destroy the disk.
void CheckedDisk::advance() {
    changed_ = true;
    if (std::exchange(advancing_, true)) return;
    while (std::exchange(changed_, false)) {
        for (auto next = works_.begin(); next != works_.end();) {
            const auto work = next++;
            if (work->begun) continue;
            if (!work->has_pages) work->has_pages = get_pages(*work);
            if (work->has_pages && are_loaded(*work)) begin(work);
        }
    }
    advancing_ = false;
    auto finished = std::exchange(finished_, {});
    for (auto& work : finished) {
        if (work.request != nullptr)
            work.request->completed(work.outcome);
        else
            work.told(work.outcome);
    }
}

// --------------------------------------------------------------------------------------- pages

bool CheckedDisk::get_pages(Work& work) {
    const auto first = first_group(work.home), last = last_group(work.home, work.length);
    std::size_t missing = 0;
    for (auto group = first; group <= last; ++group) {
        if (auto page = pages_.find(group); page == pages_.end())
            ++missing;
        else
            page->second.used_at = ++uses_;  // not to be given up for the missing ones
    }
    if (!make_room_for(missing)) return false;
    for (auto group = first; group <= last; ++group) {
        auto [page, is_new] = pages_.try_emplace(group);
        ++page->second.users;
        page->second.used_at = ++uses_;
        if (is_new) load(group, page->second);
    }
    return true;
}

/// The page longest unused goes; if none can go, some are written so that they can.
bool CheckedDisk::make_room_for(std::size_t missing) {
    while (pages_.size() + missing > pages_max_) {
        auto oldest = pages_.end(), to_store = pages_.end();
        for (auto page = pages_.begin(); page != pages_.end(); ++page) {
            if (page->second.users > 0 || page->second.writing) continue;
            auto& candidate = page->second.dirty ? to_store : oldest;
            if (candidate == pages_.end() || page->second.used_at < candidate->second.used_at)
                candidate = page;
        }
        if (oldest == pages_.end()) {
            if (to_store != pages_.end() && storing_ == 0 && !flushing_)
                store(to_store->first, to_store->second);
            return false;
        }
        pages_.erase(oldest);
    }
    return true;
}

bool CheckedDisk::are_loaded(const Work& work) const {
    const auto last = last_group(work.home, work.length);
    for (auto group = first_group(work.home); group <= last; ++group)
        if (pages_.at(group).loading) return false;
    return true;
}

void CheckedDisk::load(std::uint64_t group, Page& page) {
    asker_.read(place_of_page(group), page.octets, [this, &page](Result<void> outcome) {
        page.loading = false;
        page.load_outcome = outcome;
        advance();
    });
}

void CheckedDisk::store(std::uint64_t group, Page& page) {
    page.written = page.octets;
    page.dirty = false;
    page.writing = true;
    ++storing_;
    asker_.write(place_of_page(group), {page.written}, [this, &page](Result<void> outcome) {
        page.writing = false;
        if (!outcome) page.dirty = flush_has_failed_ = true;
        page_stored();
    });
}

void CheckedDisk::page_stored() {
    if (--storing_ > 0) return;
    if (!flushing_) {
        begin_flush();  // which may have waited for this
        return advance();
    }
    if (flush_has_failed_) return end_flush(Error{.code = Code::io_failed});
    asker_.flush([this](Result<void> outcome) { end_flush(outcome); });
}

// ------------------------------------------------------------------------------ reads and writes

Result<void> CheckedDisk::pages_outcome(const Work& work) const {
    const auto last = last_group(work.home, work.length);
    for (auto group = first_group(work.home); group <= last; ++group)
        if (const auto& page = pages_.at(group); !page.load_outcome) return page.load_outcome;
    return {};
}

void CheckedDisk::begin(WorkPlace work) {
    work->begun = true;
    work->parts = 1;  // so that it does not end amid this
    work->outcome = pages_outcome(*work);
    const std::uint64_t most = round_down(below_.traits().maximum_transfer, block);
    for (std::uint64_t done = 0; work->outcome && done < work->length;) {
        const std::uint64_t home = work->home + done;
        const std::uint64_t size =
            std::min({work->length - done, group_bytes - home % group_bytes, most});
        std::vector<Buffer> part;
        block::ScatterCursor from(work->memory, done, size);
        for (; from.left() > 0; from.advance(from.piece().size())) part.push_back(from.piece());
        ++work->parts;
        done += size;
        asker_.submit(work->operation, place_of(home), std::move(part),
                      [this, work](Result<void> outcome) { part_ended(work, outcome); });
    }
    part_ended(work, {});
}

void CheckedDisk::part_ended(WorkPlace work, Result<void> outcome) {
    if (!outcome) work->outcome = outcome;
    if (--work->parts > 0) return;
    if (work->outcome && work->operation == BlockOperation::read) check(*work);
    if (work->outcome && work->operation == BlockOperation::write) note(*work);
    finish(work);
}

void CheckedDisk::check(Work& work) {
    block::ScatterCursor from(work.memory, 0, work.length);
    for (std::uint64_t home = work.home; from.left() > 0; home += block) {
        const auto& page = pages_.at(first_group(home));
        const auto known =
            *decode<wire::ArrayBlockChecksum>(ConstBuffer(page.octets).subspan(entry_at(home)));
        const auto sum = take_checksum(from);
        if (sum == (known.stamp == 0 ? checksum_of_zeroes() : known.crc32c)) continue;
        if (work.outcome) work.outcome = checksum_mismatch(home);
        ++mismatches_;
    }
}

void CheckedDisk::note(const Work& work) {
    block::ScatterCursor from(work.memory, 0, work.length);
    for (std::uint64_t home = work.home; from.left() > 0; home += block) {
        auto& page = pages_.at(first_group(home));
        encode(wire::ArrayBlockChecksum{.crc32c = take_checksum(from), .stamp = work.stamp},
               Buffer(page.octets).subspan(entry_at(home)));
        page.dirty = true;
    }
}

void CheckedDisk::finish(WorkPlace work) {
    const auto last = last_group(work->home, work->length);
    for (auto group = first_group(work->home); group <= last; ++group) {
        auto page = pages_.find(group);
        if (--page->second.users == 0 && !page->second.load_outcome) pages_.erase(page);
    }
    if (work->durable && work->outcome) {
        flush([request = work->request](Result<void> outcome) { request->completed(outcome); });
        works_.erase(work);
    } else {
        finished_.splice(finished_.end(), works_, work);
    }
    advance();
}

// -------------------------------------------------------------------------------------- flushes

void CheckedDisk::flush(Told told) {
    flushes_.push_back(std::move(told));
    begin_flush();
}

void CheckedDisk::begin_flush() {
    if (flushing_ || storing_ > 0 || flushes_.empty()) return;
    flushing_ = true;
    flush_has_failed_ = false;
    flushing_told_ = std::exchange(flushes_, {});
    ++storing_;  // so that it does not end amid this
    for (auto& [group, page] : pages_)
        if (page.dirty) store(group, page);
    page_stored();
}

void CheckedDisk::end_flush(Result<void> outcome) {
    flushing_ = false;
    auto told = std::exchange(flushing_told_, {});
    begin_flush();
    advance();
    for (auto& each : told) each(outcome);
}

}  // namespace weft::raid
