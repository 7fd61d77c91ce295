// SPDX-License-Identifier: Apache-2.0
// The ring alone: what goes to the disk together, what fits, and what a restart finds.
#include "raid/journal.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "base/crc32c.hpp"
#include "raid/journal_reader.hpp"
#include "support/crash_disk.hpp"
#include "support/held_disk.hpp"

namespace weft::raid {
namespace {

using test::CrashDisk;
using wire::TransactionNumber;

constexpr DiskRegion region{.offset = 8192, .length = journal_ring_offset + 32 * 4096};
constexpr std::uint64_t ring = region.offset + journal_ring_offset;

/// Of the journal with the number 7, opened for the first time.
constexpr std::uint64_t first_run = (std::uint64_t{7} << 32) + 1;

struct Ring {
    explicit Ring(const JournalOptions& options) : journal(held, region, options) {
        held.holding = false;
        disk.answers_at_once = true;
        Journal::State fresh;
        fresh.slot = 1;
        journal.go_on_from(std::move(fresh));
        checkpoint(0);
        disk.answers_at_once = false;
    }

    void checkpoint(std::size_t freed) {
        bool done = false;
        JournalCheckpoint next;
        next.head.run = first_run;
        journal.write_checkpoint(freed, next, [&](Result<void> how) { done = how.has_value(); });
        disk.run();
        EXPECT_TRUE(done);
    }
    bool append(std::uint64_t transaction, std::size_t blocks) {
        return append(transaction,
                      std::vector<std::byte>(blocks * 4096, static_cast<std::byte>(transaction)));
    }
    bool append(std::uint64_t transaction, std::vector<std::byte> data) {
        const std::size_t blocks = data.size() / 4096;
        const auto record = journal_record_size(static_cast<std::uint32_t>(data.size()));
        if (!journal.keep_room(record)) return false;
        auto& octets = memory.emplace_back(std::move(data));
        JournalHead head;
        head.record.kind = wire::ArrayJournalKind::prepared;
        head.record.transaction = TransactionNumber{transaction};
        head.extents = {{.home = 0, .length = static_cast<std::uint32_t>(octets.size())}};
        for (std::size_t i = 0; i < blocks; ++i)
            head.checksums.push_back(crc32c(ConstBuffer(octets).subspan(i * 4096, 4096)));
        journal.append(head, {octets}, record, [this, transaction](Result<JournalEntry> entry) {
            if (entry) lasting.push_back(transaction);
            if (!entry) ++failures;
        });
        return true;
    }
    void mark(std::uint64_t transaction) {
        journal.mark({TransactionNumber{transaction}, wire::ArrayTransactionState::committed},
                     [this](Result<JournalEntry> entry) { marks += entry.has_value() ? 1 : 0; });
    }
    Result<JournalImage> image() {
        std::optional<Result<JournalImage>> image;
        disk.answers_at_once = true;
        JournalReader reader(disk, region);
        reader.read([&](Result<JournalImage> read) { image = std::move(read); });
        disk.answers_at_once = false;
        return image.value_or(Error{.code = Code::timed_out});
    }
    /// The transactions a restart finds; none if it finds that something is lost.
    std::optional<std::vector<std::uint64_t>> found() {
        const auto read = image();
        if (!read) {
            EXPECT_EQ(read.error().code, Code::malformed);
            return std::nullopt;
        }
        std::vector<std::uint64_t> list;
        for (const auto& record : read->records)
            if (record.entry.kind == wire::ArrayJournalKind::prepared)
                list.push_back(static_cast<std::uint64_t>(record.entry.transaction));
        return list;
    }

