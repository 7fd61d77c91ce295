// SPDX-License-Identifier: Apache-2.0
// What a journaled disk does for itself: it begins, it recovers, and it frees what is settled.
#include <algorithm>
#include <functional>
#include <memory>

#include "base/check.hpp"
#include "raid/journaled_disk.hpp"

namespace weft::raid {

using wire::ArrayJournalKind;

// ---------------------------------------------------------------------------------- checkpoints

bool JournaledDisk::is_free_to_go(const JournalEntry& entry, std::uint64_t applied) const {
    if (entry.transaction >= settled_ || entry.sequence >= journal_.lasting()) return false;
    if (entry.kind == ArrayJournalKind::marks) return true;
    auto found = known_.find(entry.transaction);
    if (found == known_.end()) return true;
    const Known& known = found->second;
    if (!known.mark_is_lasting || known.under_way > 0 || !known.is_home) return false;
    return known.decision == State::aborted || known.mark_sequence < applied;
}

/// Worth its while only if it frees something, and that is needed soon; or now, by somebody who has
/// just found no room: what is large need not fit into the half that is free.
void JournaledDisk::consider_checkpoint(bool lacks_room) {
    const bool is_needed = lacks_room || journal_.used() > journal_.length() / 2 ||
                           known_.size() > limits::journal_transactions / 2;
    if (!is_needed || journal_.entries().empty() ||
        !is_free_to_go(journal_.entries().front(), applied_by_now()))
        return;
    checkpoint();
}

void JournaledDisk::checkpoint() {
    if (checkpointing_ || recovered_ || has_failed()) return;
    checkpointing_ = true;
    const std::uint64_t applied = applied_by_now();
    home_asker_.flush([this, applied](Result<void> outcome) {
        if (outcome) return write_checkpoint(applied);
        checkpointing_ = false;
        // Without room on the disk for checksums it is tried again when something else ends, or
        // somebody who is refused for that asks for it.
        if (outcome.error().code != Code::exhausted) failed_ = true;
    });
}

/// Marks below it: what they committed is home, if not yet flushed. Of those written together one
/// is told first: the others may be lasting, and nobody here knows it yet.
std::uint64_t JournaledDisk::applied_by_now() const {
    std::uint64_t applied = journal_.lasting();
    for (const auto& [transaction, known] : known_)
        if (known.decision == State::committed && !known.is_home)
            applied = std::min(applied, known.mark_sequence);
    return applied;
}

void JournaledDisk::write_checkpoint(std::uint64_t applied) {
    std::size_t freed = 0;
    const auto& entries = journal_.entries();
    for (; freed < entries.size() && is_free_to_go(entries[freed], applied); ++freed) {
        const auto& entry = entries[freed];
        auto found = known_.find(entry.transaction);
        if (entry.kind != ArrayJournalKind::prepared || found == known_.end()) continue;
        going_.push_back(entry.transaction);
        const auto& record = found->second.head.record;
        if (found->second.decision == State::committed &&
            record.host_identity != wire::HostIdentity{})
            notes_[entry.transaction] = {entry.transaction, record.host_identity,
                                         record.host_command};
    }
    while (notes_.size() > wire::journal_notes_max) notes_.erase(notes_.begin());
    JournalCheckpoint next;
    next.head.run = run_;
    next.head.applied = applied;
    next.head.settled = settled_;
    for (const auto& [transaction, note] : notes_) next.notes.push_back(note);
    journal_.write_checkpoint(freed, std::move(next),
                              [this](Result<void> outcome) { checkpoint_written(outcome); });
}

void JournaledDisk::checkpoint_written(Result<void> outcome) {
    checkpointing_ = false;
    for (auto transaction : std::exchange(going_, {}))
        if (outcome) known_.erase(transaction);
    if (!outcome) {
        failed_ = true;
        if (recovered_) end_recovery(outcome);
        return;
    }
    // Those that had no record here leave with the marks that told of them.
    std::erase_if(known_, [&](const auto& each) {
        const Known& known = each.second;
        return !known.has_record && known.mark_is_lasting && known.under_way == 0 &&
               each.first < settled_ && known.mark_sequence < journal_.tail_sequence();
    });
    if (recovered_) return end_recovery({});
    consider_checkpoint();
}

// ------------------------------------------------------------------------------------- beginning

void JournaledDisk::format(Told told) {
    recovered_ = std::move(told);
    ++run_;
    // What an earlier part left where the second will be must not be taken for it.
    auto zeroes = std::make_shared<std::vector<std::byte>>(2 * wire::journal_checkpoint_bytes);
    asker_.write_durably(region_.offset, {*zeroes}, [this, zeroes](Result<void> outcome) {
        if (!outcome || journal_.length() == 0) {
            failed_ = true;
            return end_recovery(outcome ? Result<void>{Error{.code = Code::malformed}} : outcome);
        }
        Journal::State fresh;
        fresh.slot = 1;
        journal_.go_on_from(std::move(fresh));
        write_checkpoint(0);
    });
}

void JournaledDisk::recover(Told told) {
    recovered_ = std::move(told);
    reader_ = std::make_unique<JournalReader>(disk_, region_);
    reader_->read([this](Result<JournalImage> image) {
        if (image) return take_image(std::move(*image));
        failed_ = true;
        damaged_ = image.error().code == Code::malformed;
        end_recovery(image.error());
    });
}

void JournaledDisk::take_image(JournalImage image) {
    settled_ = image.checkpoint.head.settled;
    for (const auto& note : image.checkpoint.notes) notes_[note.transaction] = note;
    Journal::State state{.checkpoint = image.checkpoint,
                         .slot = image.slot,
                         .head = image.end,
                         .sequence = image.next_sequence,
                         .entries = {}};
    for (const auto& record : image.records) {
        state.entries.push_back(record.entry);
        settled_ = std::max(settled_, record.head.record.settled);
        if (record.head.record.kind == ArrayJournalKind::prepared) {
            Known& known = known_[record.head.record.transaction];
            known.has_record = known.prepared = true;
            known.entry = record.entry;
            known.head = record.head;
        }
        for (const auto& mark : record.head.marks) {
            Known& known = known_[mark.transaction];
            known.decision = mark.state;
            known.mark_is_lasting = true;
            known.mark_sequence = record.entry.sequence;
            known.is_home = mark.state == State::aborted ||
                            record.entry.sequence < image.checkpoint.head.applied;
        }
    }
    run_ = image.checkpoint.head.run + 1;
    state.checkpoint.head.run = run_;
    journal_.go_on_from(std::move(state));
    // What has no record any more was freed, so it had ended; the others can all be decided.
    std::erase_if(
        known_, [&](const auto& each) { return !each.second.has_record && each.first < settled_; });
    for (auto& [transaction, known] : known_) {
        if (!known.has_record) known.is_home = true;
        if (known.decision && !known.is_home) to_redo_.push_back(transaction);
        if (known.decision || journal_.keep_room_for_mark()) continue;
        // That was kept for it when it was written: the checkpoint that told what had come free
        // before is not there any more.
        failed_ = damaged_ = true;
        return end_recovery(Error{.code = Code::malformed});
    }
    std::ranges::sort(to_redo_, std::greater{},
                      [&](Transaction each) { return known_[each].mark_sequence; });
    redo();
}

/// One after another, as they were committed. A disk may answer from inside: the loop goes on then.
void JournaledDisk::redo() {
    if (std::exchange(redoing_, true)) return;
    while (!redo_waits_ && !to_redo_.empty()) {
        const Transaction next = to_redo_.back();
        to_redo_.pop_back();
        Known& known = known_.at(next);
        known.under_way = 1;
        known.waiting.push_back([this](Result<void> outcome) { redone(outcome); });
        redo_waits_ = true;
        read_record(next);
    }
    redoing_ = false;
    if (redo_waits_) return;
    home_asker_.flush([this](Result<void> flushed) {
        if (flushed && !failed_) return write_checkpoint(journal_.next_sequence());
        failed_ = true;
        end_recovery(flushed ? Result<void>{Error{.code = Code::io_failed}} : flushed);
    });
}

void JournaledDisk::redone(Result<void> outcome) {
    redo_waits_ = false;
    if (!outcome) {
        failed_ = true;
        to_redo_.clear();
    }
    redo();
}

void JournaledDisk::end_recovery(Result<void> outcome) {
    auto told = std::exchange(recovered_, nullptr);
    reader_.reset();
    told(outcome);
}

}  // namespace weft::raid
