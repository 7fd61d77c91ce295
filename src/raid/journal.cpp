// SPDX-License-Identifier: Apache-2.0
#include "raid/journal.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace weft::raid {

using wire::ArrayJournalKind;
using wire::journal_block;

namespace {

/// Never taken by records: marks of what has no record here must find room.
constexpr std::uint64_t room_of_marks_alone = 16 * journal_block;

/// The first `length` octets of a list; the list is left with the rest.
std::vector<Buffer> take_front(std::vector<Buffer>& list, std::uint64_t length) {
    std::vector<Buffer> front;
    std::size_t taken = 0;
    while (length > 0) {
        Buffer& part = list[taken];
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), length));
        front.push_back(part.first(size));
        part = part.subspan(size);
        length -= size;
        if (part.empty()) ++taken;
    }
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(taken));
    return front;
}

}  // namespace

Journal::Journal(BlockDevice& disk, DiskRegion region, const JournalOptions& options)
    : disk_(disk),
      asker_(disk),
      region_(region),
      ring_length_(journal_ring_length(region.length)),
      options_(options) {}

void Journal::go_on_from(State state) {
    WEFT_CHECK(idle() && state.head >= state.checkpoint.head.tail);
    state_ = std::move(state);
    lasting_ = state_.sequence;
    kept_ = 0;
}

bool Journal::keep_room(std::uint64_t record) {
    const std::uint64_t taken = used() + kept_ + room_of_marks_alone;
    if (failed_ || taken > ring_length_ || ring_length_ - taken < record + journal_block)
        return false;
    kept_ += record + journal_block;
    return true;
}

bool Journal::keep_room_for_mark() {
    if (failed_ || used() + kept_ + journal_block > ring_length_) return false;
    kept_ += journal_block;
    return true;
}

void Journal::append(JournalHead head, std::vector<Buffer> blocks, std::uint64_t record,
                     Appended told) {
    if (failed_) return told(Error{.code = Code::io_failed});
    records_.push_back({std::move(head), std::move(blocks), record, std::move(told)});
    pump();
}

void Journal::mark(const wire::ArrayJournalMark& mark, Appended told) {
    if (failed_) return told(Error{.code = Code::io_failed});
    WEFT_CHECK(kept_ >= (marks_.size() + 1) * journal_block);
    marks_.push_back({mark, std::move(told)});
    pump();
}

void Journal::write_marks() {
    if (marks_.empty()) return;
    marks_due_ = true;
    pump();
}

void Journal::pump() {
    if (writing_ || failed_) return;
    if (records_.empty() && marks_.empty()) return;
    if (records_.empty() && options_.marks_wait && !marks_due_) {
        if (!std::exchange(marks_asked_, true)) options_.marks_wait();
        return;
    }
    group_ = {};
    group_.at = state_.head;
    take_marks();
    if (options_.groups || group_.told.empty()) take_records();
    write_group();
}

void Journal::take_marks() {
    while (!marks_.empty()) {
        JournalHead head;
        head.record.kind = ArrayJournalKind::marks;
        std::vector<Appended> told;
        while (!marks_.empty() && head.marks.size() < journal_marks_max) {
            auto next = std::move(marks_.front());
            marks_.pop_front();
            kept_ -= journal_block;
            head.marks.push_back(next.mark);
            head.record.transaction = std::max(head.record.transaction, next.mark.transaction);
            told.push_back(std::move(next.told));
            if (!options_.groups) break;
        }
        const auto entry = add(head, {});
        for (auto& each : told) group_.told.emplace_back(entry, std::move(each));
        if (!options_.groups) break;
    }
    marks_due_ = marks_asked_ = !marks_.empty();
}

void Journal::take_records() {
    while (!records_.empty() && group_.length < limits::journal_group_bytes) {
        auto next = std::move(records_.front());
        records_.pop_front();
        const auto entry = add(next.head, next.blocks);
        WEFT_CHECK(entry.size <= next.kept);
        kept_ -= next.kept;  // the mark's stays
        group_.told.emplace_back(entry, std::move(next.told));
        if (!options_.groups) break;
    }
}

