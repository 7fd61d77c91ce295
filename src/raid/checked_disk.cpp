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

static_assert(sizeof(Version) == entry_size);

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

CheckedDisk::CheckedDisk(BlockDevice& below, const Shape& shape, std::size_t pages)
    : below_(below), asker_(below), shape_(shape), pages_max_(pages) {
    WEFT_CHECK(shape.columns <= data_columns_max);
    WEFT_CHECK(pages > (longest / group_bytes + 1) * (shape.columns + 1u));
}

BlockTraits CheckedDisk::traits() const {
    return {.size = shape_.length,
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
          .versions_told = {},
          .operation = request.operation,
          .durable = request.durable,
          .home = request.offset,
          .length = request.length,
          .writer = {.stamp = stamp_of_nobody},
          .memory = {request.memory.begin(), request.memory.end()}});
}

void CheckedDisk::write(std::uint64_t home, Buffer octets, const Writer& writer, Told told) {
    if (auto refusal = block::refusal_of(BlockOperation::write, home, octets.size(), traits()))
        return told(*refusal);
    Writer noted = writer;
    if (noted.stamp == 0) noted.stamp = stamp_of_nobody;
    noted.columns &= only(shape_.columns) - 1;
    take({.request = nullptr,
          .told = std::move(told),
          .versions_told = {},
          .operation = BlockOperation::write,
          .durable = false,
          .home = home,
          .length = octets.size(),
          .writer = noted,
          .memory = {octets}});
}

void CheckedDisk::read_versions(std::uint64_t home, VersionsTold told) {
    if (auto refusal = block::refusal_of(BlockOperation::read, home, block, traits()))
        return told(*refusal);
    if (shape_.columns == 0) return told(Versions{});
    take({.request = nullptr,
          .told = {},
          .versions_told = std::move(told),
          .operation = BlockOperation::read,
          .durable = false,
          .home = home,
          .length = block,
          .writer = {.stamp = 0, .columns = only(shape_.columns) - 1, .version = {}},
          .memory = {}});
}

void CheckedDisk::take(Work work) {
    work.pages = pages_needed(work);
    if (work.operation == BlockOperation::write) last_stored_ = {};
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
            if (work->has_pages && are_loaded(*work))
                begin(work);
            else if (!work->has_pages && !last_stored_)
                refuse(work);
        }
    }
    advancing_ = false;
    auto finished = std::exchange(finished_, {});
    for (auto& work : finished) {
        if (work.request != nullptr)
            work.request->completed(work.outcome);
        else if (work.versions_told && work.outcome)
            work.versions_told(work.versions);
        else if (work.versions_told)
            work.versions_told(work.outcome.error());
        else
            work.told(work.outcome);
    }
}

// --------------------------------------------------------------------------------------- pages

/// Whoever reads needs no versions.
std::vector<std::uint64_t> CheckedDisk::pages_needed(const Work& work) const {
    std::vector<std::uint64_t> numbers;
    const auto last = (work.home + work.length - 1) / group_bytes;
    for (auto group = work.home / group_bytes; group <= last; ++group) {
        if (!work.versions_told) numbers.push_back(page_of(group * group_bytes));
        for (Column column = 0; column < shape_.columns; ++column)
            if (contains(work.writer.columns, column))
                numbers.push_back(page_of(group * group_bytes, column));
    }
    return numbers;
}

/// While no page can be stored, those who only read have theirs beside as many as there may be:
/// these are not changed, and go when they have been used.
bool CheckedDisk::get_pages(Work& work) {
    std::vector<Page*> here;
    for (auto number : work.pages)
        if (auto page = pages_.find(number); page != pages_.end()) here.push_back(&page->second);
    for (Page* page : here) ++page->users;  // not to be given up for the missing ones
    const bool has_room = make_room_for(work.pages.size() - here.size());
    for (Page* page : here) --page->users;
    if (!has_room && (last_stored_ || work.operation != BlockOperation::read)) return false;
    for (auto number : work.pages) {
        auto [page, is_new] = pages_.try_emplace(number);
        ++page->second.users;
        page->second.used_at = ++uses_;
        if (is_new) load(number, page->second);
    }
    return true;
}