    CrashDisk disk{1 << 20, 5};
    test::HeldDisk held{disk};  ///< nothing, unless it is told to
    Journal journal;
    std::deque<std::vector<std::byte>> memory;
    std::vector<std::uint64_t> lasting;
    int marks = 0, failures = 0;
};

TEST(Journal, WritesTogetherWhatWaitsTogether) {
    Ring one({});
    const auto writes = one.disk.writes, durable = one.disk.durable_writes;
    ASSERT_TRUE(one.append(1, 1));  // on its way when the others come
    for (std::uint64_t i = 2; i < 6; ++i) ASSERT_TRUE(one.append(i, 1));
    one.disk.run();
    EXPECT_EQ(one.lasting, (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
    EXPECT_EQ(one.disk.writes - writes, 2u);
    EXPECT_EQ(one.disk.durable_writes - durable, 2u);
    for (std::uint64_t i = 1; i < 6; ++i) one.mark(i);
    one.disk.run();
    EXPECT_EQ(one.marks, 5);
    EXPECT_EQ(one.disk.writes - writes, 4u);
    EXPECT_EQ(one.found(), (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
}

TEST(Journal, WritesEachAloneIfItShall) {
    Ring one({.groups = false});
    const auto durable = one.disk.durable_writes;
    for (std::uint64_t i = 1; i < 5; ++i) ASSERT_TRUE(one.append(i, 1));
    for (std::uint64_t i = 1; i < 3; ++i) one.mark(i);
    one.disk.run();
    EXPECT_EQ(one.disk.durable_writes - durable, 6u);
    EXPECT_EQ(one.lasting.size(), 4u);
    EXPECT_EQ(one.marks, 2);
}

TEST(Journal, LetsMarksWaitForTheNextRecord) {
    int waits = 0;
    Ring one({.marks_wait = [&] { ++waits; }});
    ASSERT_TRUE(one.append(1, 1));
    one.disk.run();
    one.mark(1);
    EXPECT_FALSE(one.disk.step());
    EXPECT_TRUE(one.journal.has_waiting_marks());
    EXPECT_EQ(waits, 1);
    const auto durable = one.disk.durable_writes;
    ASSERT_TRUE(one.append(2, 1));
    one.disk.run();
    EXPECT_EQ(one.marks, 1);
    EXPECT_EQ(one.disk.durable_writes - durable, 1u);
    one.mark(2);
    EXPECT_EQ(waits, 2);
    one.journal.write_marks();
    one.disk.run();
    EXPECT_EQ(one.marks, 2);
}

TEST(Journal, KeepsRoomForTheMarksOfAllItTook) {
    Ring one({});
    std::uint64_t next = 1;
    while (one.append(next, 1)) ++next;
    EXPECT_GT(next, 3u);
    one.disk.run();
    // One by one, which takes the most room.
    for (std::uint64_t i = 1; i < next; ++i) {
        one.mark(i);
        one.disk.run();
    }
    EXPECT_EQ(one.marks, static_cast<int>(next - 1));
    EXPECT_LE(one.journal.used(), one.journal.length());
    EXPECT_EQ(one.found()->size(), next - 1);
    one.checkpoint(one.journal.entries().size());
    EXPECT_EQ(one.journal.used(), 0u);
    EXPECT_EQ(one.found()->size(), 0u);
    EXPECT_TRUE(one.append(next, 1));
}

TEST(Journal, GoesRoundAndRound) {
    Ring one({});
    for (std::uint64_t i = 1; i < 200; ++i) {
        ASSERT_TRUE(one.append(i, 1 + i % 3));
        one.disk.run();
        one.mark(i);
        one.disk.run();
        ASSERT_EQ(one.found(), std::vector<std::uint64_t>{i});
        one.checkpoint(2);
    }
    EXPECT_GT(one.journal.tail() / one.journal.length(), 10u);
}

TEST(Journal, IsReadFromMemoryToo) {
    Ring one({});
    ASSERT_TRUE(one.append(1, 1));
    one.disk.run();
    std::vector<std::byte> image(region.length);
    DiskAsker asker(one.disk);
    asker.read(region.offset, image, [](Result<void> how) { EXPECT_TRUE(how); });
    one.disk.run();
    const auto read = read_journal(image);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->records.size(), 1u);
    EXPECT_FALSE(read_journal(ConstBuffer(image).first(4096)));
}

TEST(Journal, EndsAtATornRecord) {
    for (std::uint64_t torn : {ring + 2 * 4096, ring + 3 * 4096 + 100, ring + 3 * 4096 + 4000}) {
        Ring one({});
        ASSERT_TRUE(one.append(1, 1));
        one.disk.run();
        ASSERT_TRUE(one.append(2, 1));
        one.disk.run();
        one.disk.damage(torn);
        EXPECT_EQ(one.found(), std::vector<std::uint64_t>{1}) << torn;
    }
}

TEST(Journal, SaysThatARecordIsLostWhichALaterOneShowsToHaveBeenThere) {
    for (std::uint64_t damaged : {ring + 100, ring + 4096 + 100}) {
        Ring one({});
        for (std::uint64_t i = 1; i < 4; ++i) {
            ASSERT_TRUE(one.append(i, 1));
            one.disk.run();
        }
        one.disk.damage(damaged);
        EXPECT_FALSE(one.found().has_value()) << damaged;
    }
    Ring one({});
    ASSERT_TRUE(one.append(1, 1));
    one.disk.run();
    one.checkpoint(0);
    one.disk.damage(ring + 100);
    EXPECT_FALSE(one.found().has_value()) << "the checkpoint knew of it";
}

TEST(Journal, IsLostWhereNeitherCheckpointIsWhole) {
    Ring one({});
    ASSERT_TRUE(one.append(1, 1));
    one.disk.run();
    one.checkpoint(0);
    one.disk.damage(region.offset + 20);
    EXPECT_TRUE(one.found().has_value()) << "the other is";
    one.disk.damage(region.offset + wire::journal_checkpoint_bytes + 20);
    EXPECT_FALSE(one.found().has_value());
}

TEST(Journal, IsNotTakenForLostWhereItOnlyCannotBeRead) {
    Ring one({});
    ASSERT_TRUE(one.append(1, 1));
    one.disk.run();
    one.disk.fails = true;
    const auto read = one.image();
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::io_failed);
}

/// Another run goes on behind the first record, as if the power had gone while the second was
/// written.
struct SecondRun {
    explicit SecondRun(Ring& first) : journal(first.disk, region, {}) {
        first.disk.answers_at_once = true;
        journal.go_on_from({.checkpoint = first.journal.checkpoint(),
                            .slot = 0,
                            .head = 2 * 4096,
                            .sequence = 1,
                            .entries = {first.journal.entries()[0]}});
        JournalCheckpoint next;
        next.head.run = first_run + 1;
        journal.write_checkpoint(0, next, [](Result<void> how) { EXPECT_TRUE(how); });
    }
    void append(std::uint64_t transaction) {
        ASSERT_TRUE(journal.keep_room(journal_record_size(4096)));
        JournalHead head;
        head.record.kind = wire::ArrayJournalKind::prepared;
        head.record.transaction = TransactionNumber{transaction};
        head.extents = {{.home = 0, .length = 4096}};
        head.checksums = {crc32c(octets)};
        journal.append(head, {octets}, journal_record_size(4096),
                       [](Result<JournalEntry> how) { EXPECT_TRUE(how); });
    }
    std::vector<std::byte> octets = std::vector<std::byte>(4096, std::byte{9});
    Journal journal;
};

TEST(Journal, DoesNotTakeWhatAnEarlierRunLeftForItsOwn) {
    Ring one({});
    for (std::uint64_t i = 1; i < 4; ++i) {
        ASSERT_TRUE(one.append(i, 1));
        one.disk.run();
    }
    SecondRun(one).append(9);
    EXPECT_EQ(one.found(), (std::vector<std::uint64_t>{1, 9})) << "the old third is right behind";
}

/// Every run begins with a checkpoint. If only that of the run before is left, what it cannot know
/// of is not to be taken for what was never there.
TEST(Journal, SaysThatACheckpointIsLostWhichARecordOfItsRunShowsToHaveBeenThere) {
    for (const bool is_written : {false, true}) {
        Ring one({});
        ASSERT_TRUE(one.append(1, 1));
        one.disk.run();
        SecondRun second(one);
        if (is_written) second.append(9);
        one.disk.damage(region.offset + wire::journal_checkpoint_bytes + 20);
        const auto found = one.found();
        EXPECT_EQ(found.has_value(), !is_written);
        EXPECT_EQ(found.value_or(std::vector<std::uint64_t>{1}), std::vector<std::uint64_t>{1})
            << "it may have been torn, then";
    }
}

/// What hosts write may be the disk of a box of theirs. The lap before has left it in the ring,
/// record by record, and some of them would be the next by their count.
TEST(Journal, TakesNoRecordOfAnotherJournalForItsOwn) {
    for (const std::uint64_t run : {std::uint64_t{1}, first_run + (std::uint64_t{1} << 32)}) {
        Ring one({});
        for (std::uint64_t i = 1; i < 40; ++i) {
            std::vector<std::byte> data;
            for (std::uint64_t sequence = i + 3; sequence < i + 8; ++sequence) {
                JournalHead head;
                head.record.kind = wire::ArrayJournalKind::marks;
                head.record.run = run;
                head.record.sequence = head.record.lasting = sequence;
                head.marks = {{TransactionNumber{3}, wire::ArrayTransactionState::aborted}};
                const auto block = encode_journal_head(head);
                data.insert(data.end(), block.begin(), block.end());
            }
            ASSERT_TRUE(one.append(i, data));
            one.disk.run();
            EXPECT_EQ(one.found(), std::vector<std::uint64_t>{i});
            one.journal.give_back_room_for_mark();
            one.checkpoint(1);
            EXPECT_EQ(one.found(), std::vector<std::uint64_t>{});
        }
    }
}

TEST(Journal, PromisesNothingMoreOnceTheDiskFailed) {
    Ring one({});
    ASSERT_TRUE(one.append(1, 1));
    ASSERT_TRUE(one.append(2, 1));
    one.disk.fails = true;
    one.disk.run();
    EXPECT_EQ(one.failures, 2);
    one.disk.fails = false;
    EXPECT_FALSE(one.append(3, 1));
    EXPECT_TRUE(one.journal.has_failed());
    EXPECT_TRUE(one.journal.idle());
}

/// Whoever is told that a record failed uses its memory for something else, which the disk would
/// then write into the ring.
TEST(Journal, TellsNobodyThatItFailedWhileTheDiskWritesFromTheirMemory) {
    Ring one({});
    one.held.holding = true;
    ASSERT_TRUE(one.append(1, 1));
    ASSERT_TRUE(one.append(2, 1));  // waits for the one under way
    bool failed = false;
    JournalCheckpoint next;
    next.head.run = first_run;
    one.journal.write_checkpoint(0, next, [&](Result<void> how) { failed = !how; });
    ASSERT_EQ(one.held.held.size(), 2u);
    one.held.fail(1, Error{.code = Code::io_failed});
    EXPECT_TRUE(failed);
    EXPECT_TRUE(one.journal.has_failed());
    EXPECT_EQ(one.failures, 0);
    EXPECT_FALSE(one.journal.idle());
    one.held.let_all_go();
    one.disk.run();
    EXPECT_EQ(one.failures, 2) << "nothing is promised any more, whatever lies in the ring";
    EXPECT_TRUE(one.journal.idle());
    EXPECT_EQ(one.found(), (std::vector<std::uint64_t>{1}));
}

TEST(Journal, WritesNoMoreOfAGroupWhenItHasFailedMeanwhile) {
    Ring one({});
    one.held.shown.maximum_transfer = 4096;  // a head and its block go one after the other
    one.held.holding = true;
    ASSERT_TRUE(one.append(1, 1));
    JournalCheckpoint next;
    next.head.run = first_run;
    one.journal.write_checkpoint(0, next, [](Result<void> how) { EXPECT_FALSE(how); });
    ASSERT_EQ(one.held.held.size(), 2u);
    one.held.fail(1, Error{.code = Code::io_failed});
    one.held.let_go(0);
    one.disk.run();
    EXPECT_TRUE(one.held.held.empty());
    EXPECT_EQ(one.failures, 1);
    EXPECT_TRUE(one.journal.idle());
    EXPECT_EQ(one.found(), (std::vector<std::uint64_t>{}));
}

}  // namespace
}  // namespace weft::raid
