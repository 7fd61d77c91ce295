// SPDX-License-Identifier: Apache-2.0
#include "raid/journaled_disk.hpp"

#include <algorithm>
#include <memory>

#include "base/check.hpp"
#include "base/crc32c.hpp"
#include "raid/digest.hpp"

namespace weft::raid {

using wire::ArrayJournalKind;
using wire::journal_block;

namespace {

constexpr Error refused(Code code) {
    return {.code = code, .detail = 0, .where = 0};
}

bool lie_over_each_other(std::vector<wire::ArrayJournalExtent> extents) {
    std::ranges::sort(extents, {}, &wire::ArrayJournalExtent::home);
    for (std::size_t i = 1; i < extents.size(); ++i)
        if (extents[i].home < extents[i - 1].home + extents[i - 1].length) return true;
    return false;
}

CheckedDisk::Writer writer_of(wire::TransactionNumber transaction,
                              const wire::ArrayJournalExtent& extent) {
    return {.stamp = static_cast<std::uint32_t>(static_cast<std::uint64_t>(transaction)),
            .columns = extent.columns,
            .version = version_of(transaction, extent.restores)};
}

bool restores(const JournalHead& head) {
    return !head.extents.empty() &&
           std::ranges::all_of(head.extents, &wire::ArrayJournalExtent::restores);
}

/// Of what a record holds; 0 where somebody may have decided it without having compared it all.
std::uint32_t sum_of(const JournalHead& head) {
    if (head.extents.empty() ||
        !std::ranges::all_of(head.extents, &wire::ArrayJournalExtent::compared))
        return 0;
    std::uint32_t row = 0;
    std::span<const std::uint32_t> checksums(head.checksums);
    for (const auto& extent : head.extents) {
        const auto slices = std::min<std::size_t>(extent.length / slice_size, checksums.size());
        row ^= row_digest_of(checksums.first(slices), extent.home);
        checksums = checksums.subspan(slices);
    }
    return row % ((1u << wire::recalled_sum_bits) - 1) + 1;
}

}  // namespace

JournaledDisk::JournaledDisk(BlockDevice& disk, const wire::ArraySuperblock& superblock,
                             const Options& options)
    : disk_(disk),
      region_(journal_region(superblock)),
      home_(disk,
            {.offset = superblock.data_offset,
             .length = superblock.data_length,
             .columns = superblock.columns},
            options.checksum_pages),
      asker_(disk),
      home_asker_(home_),
      journal_(disk, region_, options.journal),
      run_(std::uint64_t{options.journal_number} << 32) {}

// ------------------------------------------------------------------------------------ preparing

bool JournaledDisk::keep_room(Transaction transaction, std::uint32_t octets) {
    if (auto found = known_.find(transaction); found != known_.end()) return true;
    const std::uint64_t record = journal_record_size(octets);
    const bool has_room = octets / journal_block <= limits::journal_blocks &&
                          known_.size() < limits::journal_transactions &&
                          journal_.keep_room(record);
    if (has_room) known_[transaction].kept = record;
    consider_checkpoint(!has_room);
    return has_room;
}

void JournaledDisk::give_back_room(Transaction transaction) {
    auto found = known_.find(transaction);
    if (found == known_.end() || found->second.kept == 0 || found->second.preparing) return;
    journal_.give_back_room(found->second.kept);
    journal_.give_back_room_for_mark();
    known_.erase(found);
}

bool JournaledDisk::is_over(Transaction transaction) const {
    if (transaction < settled_) return true;
    auto found = known_.find(transaction);
    return found != known_.end() && (found->second.decision || found->second.has_record);
}

std::optional<wire::ArrayTransactionState> JournaledDisk::state_of(Transaction transaction) const {
    auto found = known_.find(transaction);
    if (found == known_.end()) return std::nullopt;
    const Known& known = found->second;
    if (known.mark_is_lasting) return known.decision;
    return known.prepared ? std::optional(State::prepared) : std::nullopt;
}

void JournaledDisk::prepare(Preparation preparation, Told told) {
    const Transaction transaction = preparation.record.transaction;
    auto found = known_.find(transaction);
    if (found == known_.end() || found->second.kept == 0 || found->second.preparing)
        return told(refused(Code::exhausted));
    if (lie_over_each_other(preparation.extents)) return told(refused(Code::malformed));
    Known& known = found->second;
    known.head = {.record = preparation.record,
                  .extents = std::move(preparation.extents),
                  .checksums = {},
                  .marks = {}};
    known.head.record.kind = ArrayJournalKind::prepared;
    known.head.record.settled = settled_;
    for (Buffer blocks : preparation.blocks)
        for (; !blocks.empty(); blocks = blocks.subspan(journal_block))
            known.head.checksums.push_back(crc32c(blocks.first(journal_block)));
    const std::uint64_t size =
        journal_head_size(ArrayJournalKind::prepared, known.head.extents.size(),
                          known.head.checksums.size()) +
        known.head.checksums.size() * journal_block;
    if (known.head.extents.empty() || size > known.kept) return told(refused(Code::exhausted));
    known.preparing = known.has_record = true;
    journal_.append(known.head, std::move(preparation.blocks), known.kept,
                    [this, transaction, told = std::move(told)](Result<JournalEntry> entry) {
                        Known& appended = known_.at(transaction);
                        appended.preparing = false;
                        appended.kept = 0;
                        if (!entry) return told(entry.error());
                        appended.entry = *entry;
                        appended.prepared = true;
                        told({});
                    });
}

// ------------------------------------------------------------------------------------- deciding

void JournaledDisk::commit(Transaction transaction, std::vector<Buffer> blocks, Told told) {
    auto found = known_.find(transaction);
    if (found == known_.end() || !found->second.prepared)
        return told(found != known_.end() && found->second.decision ? refused(Code::access_denied)
                                                                    : refused(Code::not_found));
    Known& known = found->second;
    if (known.decision == State::aborted) return told(refused(Code::access_denied));
    if (known.decision && known.under_way == 0 && known.is_home && known.mark_is_lasting)
        return told({});
    known.waiting.push_back(std::move(told));
    if (known.under_way > 0) return;
    known.outcome = {};
    known.under_way = 1;  // so that it does not end amid this
    if (!known.decision) decide(transaction, known, State::committed);
    ++known.under_way;
    if (blocks.empty())
        read_record(transaction);
    else
        bring_home(transaction, std::move(blocks));
    part_decided(transaction, {});
}

void JournaledDisk::abort(Transaction transaction, Told told) {
    auto found = known_.find(transaction);
    if (found == known_.end()) {
        if (transaction < settled_) return told({});
        if (has_failed()) return told(refused(Code::io_failed));
        if (known_.size() >= 2 * limits::journal_transactions || !journal_.keep_room_for_mark()) {
            consider_checkpoint(true);
            return told(refused(Code::exhausted));
        }
        found = known_.try_emplace(transaction).first;
    }
    Known& known = found->second;
    if (known.preparing) return told(refused(Code::exhausted));
    // Of what is settled nobody lists any more how it ended: that it has is all that was wished.
    if (known.decision == State::committed && known.mark_is_lasting && transaction < settled_)
        return told({});
    if (known.decision == State::committed) return told(refused(Code::access_denied));
    if (known.decision && known.mark_is_lasting) return told({});
    known.waiting.push_back(std::move(told));
    if (known.under_way > 0) return;
    if (known.kept > 0) {  // the mark's room it needs now, the record's never
        journal_.give_back_room(known.kept);
        known.kept = 0;
    }
    known.outcome = {};
    known.is_home = true;
    known.under_way = 1;
    decide(transaction, known, State::aborted);
    part_decided(transaction, {});
}

void JournaledDisk::decide(Transaction transaction, Known& known, State decision) {
    known.decision = decision;
    known.mark_sequence = journal_.next_sequence();  // or later: it is written with others
    ++known.under_way;
    journal_.mark({.transaction = transaction, .state = decision}, [this, transaction](
                                                                       Result<JournalEntry> entry) {
        Known& marked = known_.at(transaction);
        marked.mark_is_lasting = entry.has_value();
        if (entry) marked.mark_sequence = entry->sequence;
        part_decided(transaction, entry ? Result<void>{} : Result<void>{entry.error()});
    });
}

/// All extents at once; it has ended when the last has.
void JournaledDisk::bring_home(Transaction transaction, std::vector<Buffer> blocks) {
    struct Writes {
        std::size_t left;
        Result<void> outcome{};
    };
    const auto extents = known_.at(transaction).head.extents;
    WEFT_CHECK(blocks.size() == extents.size());
    auto writes = std::make_shared<Writes>(Writes{.left = extents.size()});
    for (std::size_t i = 0; i < extents.size(); ++i) {
        home_.write(extents[i].home, blocks[i], writer_of(transaction, extents[i]),
                    [this, transaction, writes](Result<void> outcome) {
                        if (!outcome) writes->outcome = outcome;
                        if (--writes->left > 0) return;
                        known_.at(transaction).is_home = writes->outcome.has_value();
                        part_decided(transaction, writes->outcome);
                    });
    }
}

/// What a restart, or a new controller, took from memory is still in the ring.
void JournaledDisk::read_record(Transaction transaction) {
    const Known& known = known_.at(transaction);
    const std::uint64_t head_size = known.entry.size - known.head.checksums.size() * journal_block;
    auto octets = std::make_shared<std::vector<std::byte>>(known.entry.size - head_size);
    journal_.read(known.entry.at + head_size, *octets,
                  [this, transaction, octets](Result<void> outcome) {
                      const Known& read = known_.at(transaction);
                      Buffer rest(*octets);
                      for (std::size_t i = 0; outcome && i < read.head.checksums.size(); ++i)
                          if (crc32c(rest.subspan(i * journal_block, journal_block)) !=
                              read.head.checksums[i])
                              outcome = refused(Code::io_failed);
                      if (!outcome) return part_decided(transaction, outcome);
                      std::vector<Buffer> blocks;
                      for (const auto& extent : read.head.extents) {
                          blocks.push_back(rest.first(extent.length));
                          rest = rest.subspan(extent.length);
                      }
                      // They are kept until they have been written.
                      known_.at(transaction).waiting.push_back([octets](Result<void>) {});
                      bring_home(transaction, std::move(blocks));
                  });
}

void JournaledDisk::part_decided(Transaction transaction, Result<void> outcome) {
    Known& known = known_.at(transaction);
    if (!outcome) known.outcome = outcome;
    if (--known.under_way > 0) return;
    if (known.outcome && !known.mark_is_lasting) known.outcome = refused(Code::io_failed);
    const auto result = known.outcome;
    auto waiting = std::exchange(known.waiting, {});
    for (auto& told : waiting) told(result);
    consider_checkpoint();
}

// ------------------------------------------------------------------------------- what is known

void JournaledDisk::settle(Transaction settled) {
    if (settled <= settled_) return;
    settled_ = settled;
    consider_checkpoint();
}

bool JournaledDisk::is_quiet() const {
    return std::ranges::none_of(known_, [](const auto& each) {
        return each.second.preparing || each.second.under_way > 0;
    });
}

std::optional<JournaledDisk::Transaction> JournaledDisk::not_home() const {
    std::optional<Transaction> first;
    std::uint64_t lowest = ~std::uint64_t{0};
    for (const auto& [transaction, known] : known_) {
        const bool owed = known.decision == State::committed && known.mark_is_lasting &&
                          !known.is_home && known.under_way == 0;
        if (!owed || known.mark_sequence >= lowest) continue;
        first = transaction;
        lowest = known.mark_sequence;
    }
    return first;
}

Recalled JournaledDisk::recall() const {
    Recalled recalled{.settled = settled_, .transactions = {}, .notes = {}};
    auto notes = notes_;
    for (const auto& [transaction, known] : known_) {
        const auto state = state_of(transaction);
        if (!state) continue;
        const auto& record = known.head.record;
        if (*state == State::committed && record.host_identity != wire::HostIdentity{})
            notes[transaction] = {transaction, record.host_identity, record.host_command};
        if (transaction < settled_ && *state != State::prepared) continue;
        wire::ArrayRecalled said{.transaction = transaction,
                                 .generation = record.generation,
                                 .host = record.host,
                                 .host_identity = record.host_identity,
                                 .host_command = record.host_command,
                                 .home = 0,
                                 .length = 0,
                                 .participants = record.participants,
                                 .state = *state,
                                 .restores = restores(known.head),
                                 .sum = sum_of(known.head)};
        std::uint64_t end = 0;
        said.home = known.head.extents.empty() ? 0 : ~std::uint64_t{0};
        for (const auto& extent : known.head.extents) {
            said.home = std::min(said.home, extent.home);
            end = std::max(end, extent.home + extent.length);
        }
        said.length = end - said.home;
        recalled.transactions.push_back(said);
    }
    while (notes.size() > wire::journal_notes_max) notes.erase(notes.begin());
    for (const auto& [transaction, note] : notes) recalled.notes.push_back(note);
    return recalled;
}

}  // namespace weft::raid
