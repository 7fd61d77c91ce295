// SPDX-License-Identifier: Apache-2.0
// A box's journal on its disk: two checkpoints, written in turn, and a ring of records.
//
//     checkpoint, checkpoint   where the ring's oldest record is, and what is remembered of older
//     ring                     records, one behind another, all of whole blocks
//
// A record has a head, which ends in a CRC32C over all before it, and what it says is to go home.
// Records are counted, and bear the number of the run they were written in: what an earlier lap or
// an earlier run left in the ring is never taken for what comes next. Nor is what only looks like a
// record: blocks hold what hosts write, and that may be a journal, too.
#pragma once

#include "wire/scsi_array.hpp"

namespace weft::wire {

inline constexpr std::size_t journal_block = 4096;
inline constexpr std::size_t journal_notes_max = 1024;
/// Of each of the two: a head, the notes, a CRC32C.
inline constexpr std::size_t journal_checkpoint_bytes = 9 * journal_block;

struct ArrayJournalCheckpoint {
    std::uint64_t written = 0;  ///< counts up: the higher of two is the newer
    /// The high half is the journal's own, by chance; the low half counts the times it was opened.
    std::uint64_t run = 0;
    std::uint64_t tail = 0;     ///< where the oldest record begins: octets, over all laps
    std::uint64_t tail_sequence = 0;
    std::uint64_t lasting = 0;  ///< records below this one were flushed
    std::uint64_t applied = 0;  ///< what marks below this one committed is home, and flushed
    TransactionNumber settled{};
    std::uint32_t notes = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<64>("key", 0x57'65'66'74'4a'63'70'31));  // "WeftJcp1"
        v("written", h.written);
        v("run", h.run);
        v("tail", h.tail);
        v("tail sequence", h.tail_sequence);
        v("lasting", h.lasting);
        v("applied", h.applied);
        v("settled", h.settled);
        v("notes", h.notes);
        v.pack(reserved<32>);
    }
    bool operator==(const ArrayJournalCheckpoint&) const = default;
};
static_assert(wire_size<ArrayJournalCheckpoint>() == 72);
static_assert(wire_size<ArrayJournalCheckpoint>() +
                  journal_notes_max * wire_size<ArrayExecutedNote>() + 4 <=
              journal_checkpoint_bytes);

enum class ArrayJournalKind : std::uint8_t {
    prepared = 1,  ///< extents, a checksum for every block, and behind the head the blocks
    marks = 2,     ///< what became of transactions
};

struct ArrayJournalRecord {
    ArrayJournalKind kind{};
    std::uint32_t entries = 0;  ///< extents or marks
    std::uint32_t blocks = 0;
    std::uint32_t participants = 0;
    std::uint64_t run = 0;
    std::uint64_t sequence = 0;
    std::uint64_t lasting = 0;  ///< records below this one were flushed when it was written
    TransactionNumber settled{};
    TransactionNumber transaction{};
    Generation generation{};
    HostSession host{};
    HostIdentity host_identity{};
    std::uint64_t host_command = 0;

    static constexpr void describe(auto& v, auto& h) {
        v.pack(fixed<32>("key", 0x57'4a'52'31));  // "WJR1"
        v("kind", h.kind);
        v.pack(reserved<24>);
        v("entries", h.entries);
        v("blocks", h.blocks);
        v("participants", h.participants);
        v.pack(reserved<32>);
        v("run", h.run);
        v("sequence", h.sequence);
        v("lasting", h.lasting);
        v("settled", h.settled);
        v("transaction", h.transaction);
        v("generation", h.generation);
        v("host", h.host);
        v.nested("host identity", h.host_identity);
        v("host command", h.host_command);
    }
    bool operator==(const ArrayJournalRecord&) const = default;
};
static_assert(wire_size<ArrayJournalRecord>() == 104);

struct ArrayJournalExtent {
    std::uint64_t home = 0;
    std::uint32_t columns = 0;  ///< bit by bit
    bool restores = false;      ///< made anew from the others: as new as they, not newer
    bool compared = false;      ///< with what the others prepare, before it is decided
    std::uint32_t length = 0;

    static constexpr void describe(auto& v, auto& h) {
        v("home", h.home);
        v.pack(bits<1>("restores", h.restores), bits<1>("compared", h.compared),
               bits<30>("columns", h.columns));
        v("length", h.length);
    }
    bool operator==(const ArrayJournalExtent&) const = default;
};
static_assert(wire_size<ArrayJournalExtent>() == 16);

struct ArrayJournalMark {
    TransactionNumber transaction{};
    ArrayTransactionState state{};

    static constexpr void describe(auto& v, auto& h) {
        v("transaction", h.transaction);
        v("state", h.state);
        v.pack(reserved<56>);
    }
    bool operator==(const ArrayJournalMark&) const = default;
};
static_assert(wire_size<ArrayJournalMark>() == 16);

/// Of every 4 KiB at home, in the blocks between them. In those behind are versions: for each a
/// number of 64 bits, twice that of the transaction, and one more if it was made anew. All zero:
/// never written, and reads as zero.
struct ArrayBlockChecksum {
    std::uint32_t crc32c = 0;
    std::uint32_t stamp = 0;  ///< the low half of the transaction that wrote it; never zero then

    static constexpr void describe(auto& v, auto& h) {
        v("crc32c", h.crc32c);
        v("stamp", h.stamp);
    }
    bool operator==(const ArrayBlockChecksum&) const = default;
};
static_assert(wire_size<ArrayBlockChecksum>() == 8);

}  // namespace weft::wire
