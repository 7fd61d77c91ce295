// SPDX-License-Identifier: Apache-2.0
// Reads a journal after a restart: the newer checkpoint, then record by record to the end. A record
// that is not whole ends it: the power went while it was written, and nobody was told of it. Unless
// a later one shows that it had been flushed, or a checkpoint: then the disk has lost it, and that
// is said.
#pragma once

#include "raid/journal.hpp"

namespace weft::raid {

struct JournalRecord {
    JournalEntry entry;
    JournalHead head;
};

struct JournalImage {
    JournalCheckpoint checkpoint;
    unsigned slot = 0;  ///< of the two, where that is
    std::vector<JournalRecord> records;
    std::uint64_t end = 0;            ///< behind the last record
    std::uint64_t next_sequence = 0;  ///< of the record to come
};

class JournalReader final {
public:
    /// `malformed`: it was read, and what was lasting is not there any more; `where` is the block
    /// of the ring it should be in. Any other: it could not be read, and may be whole.
    using Told = std::function<void(Result<JournalImage>)>;

    JournalReader(BlockDevice& disk, DiskRegion region);
    /// Once. May destroy the reader.
    void read(Told told);

private:
    enum class Stage : std::uint8_t { checkpoints, head, rest_of_head, blocks, search, ended };

    void advance();
    void step();
    void ask(std::uint64_t disk_offset, Buffer into);
    void ask_ring(std::uint64_t at, Buffer into);
    void answered(Result<void> outcome);
    void end(Result<JournalImage> result);
    void end_as_lost();

    void take_checkpoints();
    void begin_record();
    void take_head();
    bool is_next(const wire::ArrayJournalRecord& record) const;
    bool is_of_this_journal(std::uint64_t run) const;
    void check_blocks();
    void accept();
    void begin_search();
    void search();
    bool shows_loss(ConstBuffer octets) const;

    BlockDevice& disk_;
    DiskAsker asker_;
    DiskRegion region_;
    std::uint64_t ring_length_;
    Told told_;
    Stage stage_ = Stage::checkpoints;
    bool waiting_ = false, advancing_ = false;
    Result<JournalImage> result_{Error{.code = Code::io_failed}};
    JournalImage image_{};
    std::vector<std::byte> octets_;
    std::uint64_t ring_at_ = 0;  ///< of what is being read, and what of it is to come
    Buffer ring_rest_{};
    JournalHead head_{};
    std::uint64_t last_run_ = 0;
    std::uint64_t searched_ = 0;
};

/// Of a journal that is in memory as a whole, for people to look at.
Result<JournalImage> read_journal(ConstBuffer journal);

}  // namespace weft::raid
