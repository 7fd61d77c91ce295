// SPDX-License-Identifier: Apache-2.0
// A part's disk on which transactions are all or nothing, whenever the power goes: blocks with
// their checksums (CheckedDisk), and a journal (Journal) through which every change comes.
//
//     keep_room   or there is none, and nothing was begun
//     prepare     the blocks are lasting in the journal; at home nothing has changed
//     commit      they go home, for every reader to see; a mark that outlives the power says so
//     abort       a mark says that they never will
//
// A decision is told when its mark is lasting. What is committed is in the journal until it is
// flushed at home and all others of the transaction have ended it, too: `settle` tells.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "raid/checked_disk.hpp"
#include "raid/journal_reader.hpp"
#include "raid/recall.hpp"
#include "wire/array_superblock.hpp"

namespace weft::raid {

class JournaledDisk final {
public:
    using Transaction = wire::TransactionNumber;
    using State = wire::ArrayTransactionState;

    struct Options {
        JournalOptions journal{};
        std::size_t checksum_pages = limits::checksum_pages;
        std::uint32_t journal_number = 0;  ///< for a new one: by chance, unlike any other's
    };
    /// What is to be prepared: the record says whose it is.
    struct Preparation {
        wire::ArrayJournalRecord record{};
        std::vector<wire::ArrayJournalExtent> extents;
        std::vector<Buffer> blocks;  ///< one for each extent; they stay until told
    };

    JournaledDisk(BlockDevice& disk, const wire::ArraySuperblock& superblock,
                  const Options& options);

    /// Of a new disk, which reads as zeroes.
    void format(Told told);
    /// After a restart: what was committed is home then, what was prepared is known again.
    /// `malformed` if the disk has lost what was lasting, and any other error if that could not be
    /// read, or brought home: then it takes nothing any more.
    void recover(Told told);

    CheckedDisk& home() { return home_; }

    /// False: later. Once for a transaction is enough.
    bool keep_room(Transaction transaction, std::uint32_t octets);
    /// If nothing was prepared, after all.
    void give_back_room(Transaction transaction);
    /// It was decided, or all like it were, before: it never will be prepared here.
    bool is_over(Transaction transaction) const;
    /// What is lasting of it; none if it was not prepared here, or is long settled.
    std::optional<State> state_of(Transaction transaction) const;

    /// `malformed` if its extents lie over each other; `exhausted` without room.
    void prepare(Preparation preparation, Told told);
    /// `blocks` as they were prepared, if they are still in memory, which they stay until told;
    /// else none, and they are read. `not_found` if it was not prepared, `access_denied` if
    /// aborted.
    void commit(Transaction transaction, std::vector<Buffer> blocks, Told told);
    /// Also of what was never heard of, which is then refused if it comes. `access_denied` if it
    /// was committed, `exhausted` if there is no room to remember it.
    void abort(Transaction transaction, Told told);

    /// All below have ended with everybody, lastingly.
    void settle(Transaction settled);
    Transaction settled() const { return settled_; }
    Recalled recall() const;
    /// What was committed first of all that the disk did not take home. To commit it again is to
    /// try again; after a restart there is none.
    std::optional<Transaction> not_home() const;

    /// Checksums are written, and what can be is freed. Of itself it does so when that is needed.
    void checkpoint();

    /// Nothing of any transaction is on its way to the disk.
    bool is_quiet() const;
    bool idle() const { return is_quiet() && home_.idle() && journal_.idle() && !checkpointing_; }
    bool has_failed() const { return failed_ || journal_.has_failed(); }
    /// When recovering it was read, and what was lasting is not there: it may have been told of
    /// writes that are nowhere on this disk, so nothing on it is to be believed.
    bool is_damaged() const { return damaged_; }
    const Journal& journal() const { return journal_; }
    bool has_waiting_marks() const { return journal_.has_waiting_marks(); }
    void write_marks() { journal_.write_marks(); }

private:
    struct Known {
        std::uint64_t kept = 0;  ///< room for the record, until it is there
        bool preparing = false;
        bool prepared = false;    ///< the record is lasting
        bool has_record = false;  ///< or will be
        std::optional<State> decision;
        bool mark_is_lasting = false;
        std::uint64_t mark_sequence = 0;
        bool is_home = false;
        unsigned under_way = 0;  ///< of mark and blocks going home
        Result<void> outcome{};
        JournalEntry entry{};
        JournalHead head{};
        std::vector<Told> waiting;  ///< for the decision
    };

    void decide(Transaction transaction, Known& known, State decision);
    void bring_home(Transaction transaction, std::vector<Buffer> blocks);
    void read_record(Transaction transaction);
    void part_decided(Transaction transaction, Result<void> outcome);
    // checkpoints
    bool is_free_to_go(const JournalEntry& entry, std::uint64_t applied) const;
    void consider_checkpoint(bool lacks_room = false);
    std::uint64_t applied_by_now() const;
    void write_checkpoint(std::uint64_t applied);
    void checkpoint_written(Result<void> outcome);
    // recovery
    void take_image(JournalImage image);
    void redo();
    void redone(Result<void> outcome);
    void end_recovery(Result<void> outcome);

    BlockDevice& disk_;
    DiskRegion region_;
    CheckedDisk home_;
    DiskAsker asker_, home_asker_;
    Journal journal_;
    std::map<Transaction, Known> known_;
    std::map<Transaction, wire::ArrayExecutedNote> notes_;
    Transaction settled_{};
    bool failed_ = false;
    bool damaged_ = false;
    bool checkpointing_ = false;
    std::vector<Transaction> going_;  ///< with the checkpoint that is being written
    std::unique_ptr<JournalReader> reader_;
    std::uint64_t run_ = 0;
    std::vector<Transaction> to_redo_;  ///< the next is at the back
    bool redoing_ = false, redo_waits_ = false;
    Told recovered_;
};

/// Of a superblock whose part has one.
constexpr DiskRegion journal_region(const wire::ArraySuperblock& superblock) {
    return {superblock.journal_offset, superblock.journal_length};
}

}  // namespace weft::raid
