// SPDX-License-Identifier: Apache-2.0
// The records and checkpoints of a journal as values, written and read back with every doubt.
#pragma once

#include <vector>

#include "raid/limits.hpp"
#include "weft/buffer.hpp"
#include "wire/array_journal.hpp"

namespace weft::raid {

/// A record without the blocks it is about.
struct JournalHead {
    wire::ArrayJournalRecord record{};  ///< `entries` and `blocks` follow from the rest
    std::vector<wire::ArrayJournalExtent> extents;
    std::vector<std::uint32_t> checksums;  ///< CRC32C of every block, extent by extent
    std::vector<wire::ArrayJournalMark> marks;

    bool operator==(const JournalHead&) const = default;
};

/// Octets of a head with so many entries, in whole blocks.
std::size_t journal_head_size(wire::ArrayJournalKind kind, std::size_t entries, std::size_t blocks);
/// Of a record that prepares so many octets, however they are scattered.
std::uint64_t journal_record_size(std::uint32_t octets);
inline constexpr std::size_t journal_marks_max =
    (wire::journal_block - wire_size<wire::ArrayJournalRecord>() - 4) /
    wire_size<wire::ArrayJournalMark>();

std::vector<std::byte> encode_journal_head(const JournalHead& head);

/// How long the head is whose first block this is: `malformed` if it is no head, `out_of_range` if
/// it says more than a record may.
Result<std::size_t> journal_head_size_of(ConstBuffer first_block);
/// `malformed` also for a wrong checksum, and for extents that are no blocks, or not so many.
Result<JournalHead> parse_journal_head(ConstBuffer octets);

struct JournalCheckpoint {
    wire::ArrayJournalCheckpoint head{};  ///< `notes` follows from the list
    std::vector<wire::ArrayExecutedNote> notes;

    bool operator==(const JournalCheckpoint&) const = default;
};

/// In whole blocks, wire::journal_checkpoint_bytes at most.
std::vector<std::byte> encode_journal_checkpoint(const JournalCheckpoint& checkpoint);
Result<JournalCheckpoint> parse_journal_checkpoint(ConstBuffer octets);

/// Where the ring is within the journal, and how long.
inline constexpr std::uint64_t journal_ring_offset = 2 * wire::journal_checkpoint_bytes;
constexpr std::uint64_t journal_ring_length(std::uint64_t journal_length) {
    return journal_length < journal_ring_offset
               ? 0
               : (journal_length - journal_ring_offset) / wire::journal_block * wire::journal_block;
}

}  // namespace weft::raid