JournalEntry Journal::add(JournalHead& head, std::span<const Buffer> blocks) {
    head.record.run = state_.checkpoint.head.run;
    head.record.sequence = state_.sequence++;
    head.record.lasting = lasting_;
    group_.heads.push_back(encode_journal_head(head));
    JournalEntry entry{.at = state_.head,
                       .size = group_.heads.back().size(),
                       .sequence = head.record.sequence,
                       .kind = head.record.kind,
                       .transaction = head.record.transaction};
    group_.octets.emplace_back(group_.heads.back());
    for (Buffer part : blocks) {
        group_.octets.push_back(part);
        entry.size += part.size();
    }
    state_.head += entry.size;
    group_.length += entry.size;
    state_.entries.push_back(entry);
    return entry;
}

/// In one piece, unless the ring ends amid it. Durably, rather than with a flush behind it: a flush
/// would be for all that went home meanwhile, too, which can wait until a checkpoint.
void Journal::write_group() {
    const std::uint64_t at = (group_.at + group_.written) % ring_length_;
    const std::uint64_t most = round_down(disk_.traits().maximum_transfer, journal_block);
    const std::uint64_t size = std::min({group_.length - group_.written, ring_length_ - at, most});
    group_.written += size;
    writing_ = true;
    asker_.write_durably(region_.offset + journal_ring_offset + at, take_front(group_.octets, size),
                         [this](Result<void> outcome) { group_written(outcome); });
}

void Journal::group_written(Result<void> outcome) {
    writing_ = false;
    if (!outcome) return fail(outcome.error());
    if (failed_) return fail(Error{.code = Code::io_failed});  // a checkpoint did, meanwhile
    if (group_.written < group_.length) return write_group();
    lasting_ = state_.sequence;
    // What is told may append at once, and its group begin.
    auto told = std::exchange(group_, {}).told;
    for (auto& [entry, each] : told) each(entry);
    pump();
}

/// Nobody knows what is on the disk now: nothing more is promised. What a group is written from is
/// the disk's until it answers: who is told then, and not before, has it back.
void Journal::fail(Error why) {
    failed_ = true;
    if (writing_) return;
    auto told = std::exchange(group_, {}).told;
    auto records = std::exchange(records_, {});
    auto marks = std::exchange(marks_, {});
    for (auto& [entry, each] : told) each(why);
    for (auto& each : records) each.told(why);
    for (auto& each : marks) each.told(why);
}

/// In parts: the ring may end amid it.
void Journal::read(std::uint64_t at, Buffer into, Told told) {
    const std::uint64_t place = at % ring_length_;
    const std::uint64_t most = round_down(disk_.traits().maximum_transfer, journal_block);
    const auto size = static_cast<std::size_t>(
        std::min({std::uint64_t{into.size()}, ring_length_ - place, most}));
    asker_.read(region_.offset + journal_ring_offset + place, into.first(size),
                [this, at = at + size, rest = into.subspan(size),
                 told = std::move(told)](Result<void> outcome) mutable {
                    if (!outcome || rest.empty()) return told(outcome);
                    read(at, rest, std::move(told));
                });
}

void Journal::write_checkpoint(std::size_t freed, JournalCheckpoint next, Told told) {
    WEFT_CHECK(!checkpointing_ && freed <= state_.entries.size());
    if (failed_) return told(Error{.code = Code::io_failed});
    checkpointing_ = true;
    freed_ = freed;
    const auto& last = state_.checkpoint.head;
    const auto& entries = state_.entries;
    WEFT_CHECK(freed == 0 || entries[freed - 1].sequence < lasting_);
    const bool none_left = freed_ == entries.size();
    next.head.written = last.written + 1;
    next.head.tail = none_left ? state_.head : entries[freed_].at;
    next.head.tail_sequence = none_left ? state_.sequence : entries[freed_].sequence;
    next.head.lasting = lasting_;
    next_checkpoint_ = std::move(next);
    checkpoint_told_ = std::move(told);
    checkpoint_octets_ = encode_journal_checkpoint(next_checkpoint_);
    const std::uint64_t slot = (state_.slot ^ 1) * wire::journal_checkpoint_bytes;
    asker_.write_durably(region_.offset + slot, {checkpoint_octets_},
                         [this](Result<void> outcome) { checkpoint_ended(outcome); });
}

void Journal::checkpoint_ended(Result<void> outcome) {
    checkpointing_ = false;
    auto told = std::move(checkpoint_told_);
    if (!outcome) {
        fail(outcome.error());
        return told(outcome);
    }
    state_.slot ^= 1;
    state_.checkpoint = std::move(next_checkpoint_);
    state_.entries.erase(state_.entries.begin(),
                         state_.entries.begin() + static_cast<std::ptrdiff_t>(freed_));
    told({});
}

}  // namespace weft::raid
