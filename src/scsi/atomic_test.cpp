// SPDX-License-Identifier: Apache-2.0
#include "scsi/retained_difference.hpp"
#include "support/scsi_bench.hpp"

namespace weft::scsi {
namespace {

using namespace wire;
using test::bench_blocks;
using test::BenchTask;
using test::filled;
using test::OctetVector;

OctetVector joined_octets(OctetVector one, const OctetVector& other) {
    one.insert(one.end(), other.begin(), other.end());
    return one;
}

struct Atomic : test::ScsiBench {
    CompareAndWrite compare(std::uint64_t block, std::uint8_t count) {
        return {.block_address = block, .block_count = count};
    }
};

TEST_F(Atomic, CompareAndWriteWritesOnlyWhatCompares) {
    set_up();
    for (auto count : std::initializer_list<std::uint8_t>{1, 2, 100, 255}) {
        const auto bytes = count * std::size_t{512};
        put_on_disk(0, filled(bytes, 'A'));
        EXPECT_TRUE(
            run(compare(0, count), joined_octets(filled(bytes, 'A'), filled(bytes, 'B')))->good());
        EXPECT_EQ(on_disk(0, count), filled(bytes, 'B'));
        auto wrong = filled(bytes, 'B');
        wrong[bytes - 27] = std::byte{'C'};
        auto refused = run(compare(0, count), joined_octets(wrong, filled(bytes, 'D')));
        EXPECT_EQ(refused->code(), 0xe1d00u);
        EXPECT_EQ(refused->sense().information, bytes - 27);
        EXPECT_EQ(on_disk(0, count), filled(bytes, 'B'));
    }
}

TEST_F(Atomic, CompareAndWriteWantsExactlyTwiceTheBlocks) {
    set_up();
    EXPECT_EQ(run(compare(0, 1), filled(2048, 0))->code(), 0x52400u);
    EXPECT_EQ(run(compare(0, 3), filled(2048, 0))->code(), 0x52400u);
    EXPECT_EQ(run(compare(0, 0), filled(512 * 512, 0))->code(), 0x52400u) << "256, in eight bits";
    EXPECT_EQ(run(compare(bench_blocks, 1), filled(1024, 0))->code(), 0x52100u);
    EXPECT_TRUE(run(compare(0, 0))->good());
}

TEST_F(Atomic, CompareAndWriteLetsNobodyInBetween) {
    set_up(disk, {});
    BenchTask one, two, write, elsewhere;
    one.to_send = joined_octets(filled(512, 0), filled(512, 1));
    two.to_send = joined_octets(filled(512, 0), filled(512, 2));
    write.to_send = filled(1024, 3);
    elsewhere.to_send = filled(512, 4);
    execute(one, *first, compare(7, 1));
    execute(two, *second, compare(7, 1));
    execute(write, *second, Write10{.block_address = 6, .block_count = 2});
    execute(elsewhere, *second, Write10{.block_address = 8, .block_count = 1});
    ASSERT_EQ(disk.held.size(), 2u) << "its read, and the write elsewhere";
    disk.let_go(1);
    EXPECT_TRUE(elsewhere.good());
    disk.let_go(0);  // what is there
    ASSERT_EQ(disk.held.size(), 1u);
    EXPECT_EQ(disk.held[0]->operation, BlockOperation::write);
    disk.let_go(0);
    EXPECT_TRUE(one.good());
    ASSERT_EQ(disk.held.size(), 1u) << "then the second";
    disk.let_go(0);
    EXPECT_EQ(two.code(), 0xe1d00u);
    ASSERT_EQ(disk.held.size(), 1u);
    EXPECT_EQ(on_disk(7, 1), filled(512, 1));
    disk.let_go(0);
    EXPECT_TRUE(write.good());
    EXPECT_EQ(on_disk(7, 1), filled(512, 3));
}

TEST_F(Atomic, LentMemoryIsNotChangedUnderAReader) {
    set_up();
    BenchTask reader;
    reader.accepted_in = 512;
    reader.keeps_answer = true;
    execute(reader, *first, Read10{.block_address = 7, .block_count = 1});
    ASSERT_TRUE(reader.good());
    BenchTask swap;
    swap.to_send = joined_octets(filled(512, 0), filled(512, 1));
    execute(swap, *second, compare(7, 1));
    EXPECT_FALSE(swap.done()) << "what is read is still on its way";
    reader.release();
    EXPECT_TRUE(swap.good());
    BenchTask slow;
    slow.accepted_in = 512;
    slow.keeps_answer = true;
    execute(slow, *first, Read10{.block_address = 7, .block_count = 1});
    auto again = run(*second, compare(7, 1), joined_octets(filled(512, 1), filled(512, 2)));
    EXPECT_TRUE(again->good()) << "from now on nobody waits for a slow reader";
    EXPECT_EQ(slow.answer.data_in[0][0], std::byte{1});
    slow.release();
}

TEST_F(Atomic, AbortedWhileItWaitsLeavesNothingBehind) {
    set_up(disk, {});
    BenchTask write, swap, after;
    write.to_send = filled(512, 9);
    swap.to_send = filled(1024, 0);
    after.to_send = filled(512, 8);
    execute(write, *first, Write10{.block_address = 7, .block_count = 1});
    execute(swap, *first, compare(7, 1));
    execute(after, *first, Write10{.block_address = 7, .block_count = 1});
    ASSERT_EQ(disk.held.size(), 1u);
    target->abort(swap);
    EXPECT_EQ(swap.heard.end, TaskEnd::aborted);
    EXPECT_EQ(disk.held.size(), 2u) << "who stood behind it goes on";
    disk.let_all_go();
    EXPECT_TRUE(after.good());
}

TEST_F(Atomic, OrWriteAddsBits) {
    set_up();
    put_on_disk(1, filled(1024, 0x50));
    EXPECT_TRUE(run(OrWrite16{.block_address = 1, .block_count = 2}, filled(1024, 0x0f))->good());
    EXPECT_EQ(on_disk(1, 2), filled(1024, 0x5f));
    EXPECT_EQ(
        run(OrWrite16{.block_address = bench_blocks, .block_count = 1}, filled(512, 0))->code(),
        0x52100u);
    EXPECT_TRUE(run(OrWrite16{})->good());
    EXPECT_EQ(run(OrWrite16{.flags = {.protect = 1}, .block_count = 1}, filled(512, 0))->code(),
              0x52400u);
}

TEST_F(Atomic, XorCommandsMakeParity) {
    set_up({.long_commands = true});
    put_on_disk(1, filled(512, 0x33));
    auto both = run(XorWriteRead10{.block_address = 1, .block_count = 1}, filled(512, 0x0f));
    ASSERT_TRUE(both->good());
    EXPECT_EQ(both->data, filled(512, 0x3c)) << "the difference";
    EXPECT_EQ(both->heard.length_in, 512u);
    EXPECT_EQ(both->heard.length_out, 512u);
    EXPECT_EQ(on_disk(1, 1), filled(512, 0x0f));
    EXPECT_TRUE(
        run(XorParityWrite32{.block_address = 1, .block_count = 1}, filled(512, 0xff))->good());
    EXPECT_EQ(on_disk(1, 1), filled(512, 0xf0));
    auto looked =
        run(XorWriteRead32{.flags = {.disable_write = true}, .block_address = 1, .block_count = 1},
            filled(512, 0xf0));
    EXPECT_EQ(looked->data, filled(512, 0));
    EXPECT_EQ(on_disk(1, 1), filled(512, 0xf0));
}

TEST_F(Atomic, XorWriteKeepsTheDifferenceForWhoMadeIt) {
    set_up();
    put_on_disk(1, filled(512, 0x33));
    EXPECT_TRUE(run(XorWrite10{.block_address = 1, .block_count = 1}, filled(512, 0x0f))->good());
    EXPECT_EQ(on_disk(1, 1), filled(512, 0x0f));
    const XorRead10 ask{.block_address = 1, .block_count = 1};
    EXPECT_EQ(run(*second, ask)->code(), 0x52400u);
    EXPECT_EQ(run(XorRead10{.block_address = 1, .block_count = 2})->code(), 0x52400u);
    EXPECT_EQ(run(ask)->data, filled(512, 0x3c));
    EXPECT_EQ(run(ask)->code(), 0x52400u) << "it was told";
    for (std::uint32_t block = 0; block <= differences_max; ++block)
        run(XorWrite10{.block_address = block, .block_count = 1}, filled(512, 1));
    EXPECT_EQ(run(XorRead10{.block_count = 1})->code(), 0x52400u) << "there is room for so many";
    EXPECT_TRUE(run(XorRead10{.block_address = differences_max, .block_count = 1})->good());
}

TEST_F(Atomic, WriteAtomicWaitsForOverlappingReads) {
    set_up(disk, {});
    BenchTask read, write;
    read.accepted_in = 8192;
    write.to_send = filled(8192, 5);
    execute(read, *first, Read10{.block_address = 0, .block_count = 16});
    execute(write, *second, WriteAtomic16{.block_address = 8, .block_count = 16});
    EXPECT_EQ(disk.held.size(), 1u);
    disk.let_all_go();
    EXPECT_TRUE(write.good());
    EXPECT_EQ(read.data, filled(8192, 0));
    EXPECT_EQ(on_disk(8, 16), filled(8192, 5));
}

TEST_F(Atomic, WriteAtomicIsAlignedAsItsLimitsSay) {
    set_up();
    auto code = [&](std::uint64_t block, std::uint16_t count) {
        return run(WriteAtomic16{.block_address = block, .block_count = count},
                   filled(count * std::size_t{512}, 0))
            ->code();
    };
    EXPECT_EQ(code(bench_blocks - 8, 16), 0x52100u);
    EXPECT_EQ(code(bench_blocks + 8, 0), 0x52100u);
    EXPECT_EQ(code(0, 0), 0u);
    EXPECT_EQ(code(8, 8), 0u);
    EXPECT_EQ(code(1, 8), 0x52400u);
    EXPECT_EQ(code(0, 1), 0x52400u);
    EXPECT_EQ(run(WriteAtomic16{.atomic_boundary = 8, .block_count = 8}, filled(4096, 0))->code(),
              0x52400u);
}

TEST_F(Atomic, NobodyWaitsForAnInitiatorThatKeepsItsData) {
    set_up();
    EXPECT_TRUE(run(compare(7, 1), joined_octets(filled(512, 0), filled(512, 1)))->good());
    BenchTask silent;
    silent.to_send = filled(512, 9);
    silent.holds_data = true;
    execute(silent, *first, Write10{.block_address = 7, .block_count = 1});
    ASSERT_EQ(silent.wanted, 1);
    BenchTask swap, read;
    swap.to_send = joined_octets(filled(512, 1), filled(512, 2));
    execute(swap, *second, compare(7, 1));
    EXPECT_TRUE(swap.good());
    read.accepted_in = 512;
    execute(read, *second, Read10{.block_address = 7, .block_count = 1});
    EXPECT_TRUE(read.good());
    EXPECT_EQ(read.data, filled(512, 2));
    silent.bring_data();
    EXPECT_TRUE(silent.good());
    EXPECT_EQ(on_disk(7, 1), filled(512, 9));
}

/// Ends another task when it ends: a connection that breaks as its answer is given to it.
struct LastStraw final : Task {
    explicit LastStraw(std::function<void()> then) : then_(std::move(then)) {}
    void data_wanted(std::span<const Buffer> places) override {
        std::ranges::fill(places[0], std::byte{0});
        data_came();
    }
    void finished() override {
        then_();
        release();
    }
    std::function<void()> then_;
};

TEST_F(Atomic, AbortedAsItIsGivenItsBlocksEndsOnce) {
    set_up(disk, {});
    BenchTask swap;
    LastStraw write([&] { target->abort(swap); });
    write.nexus = first;
    write.logical_unit = *spell_logical_unit(0);
    write.set_command_block(encoded(Write10{.block_address = 7, .block_count = 1}));
    write.offered_out = 512;
    target->execute(write);
    swap.to_send = filled(1024, 0);
    execute(swap, *second, compare(7, 1));
    ASSERT_EQ(disk.held.size(), 1u);
    disk.let_go(0);
    EXPECT_EQ(swap.ended, 1);
    EXPECT_EQ(swap.heard.end, TaskEnd::aborted);
    EXPECT_TRUE(disk.held.empty());
    disk.holding = false;
    EXPECT_TRUE(run(compare(7, 1), filled(1024, 0))->good()) << "nobody holds the blocks";
}

}  // namespace
}  // namespace weft::scsi
