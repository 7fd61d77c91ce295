// SPDX-License-Identifier: Apache-2.0
// Any octets as what a box finds where its journal should be: checkpoints and records with good
// checksums that say whatever the octets wish, and octets that are just there. Recovering ends, and
// is told once; nothing is written outside journal and data; and what was recovered can be decided,
// recalled, and recovered again.
#include <algorithm>
#include <optional>

#include "base/check.hpp"
#include "base/crc32c.hpp"
#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"
#include "raid/journaled_disk.hpp"

namespace weft::fuzz {
namespace {

using wire::TransactionNumber;

constexpr std::uint64_t ring_blocks = 24;
constexpr std::uint64_t journal_offset = 8192;
constexpr std::uint64_t journal_length = raid::journal_ring_offset + ring_blocks * 4096;
constexpr std::uint64_t data_offset = journal_offset + journal_length, data_length = 64u << 10;
constexpr std::uint64_t end = data_offset + 4096 + data_length, disk_size = end + 8192;
constexpr std::byte guard{0xc3};

wire::ArraySuperblock the_part() {
    wire::ArraySuperblock superblock;
    superblock.journal_offset = journal_offset;
    superblock.journal_length = journal_length;
    superblock.data_offset = data_offset;
    superblock.data_length = data_length;
    return superblock;
}

class Run {
public:
    explicit Run(ConstBuffer program) : program_(program) {
        std::ranges::fill(at(0, journal_offset), guard);
        std::ranges::fill(at(end, disk_size - end), guard);
    }

    void all() {
        put_checkpoint();
        for (int steps = 0; !program_.empty() && steps < 100; ++steps) step();
        recover(next() % 2 == 0);
        recover(false);
        for (auto octet : at(0, journal_offset)) WEFT_CHECK(octet == guard);
        for (auto octet : at(end, disk_size - end)) WEFT_CHECK(octet == guard);
    }

private:
    std::uint8_t next() {
        if (program_.empty()) return 0;
        const auto octet = std::to_integer<std::uint8_t>(program_[0]);
        program_ = program_.subspan(1);
        return octet;
    }
    /// Mostly small; now and then as large as can be.
    std::uint64_t number() {
        const auto octet = next();
        if (octet < 0xf0) return octet;
        return octet == 0xf0 ? ~std::uint64_t{0} : std::uint64_t{next()} << (octet & 15) * 4;
    }
    Buffer at(std::uint64_t offset, std::uint64_t length) {
        return memory_.lend(BlockOperation::write, offset, length);
    }
    void put(std::uint64_t offset, ConstBuffer octets) {
        if (!within(offset, octets.size(), data_offset)) return;
        std::ranges::copy(octets, at(offset, octets.size()).begin());
    }
    std::uint64_t place_in_ring() {
        return journal_offset + raid::journal_ring_offset + next() % ring_blocks * 4096;
    }

    void step() {
        switch (next() % 6) {
            case 0:
                return put_checkpoint();
            case 1:
                return put_record();
            case 2:
                return put_marks();
            case 3: {
                const auto where = place_in_ring() + number() % 4096;
                const auto taken = program_.first(std::min<std::size_t>(next(), program_.size()));
                program_ = program_.subspan(taken.size());
                return put(where, taken);
            }
            case 4:
                at(place_in_ring() + number() % 4096, 1)[0] ^= std::byte{1};
                return;
            default:
                at(journal_offset + number() * 7 % journal_length, 1)[0] ^= std::byte{1};
                return;
        }
    }

    void put_checkpoint() {
        raid::JournalCheckpoint checkpoint;
        const auto slot = next() % 2 * wire::journal_checkpoint_bytes;
        checkpoint.head = {.written = number(),
                           .run = number(),
                           .tail = number() * 4096,
                           .tail_sequence = number(),
                           .lasting = number(),
                           .applied = number(),
                           .settled = TransactionNumber{number()},
                           .notes = 0};
        for (auto count = next() % 4; count > 0; --count)
            checkpoint.notes.push_back({TransactionNumber{number()}, {{next()}}, number()});
        put(journal_offset + slot, raid::encode_journal_checkpoint(checkpoint));
    }
    raid::JournalHead begin_head(wire::ArrayJournalKind kind) {
        raid::JournalHead head;
        head.record.kind = kind;
        head.record.run = number();
        head.record.sequence = number();
        head.record.lasting = number();
        head.record.settled = TransactionNumber{number()};
        head.record.transaction = TransactionNumber{number()};
        head.record.host_identity = {{next()}};
        return head;
    }
    void put_record() {
        const auto where = place_in_ring();
        auto head = begin_head(wire::ArrayJournalKind::prepared);
        std::vector<std::byte> blocks;
        for (auto count = next() % 4; count > 0; --count) {
            head.extents.push_back({.home = number() * 4096, .length = (1 + next() % 3) * 4096u});
            const std::vector<std::byte> filled(head.extents.back().length,
                                                static_cast<std::byte>(next()));
            blocks.insert(blocks.end(), filled.begin(), filled.end());
        }
        for (std::size_t i = 0; i < blocks.size(); i += 4096)
            head.checksums.push_back(crc32c(ConstBuffer(blocks).subspan(i, 4096)));
        const auto octets = raid::encode_journal_head(head);
        put(where, octets);
        put(where + octets.size(), blocks);
    }
    void put_marks() {
        const auto where = place_in_ring();
        auto head = begin_head(wire::ArrayJournalKind::marks);
        for (auto count = next() % 5; count > 0; --count)
            head.marks.push_back({TransactionNumber{number()},
                                  next() % 2 == 0 ? wire::ArrayTransactionState::committed
                                                  : wire::ArrayTransactionState::aborted});
        put(where, raid::encode_journal_head(head));
    }

    void recover(bool commits) {
        raid::JournaledDisk disk(memory_, the_part(), {.journal = {}, .checksum_pages = 10});
        std::optional<Result<void>> said;
        disk.recover([&](Result<void> outcome) {
            WEFT_CHECK(!said.has_value());
            said = outcome;
        });
        WEFT_CHECK(said.has_value() && disk.has_failed() == !said->has_value());
        const auto recalled = disk.recall();
        WEFT_CHECK(raid::parse_recall(raid::encode_recall(recalled)).has_value());
        if (!*said) return;
        WEFT_CHECK(disk.idle() && disk.journal().used() <= disk.journal().length());
        for (const auto& each : recalled.transactions) {
            if (each.state != wire::ArrayTransactionState::prepared) continue;
            int told = 0;
            auto count = [&](Result<void>) { ++told; };
            if (commits)
                disk.commit(each.transaction, {}, count);
            else
                disk.abort(each.transaction, count);
            WEFT_CHECK(told == 1);
        }
        WEFT_CHECK(disk.journal().used() <= disk.journal().length());
    }

    ConstBuffer program_;
    block::MemoryDisk memory_{std::make_unique<block::HeapMemory>(disk_size), disk_size};
};

}  // namespace
}  // namespace weft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    weft::fuzz::Run({reinterpret_cast<const std::byte*>(data), size}).all();
    return 0;
}
