// SPDX-License-Identifier: Apache-2.0
#include "raid/journal_reader.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/crc32c.hpp"
#include "block/admission.hpp"
#include "block/scatter.hpp"

namespace weft::raid {

using wire::journal_block;

namespace {

constexpr std::size_t search_bytes = 256 * journal_block;

/// A disk that is only there to be read.
class ImageDisk final : public BlockDevice {
public:
    explicit ImageDisk(ConstBuffer octets) : octets_(octets) {}
    BlockTraits traits() const override { return {.size = octets_.size(), .read_only = true}; }
    void submit(BlockRequest& request) override {
        if (auto refusal = block::refusal_of(request, traits())) return request.completed(*refusal);
        block::copy_in(octets_.subspan(request.offset, request.length),
                       {request.memory, 0, request.length});
        request.completed({});
    }

private:
    ConstBuffer octets_;
};

std::uint32_t block_number(std::uint64_t at, std::uint64_t ring_length) {
    return static_cast<std::uint32_t>(at % ring_length / journal_block);
}

}  // namespace

JournalReader::JournalReader(BlockDevice& disk, DiskRegion region)
    : disk_(disk),
      asker_(disk),
      region_(region),
      ring_length_(journal_ring_length(region.length)) {}

void JournalReader::read(Told told) {
    told_ = std::move(told);
    octets_.resize(2 * wire::journal_checkpoint_bytes);
    advancing_ = true;  // so that an answer from inside waits for us
    if (ring_length_ == 0)
        end(Error{.code = Code::unsupported});
    else
        ask(region_.offset, octets_);
    advancing_ = false;
    advance();
}

/// A disk may answer from inside: the loop goes on then, and the stack does not grow.
void JournalReader::advance() {
    if (advancing_) return;
    advancing_ = true;
    while (!waiting_ && stage_ != Stage::ended) {
        if (ring_rest_.empty())
            step();
        else
            ask_ring(ring_at_, ring_rest_);
    }
    advancing_ = false;
    if (stage_ != Stage::ended || waiting_) return;
    auto told = std::move(told_);
    auto result = std::move(result_);
    told(std::move(result));
}

void JournalReader::ask(std::uint64_t disk_offset, Buffer into) {
    waiting_ = true;
    asker_.read(disk_offset, into, [this](Result<void> outcome) { answered(outcome); });
}

/// In parts: the ring may end amid it, and a disk has its longest transfer.
void JournalReader::ask_ring(std::uint64_t at, Buffer into) {
    const std::uint64_t place = at % ring_length_;
    const std::uint64_t most = round_down(disk_.traits().maximum_transfer, journal_block);
    const auto size = static_cast<std::size_t>(
        std::min({std::uint64_t{into.size()}, ring_length_ - place, most}));
    ring_at_ = at + size;
    ring_rest_ = into.subspan(size);
    ask(region_.offset + journal_ring_offset + place, into.first(size));
}

void JournalReader::answered(Result<void> outcome) {
    waiting_ = false;
    if (!outcome) end(outcome.error());
    advance();
}

void JournalReader::end(Result<JournalImage> result) {
    result_ = std::move(result);
    ring_rest_ = {};
    stage_ = Stage::ended;
}

void JournalReader::end_as_lost() {
    end(Error{
        .code = Code::malformed, .detail = 0, .where = block_number(image_.end, ring_length_)});
}

void JournalReader::step() {
    switch (stage_) {
        case Stage::checkpoints:
            return take_checkpoints();
        case Stage::head:
        case Stage::rest_of_head:
            return take_head();
        case Stage::blocks:
            return check_blocks();
        case Stage::search:
            return search();
        case Stage::ended:
            return;
    }
}

void JournalReader::take_checkpoints() {
    const auto slot = [&](std::size_t i) {
        return parse_journal_checkpoint(ConstBuffer(octets_).subspan(
            i * wire::journal_checkpoint_bytes, wire::journal_checkpoint_bytes));
    };
    const auto first = slot(0), second = slot(1);
    if (!first && !second) return end_as_lost();  // a journal begins with one
    image_.slot = !first || (second && second->head.written > first->head.written) ? 1 : 0;
    image_.checkpoint = image_.slot == 0 ? *first : *second;
    image_.end = image_.checkpoint.head.tail;
    image_.next_sequence = image_.checkpoint.head.tail_sequence;
    begin_record();
}

void JournalReader::begin_record() {
    // Not even one block more fits: the ring is full of what was read.
    if (image_.end - image_.checkpoint.head.tail >= ring_length_) return begin_search();
    stage_ = Stage::head;
    octets_.resize(journal_block);
    ask_ring(image_.end, octets_);
}

bool JournalReader::is_next(const wire::ArrayJournalRecord& record) const {
    return record.sequence == image_.next_sequence && is_of_this_journal(record.run);
}

/// Or of one run more than the checkpoint knows of, if it is not the last there was.
bool JournalReader::is_of_this_journal(std::uint64_t run) const {
    const auto known = image_.checkpoint.head.run;
    return run >> 32 == known >> 32 && run >= last_run_ && run <= known + 1;
}

void JournalReader::take_head() {
    const auto record = decode<wire::ArrayJournalRecord>(octets_);
    const auto size = journal_head_size_of(octets_);
    if (!record || !size || !is_next(*record)) return begin_search();
    if (octets_.size() < *size) {
        stage_ = Stage::rest_of_head;
        octets_.resize(*size);
        return ask_ring(image_.end + journal_block, Buffer(octets_).subspan(journal_block));
    }
    auto head = parse_journal_head(octets_);
    if (!head) return begin_search();
    // A run begins with a checkpoint, and this one's is not there: the other, which is left, is of
    // the run before, and knows nothing of what came then.
    if (record->run > image_.checkpoint.head.run) return end_as_lost();
    const std::uint64_t whole = *size + record->blocks * journal_block;
    if (image_.end - image_.checkpoint.head.tail + whole > ring_length_) return begin_search();
    head_ = std::move(*head);
    if (head_.record.blocks == 0) return accept();
    stage_ = Stage::blocks;
    octets_.resize(head_.record.blocks * journal_block);
    ask_ring(image_.end + *size, octets_);
}

void JournalReader::check_blocks() {
    for (std::size_t i = 0; i < head_.checksums.size(); ++i)
        if (crc32c(ConstBuffer(octets_).subspan(i * journal_block, journal_block)) !=
            head_.checksums[i])
            return begin_search();
    accept();
}

void JournalReader::accept() {
    const auto& record = head_.record;
    const std::uint64_t size = journal_head_size(record.kind, record.entries, record.blocks) +
                               record.blocks * journal_block;
    const JournalEntry entry{.at = image_.end,
                             .size = size,
                             .sequence = record.sequence,
                             .kind = record.kind,
                             .transaction = record.transaction};
    image_.end += size;
    image_.next_sequence = record.sequence + 1;
    last_run_ = record.run;
    image_.records.push_back({entry, std::move(head_)});
    begin_record();
}

Result<JournalImage> read_journal(ConstBuffer journal) {
    ImageDisk disk(journal);
    JournalReader reader(disk, {.offset = 0, .length = journal.size()});
    Result<JournalImage> image{Error{.code = Code::io_failed}};
    reader.read([&](Result<JournalImage> read) { image = std::move(read); });
    return image;
}

// ------------------------------------------------------------------------ was that really the end

void JournalReader::begin_search() {
    if (image_.checkpoint.head.lasting > image_.next_sequence) return end_as_lost();
    stage_ = Stage::search;
    searched_ = image_.end;
    octets_.clear();
    search();
}

void JournalReader::search() {
    if (shows_loss(octets_)) return end_as_lost();
    const std::uint64_t last = image_.checkpoint.head.tail + ring_length_;
    if (searched_ >= last) return end(std::move(image_));
    octets_.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(search_bytes, last - searched_)));
    const std::uint64_t at = std::exchange(searched_, searched_ + octets_.size());
    ask_ring(at, octets_);
}

/// A record that was written when the one we miss had been flushed.
bool JournalReader::shows_loss(ConstBuffer octets) const {
    for (; !octets.empty(); octets = octets.subspan(journal_block)) {
        const auto record = decode<wire::ArrayJournalRecord>(octets);
        if (!record || record->sequence <= image_.next_sequence ||
            record->lasting <= image_.next_sequence || !is_of_this_journal(record->run) ||
            record->run > image_.checkpoint.head.run)
            continue;
        if (parse_journal_head(octets)) return true;
    }
    return false;
}

}  // namespace weft::raid
