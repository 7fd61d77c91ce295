// SPDX-License-Identifier: Apache-2.0
#include "raid/journal_format.hpp"

#include <gtest/gtest.h>

#include "raid/recall.hpp"
#include "support/golden.hpp"

namespace weft::raid {
namespace {

using wire::TransactionNumber;

JournalHead prepared() {
    JournalHead head;
    head.record = {.kind = wire::ArrayJournalKind::prepared,
                   .entries = 2,
                   .blocks = 3,
                   .participants = 0b10001,
                   .run = 2,
                   .sequence = 17,
                   .lasting = 16,
                   .settled = TransactionNumber{3},
                   .transaction = TransactionNumber{0x30000000011},
                   .generation = wire::Generation{7},
                   .host = wire::HostSession{0x0a0b0c0d},
                   .host_identity = {{1, 2, 3}},
                   .host_command = 0x99};
    head.extents = {{.home = 4096, .length = 8192}, {.home = 1 << 20, .length = 4096}};
    head.checksums = {1, 2, 3};
    return head;
}

TEST(JournalFormat, IsReadBackAsItWasWritten) {
    const auto head = prepared();
    const auto octets = encode_journal_head(head);
    EXPECT_EQ(octets.size(), 4096u);
    EXPECT_EQ(*parse_journal_head(octets), head);
    JournalHead marks;
    marks.record.kind = wire::ArrayJournalKind::marks;
    marks.record.entries = 1;
    marks.marks = {{TransactionNumber{5}, wire::ArrayTransactionState::aborted}};
    EXPECT_EQ(*parse_journal_head(encode_journal_head(marks)), marks);
    JournalCheckpoint checkpoint;
    checkpoint.head.tail = 8192;
    checkpoint.head.notes = 1;
    checkpoint.notes = {{TransactionNumber{5}, {{4}}, 9}};
    EXPECT_EQ(*parse_journal_checkpoint(encode_journal_checkpoint(checkpoint)), checkpoint);
}

// The octets are those of tests/golden/raid/array.py, which knows nothing of these functions.
TEST(JournalFormat, HasTheOctetsOthersMake) {
    const auto golden = test::golden("raid/journal.hex");
    const auto checkpoint = parse_journal_checkpoint(golden);
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(checkpoint->head.run, 2u);
    EXPECT_EQ(checkpoint->notes.at(0).host_command, 0x98u);
    EXPECT_EQ(test::to_hex(encode_journal_checkpoint(*checkpoint)),
              test::to_hex(ConstBuffer(golden).first(4096)));
    const auto record = ConstBuffer(golden).subspan(4096, 4096);
    const auto head = parse_journal_head(record);
    ASSERT_TRUE(head);
    EXPECT_EQ(head->extents.at(0).columns, 0b101u);
    EXPECT_FALSE(head->extents.at(0).restores);
    EXPECT_EQ(head->extents.at(1),
              (wire::ArrayJournalExtent{
                  .home = 1 << 20, .columns = 0b10, .restores = true, .length = 4096}));
    EXPECT_EQ(test::to_hex(encode_journal_head(*head)), test::to_hex(record));
    const auto marks = parse_journal_head(ConstBuffer(golden).subspan(8192));
    ASSERT_TRUE(marks);
    EXPECT_EQ(marks->marks.at(0).state, wire::ArrayTransactionState::committed);
}

TEST(JournalFormat, IsRefusedWhenAnyBitOfItIsWrong) {
    auto octets = encode_journal_head(prepared());
    for (std::size_t bit = 0; bit < octets.size() * 8; bit += 7) {
        octets[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        EXPECT_FALSE(parse_journal_head(octets)) << bit;
        octets[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
    EXPECT_FALSE(parse_journal_head(ConstBuffer(octets).first(4095)));
    EXPECT_FALSE(parse_journal_head(std::vector<std::byte>(4096)));
    EXPECT_FALSE(parse_journal_checkpoint(std::vector<std::byte>(36864)));
}

TEST(JournalFormat, IsRefusedWhenItSaysWhatNoBoxWouldWrite) {
    auto head = prepared();
    head.extents[0].length = 4096;
    EXPECT_FALSE(parse_journal_head(encode_journal_head(head))) << "fewer blocks than checksums";
    head = prepared();
    head.extents[0].home = 100;
    EXPECT_FALSE(parse_journal_head(encode_journal_head(head))) << "no block";
    head = prepared();
    head.extents[1].home = ~std::uint64_t{4095};
    head.extents[1].length = 8192;
    head.extents[0].length = 4096;
    EXPECT_FALSE(parse_journal_head(encode_journal_head(head))) << "beyond all disks";
    JournalHead mark;
    mark.record.kind = wire::ArrayJournalKind::marks;
    mark.marks = {{TransactionNumber{5}, wire::ArrayTransactionState::prepared}};
    EXPECT_FALSE(parse_journal_head(encode_journal_head(mark))) << "that is no decision";
    JournalCheckpoint checkpoint;
    checkpoint.head.tail = 100;
    EXPECT_FALSE(parse_journal_checkpoint(encode_journal_checkpoint(checkpoint)));
}

TEST(JournalFormat, NeedsNoMoreRoomThanWasSaid) {
    for (std::uint32_t blocks = 1; blocks <= 300; ++blocks)
        for (std::size_t extents : {std::size_t{1}, std::size_t{blocks}})
            EXPECT_LE(journal_head_size(wire::ArrayJournalKind::prepared, extents, blocks) +
                          blocks * 4096,
                      journal_record_size(blocks * 4096));
    EXPECT_EQ(journal_head_size(wire::ArrayJournalKind::marks, journal_marks_max, 0), 4096u);
}

TEST(Recall, IsReadBackOrRefused) {
    Recalled recalled{.settled = TransactionNumber{4},
                      .transactions = {{.transaction = TransactionNumber{5},
                                        .home = 4096,
                                        .length = 8192,
                                        .participants = 3,
                                        .state = wire::ArrayTransactionState::prepared}},
                      .notes = {{TransactionNumber{3}, {{4}}, 9}}};
    auto octets = encode_recall(recalled);
    EXPECT_EQ(*parse_recall(octets), recalled);
    EXPECT_EQ(test::to_hex(encode_recall(*parse_recall(test::golden("raid/recall.hex")))),
              test::to_hex(test::golden("raid/recall.hex")));
    for (std::size_t size = 0; size < octets.size(); ++size)
        EXPECT_FALSE(parse_recall(ConstBuffer(octets).first(size)));
    octets.push_back(std::byte{0});
    EXPECT_FALSE(parse_recall(octets));
    recalled.transactions[0].state = {};
    EXPECT_FALSE(parse_recall(encode_recall(recalled)));
}

}  // namespace
}  // namespace weft::raid