/// The page longest unused goes; if none can go, some are written so that they can. If that has
/// just failed it would again: it is tried when the next wants to write.
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
            if (to_store != pages_.end() && storing_ == 0 && !flushing_ && last_stored_)
                store(to_store->first, to_store->second);
            return false;
        }
        pages_.erase(oldest);
    }
    return true;
}

bool CheckedDisk::are_loaded(const Work& work) const {
    return std::ranges::none_of(work.pages, [&](auto number) { return pages_.at(number).loading; });
}

void CheckedDisk::load(std::uint64_t number, Page& page) {
    asker_.read(place_of_page(number), page.octets, [this, &page](Result<void> outcome) {
        page.loading = false;
        page.load_outcome = outcome;
        advance();
    });
}

void CheckedDisk::store(std::uint64_t number, Page& page) {
    page.written = page.octets;
    page.dirty = false;
    page.writing = true;
    ++storing_;
    asker_.write(place_of_page(number), {page.written}, [this, &page](Result<void> outcome) {
        page.writing = false;
        last_stored_ = outcome;
        if (!outcome) page.dirty = true;  // it is still in memory, to be stored again
        const bool lacks_room = !outcome && outcome.error().code == Code::exhausted;
        flush_lacks_room_ = flush_lacks_room_ || lacks_room;
        flush_has_failed_ = flush_has_failed_ || (!outcome && !lacks_room);
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
    if (flush_lacks_room_) return end_flush(Error{.code = Code::exhausted});
    asker_.flush([this](Result<void> outcome) {
        // What had been written may be lost by now, whatever it was for lack of.
        end_flush(outcome ? outcome : Result<void>{Error{.code = Code::io_failed}});
    });
}

// ------------------------------------------------------------------------------ reads and writes

Result<void> CheckedDisk::pages_outcome(const Work& work) const {
    for (auto number : work.pages)
        if (const auto& page = pages_.at(number); !page.load_outcome) return page.load_outcome;
    return {};
}

void CheckedDisk::begin(WorkPlace work) {
    work->begun = true;
    work->parts = 1;  // so that it does not end amid this
    work->outcome = pages_outcome(*work);
    if (work->versions_told) {
        if (work->outcome) collect_versions(*work);
        return finish(work);
    }
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

/// It has no pages, and there is no way to get any.
void CheckedDisk::refuse(WorkPlace work) {
    work->outcome = last_stored_;
    finished_.splice(finished_.end(), works_, work);
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
        const auto& page = pages_.at(page_of(home));
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
        auto& page = pages_.at(page_of(home));
        encode(wire::ArrayBlockChecksum{.crc32c = take_checksum(from), .stamp = work.writer.stamp},
               Buffer(page.octets).subspan(entry_at(home)));
        page.dirty = true;
        for (Column column = 0; column < shape_.columns; ++column) {
            if (!contains(work.writer.columns, column)) continue;
            auto& versions = pages_.at(page_of(home, column));
            store_big_endian<entry_size>(static_cast<std::uint64_t>(work.writer.version),
                                         versions.octets.data() + entry_at(home));
            versions.dirty = true;
        }
    }
}

void CheckedDisk::collect_versions(Work& work) {
    work.versions.kept = true;
    for (Column column = 0; column < shape_.columns; ++column)
        work.versions.columns[column] = Version{load_big_endian<entry_size>(
            pages_.at(page_of(work.home, column)).octets.data() + entry_at(work.home))};
}

void CheckedDisk::finish(WorkPlace work) {
    for (auto number : work->pages) {
        auto page = pages_.find(number);
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
    flush_has_failed_ = flush_lacks_room_ = false;
    flushing_told_ = std::exchange(flushes_, {});
    ++storing_;  // so that it does not end amid this
    for (auto& [number, page] : pages_)
        if (page.dirty) store(number, page);
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
