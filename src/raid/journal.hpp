// SPDX-License-Identifier: Apache-2.0
// The ring of a box's journal, where it is written: records and marks are appended, and told when
// they are lasting. All that waits while the disk is busy goes there together, in one durable
// write: the more writes there are at a time, the less each of them costs.
//
// Room is kept before it is needed, so that what was begun can always be ended: for every record
// its mark, too. It comes free by checkpoints alone, from the oldest record on.
#pragma once

#include <deque>

#include "raid/disk_io.hpp"
#include "raid/journal_format.hpp"

namespace weft::raid {

/// Part of a disk.
struct DiskRegion {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

/// Where a record is in the ring, and what it is about.
struct JournalEntry {
    std::uint64_t at = 0;  ///< octets, over all laps
    std::uint64_t size = 0;
    std::uint64_t sequence = 0;
    wire::ArrayJournalKind kind{};
    wire::TransactionNumber transaction{};  ///< of marks the highest
};

struct JournalOptions {
    bool groups = true;  ///< off: every record has a durable write of its own
    /// If set, marks wait for the next record and go with it. This is called when they begin to:
    /// write_marks() a while later, if none came. Records of other rows then need not wait for a
    /// flush that is for marks alone.
    std::function<void()> marks_wait{};
};

class Journal final {
public:
    using Appended = std::function<void(Result<JournalEntry>)>;

    /// Where appending goes on.
    struct State {
        JournalCheckpoint checkpoint;  ///< the last that was written
        unsigned slot = 0;             ///< where, of the two
        std::uint64_t head = 0;
        std::uint64_t sequence = 0;  ///< of the next record
        std::deque<JournalEntry> entries;
    };

    /// The region is a journal's: checkpoints and ring.
    Journal(BlockDevice& disk, DiskRegion region, const JournalOptions& options);

    void go_on_from(State state);

    /// Room for a record of so many octets, and for its mark; false if there is none.
    bool keep_room(std::uint64_t record);
    /// It will not be written; a mark may be.
    void give_back_room(std::uint64_t record) { kept_ -= record; }
    void give_back_room_for_mark() { kept_ -= wire::journal_block; }
    /// For a mark alone: of a record that was there at the start, or that never will be.
    bool keep_room_for_mark();

    /// `blocks` stay as they are until told. `record` is what was kept for it.
    void append(JournalHead head, std::vector<Buffer> blocks, std::uint64_t record, Appended told);
    void mark(const wire::ArrayJournalMark& mark, Appended told);
    void write_marks();
    bool has_waiting_marks() const { return !marks_.empty(); }

    /// Part of a record that is there.
    void read(std::uint64_t at, Buffer into, Told told);

    /// Writes a checkpoint that frees the oldest records, so many of them. One at a time.
    void write_checkpoint(std::size_t freed, JournalCheckpoint next, Told told);

    std::uint64_t length() const { return ring_length_; }
    std::uint64_t used() const { return state_.head - tail(); }
    std::uint64_t tail() const { return state_.checkpoint.head.tail; }
    std::uint64_t tail_sequence() const { return state_.checkpoint.head.tail_sequence; }
    std::uint64_t next_sequence() const { return state_.sequence; }
    std::uint64_t lasting() const { return lasting_; }
    const std::deque<JournalEntry>& entries() const { return state_.entries; }
    const JournalCheckpoint& checkpoint() const { return state_.checkpoint; }
    bool is_writing() const { return writing_; }
    bool has_failed() const { return failed_; }
    bool idle() const { return !writing_ && !checkpointing_ && records_.empty() && marks_.empty(); }

private:
    struct WaitingRecord {
        JournalHead head;
        std::vector<Buffer> blocks;
        std::uint64_t kept = 0;
        Appended told;
    };
    struct WaitingMark {
        wire::ArrayJournalMark mark;
        Appended told;
    };
    /// What is on its way to the disk together.
    struct Group {
        std::uint64_t at = 0;
        std::uint64_t written = 0;
        std::uint64_t length = 0;
        std::deque<std::vector<std::byte>> heads;
        std::vector<Buffer> octets;
        std::vector<std::pair<JournalEntry, Appended>> told;
    };

    void pump();
    void take_marks();
    void take_records();
    JournalEntry add(JournalHead& head, std::span<const Buffer> blocks);
    void write_group();
    void group_written(Result<void> outcome);
    void fail(Error why);
    void checkpoint_ended(Result<void> outcome);

    BlockDevice& disk_;
    DiskAsker asker_;
    DiskRegion region_;
    std::uint64_t ring_length_;
    JournalOptions options_;
    State state_{};
    std::uint64_t lasting_ = 0;  ///< records below this one are
    std::uint64_t kept_ = 0;
    std::deque<WaitingRecord> records_;
    std::deque<WaitingMark> marks_;
    Group group_{};
    bool writing_ = false;
    bool marks_due_ = false, marks_asked_ = false;
    bool failed_ = false;
    bool checkpointing_ = false;
    JournalCheckpoint next_checkpoint_{};
    std::size_t freed_ = 0;  ///< entries, once it is lasting
    std::vector<std::byte> checkpoint_octets_;
    Told checkpoint_told_;
};

}  // namespace weft::raid
