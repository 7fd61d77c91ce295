// SPDX-License-Identifier: Apache-2.0
#include "raid/journal_format.hpp"

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/crc32c.hpp"
#include "raid/code.hpp"

namespace weft::raid {
namespace {

using wire::ArrayJournalKind;
using wire::journal_block;

constexpr std::size_t record_size = wire_size<wire::ArrayJournalRecord>();
constexpr std::size_t entry_size = wire_size<wire::ArrayJournalExtent>();
static_assert(entry_size == wire_size<wire::ArrayJournalMark>());
constexpr std::size_t note_size = wire_size<wire::ArrayExecutedNote>();
constexpr std::size_t checkpoint_head_size = wire_size<wire::ArrayJournalCheckpoint>();
constexpr std::size_t checksum_size = 4;

/// The checksum is the last word, over all before it.
void seal(Buffer octets) {
    const auto before = octets.first(octets.size() - checksum_size);
    store_big_endian<4>(crc32c(before), octets.data() + before.size());
}
bool is_whole(ConstBuffer octets) {
    const auto before = octets.first(octets.size() - checksum_size);
    return load_big_endian<4>(octets.data() + before.size()) == crc32c(before);
}

Result<void> check_extents(const JournalHead& head) {
    std::uint64_t blocks = 0;
    for (const auto& extent : head.extents) {
        if (extent.length == 0 || extent.length % journal_block != 0 ||
            extent.home % journal_block != 0 || extent.home > ~std::uint64_t{0} - extent.length ||
            extent.columns >> data_columns_max != 0)
            return Error{.code = Code::malformed};
        blocks += extent.length / journal_block;
    }
    if (blocks != head.checksums.size()) return Error{.code = Code::malformed};
    return {};
}

}  // namespace

std::size_t journal_head_size(ArrayJournalKind kind, std::size_t entries, std::size_t blocks) {
    const std::size_t checksums = kind == ArrayJournalKind::prepared ? blocks * checksum_size : 0;
    return round_up(record_size + entries * entry_size + checksums + checksum_size, journal_block);
}

std::uint64_t journal_record_size(std::uint32_t octets) {
    const std::size_t blocks = round_up(octets, journal_block) / journal_block;
    return journal_head_size(ArrayJournalKind::prepared, blocks, blocks) + blocks * journal_block;
}

std::vector<std::byte> encode_journal_head(const JournalHead& head) {
    auto record = head.record;
    const bool prepared = record.kind == ArrayJournalKind::prepared;
    record.entries = static_cast<std::uint32_t>(prepared ? head.extents.size() : head.marks.size());
    record.blocks = static_cast<std::uint32_t>(head.checksums.size());
    std::vector<std::byte> octets(journal_head_size(record.kind, record.entries, record.blocks));
    encode(record, octets);
    Buffer rest = Buffer(octets).subspan(record_size);
    for (const auto& extent : head.extents) {
        encode(extent, rest);
        rest = rest.subspan(entry_size);
    }
    for (const auto& mark : head.marks) {
        encode(mark, rest);
        rest = rest.subspan(entry_size);
    }
    for (auto checksum : head.checksums) {
        store_big_endian<4>(checksum, rest.data());
        rest = rest.subspan(checksum_size);
    }
    seal(octets);
    return octets;
}

Result<std::size_t> journal_head_size_of(ConstBuffer first_block) {
    WEFT_TRY(const auto record, decode<wire::ArrayJournalRecord>(first_block));
    switch (record.kind) {
        case ArrayJournalKind::prepared:
            if (record.entries == 0 || record.entries > record.blocks ||
                record.blocks > limits::journal_blocks)
                return Error{.code = Code::out_of_range};
            break;
        case ArrayJournalKind::marks:
            if (record.entries > journal_marks_max || record.blocks != 0)
                return Error{.code = Code::out_of_range};
            break;
        default:
            return Error{.code = Code::malformed};
    }
    return journal_head_size(record.kind, record.entries, record.blocks);
}

Result<JournalHead> parse_journal_head(ConstBuffer octets) {
    if (octets.size() < journal_block) return Error{.code = Code::truncated};
    WEFT_TRY(const auto size, journal_head_size_of(octets));
    if (octets.size() < size) return Error{.code = Code::truncated};
    if (!is_whole(octets.first(size))) return Error{.code = Code::malformed};
    JournalHead head;
    WEFT_TRY(head.record, decode<wire::ArrayJournalRecord>(octets));
    ConstBuffer rest = octets.subspan(record_size);
    for (std::uint32_t i = 0; i < head.record.entries; ++i, rest = rest.subspan(entry_size)) {
        if (head.record.kind == ArrayJournalKind::prepared) {
            WEFT_TRY(const auto extent, decode<wire::ArrayJournalExtent>(rest));
            head.extents.push_back(extent);
        } else {
            WEFT_TRY(const auto mark, decode<wire::ArrayJournalMark>(rest));
            if (mark.state != wire::ArrayTransactionState::committed &&
                mark.state != wire::ArrayTransactionState::aborted)
                return Error{.code = Code::malformed};
            head.marks.push_back(mark);
        }
    }
    for (std::uint32_t i = 0; i < head.record.blocks; ++i, rest = rest.subspan(checksum_size))
        head.checksums.push_back(static_cast<std::uint32_t>(load_big_endian<4>(rest.data())));
    if (auto good = check_extents(head); !good) return good.error();
    return head;
}

std::vector<std::byte> encode_journal_checkpoint(const JournalCheckpoint& checkpoint) {
    WEFT_CHECK(checkpoint.notes.size() <= wire::journal_notes_max);
    auto head = checkpoint.head;
    head.notes = static_cast<std::uint32_t>(checkpoint.notes.size());
    std::vector<std::byte> octets(
        round_up(checkpoint_head_size + head.notes * note_size + checksum_size, journal_block));
    encode(head, octets);
    Buffer rest = Buffer(octets).subspan(checkpoint_head_size);
    for (const auto& note : checkpoint.notes) {
        encode(note, rest);
        rest = rest.subspan(note_size);
    }
    seal(octets);
    return octets;
}

Result<JournalCheckpoint> parse_journal_checkpoint(ConstBuffer octets) {
    if (octets.size() < journal_block) return Error{.code = Code::truncated};
    JournalCheckpoint checkpoint;
    WEFT_TRY(checkpoint.head, decode<wire::ArrayJournalCheckpoint>(octets));
    if (checkpoint.head.notes > wire::journal_notes_max ||
        checkpoint.head.tail % journal_block != 0 || checkpoint.head.tail >> 62 != 0)
        return Error{.code = Code::malformed};
    const std::size_t size = round_up(
        checkpoint_head_size + checkpoint.head.notes * note_size + checksum_size, journal_block);
    if (octets.size() < size) return Error{.code = Code::truncated};
    if (!is_whole(octets.first(size))) return Error{.code = Code::malformed};
    ConstBuffer rest = octets.subspan(checkpoint_head_size);
    for (std::uint32_t i = 0; i < checkpoint.head.notes; ++i, rest = rest.subspan(note_size)) {
        WEFT_TRY(const auto note, decode<wire::ArrayExecutedNote>(rest));
        checkpoint.notes.push_back(note);
    }
    return checkpoint;
}

}  // namespace weft::raid
