// SPDX-License-Identifier: Apache-2.0
#include "block/memory_disk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "block/heap_memory.hpp"
#include "support/golden.hpp"
#include "support/test_request.hpp"

namespace weft::block {
namespace {

using test::Bytes;
using test::TestRequest;

constexpr std::uint64_t block = MemoryDisk::block_size;
constexpr auto no_bound = std::numeric_limits<std::uint64_t>::max();

/// Heap memory that counts what the disk gives back.
class WatchedMemory final : public SparseMemory {
public:
    WatchedMemory(std::size_t size, std::uint64_t& released) : heap_(size), released_(released) {}
    Buffer all() override { return heap_.all(); }
    void release(std::uint64_t offset, std::uint64_t length) override {
        EXPECT_EQ(offset % block, 0u);
        released_ += length;
        heap_.release(offset, length);
    }

private:
    HeapMemory heap_;
    std::uint64_t& released_;
};

class MemoryDiskTest : public testing::Test {
protected:
    void make(std::size_t size, std::uint64_t bound) {
        released = 0;
        disk.emplace(std::make_unique<WatchedMemory>(size, released), bound);
    }

    std::optional<Code> write(std::uint64_t offset, std::uint64_t length, int value) {
        Bytes octets(length, static_cast<std::byte>(value));
        TestRequest request(BlockOperation::write, offset, length);
        disk->submit(request.with_memory(octets));
        return failure_of(request);
    }
    std::optional<Code> perform(BlockOperation operation, std::uint64_t offset,
                                std::uint64_t length) {
        TestRequest request(operation, offset, 0);
        request.length = length;  // and no memory, since this may be any number
        disk->submit(request);
        return failure_of(request);
    }
    std::optional<Code> zero_keeping_space(std::uint64_t offset, std::uint64_t length) {
        TestRequest request(BlockOperation::write_zeroes, offset, length);
        request.keep_space = true;
        disk->submit(request);
        return failure_of(request);
    }
    std::vector<Extent> status(std::uint64_t offset, std::uint64_t length, std::size_t room) {
        std::vector<Extent> extents(room);
        TestRequest request(BlockOperation::status, offset, length);
        request.extents = extents;
        disk->submit(request);
        EXPECT_TRUE(request.succeeded());
        extents.resize(request.extent_count);
        return extents;
    }
    bool all_zero(std::uint64_t offset, std::uint64_t length) {
        auto octets = test::contents(*disk, offset, length);
        return std::ranges::all_of(octets, [](std::byte octet) { return octet == std::byte{0}; });
    }

    std::uint64_t released = 0;
    std::optional<MemoryDisk> disk;

private:
    static std::optional<Code> failure_of(const TestRequest& request) {
        EXPECT_TRUE(request.done());
        return request.failure();
    }
};

constexpr std::optional<Code> fine;

TEST_F(MemoryDiskTest, BeginsAsOneHole) {
    make(10 * block, no_bound);
    EXPECT_TRUE(all_zero(0, 10 * block));
    EXPECT_EQ(status(0, 10 * block, 8), (std::vector<Extent>{{10 * block, true, true}}));
    EXPECT_EQ(disk->allocated_bytes(), 0u);
    EXPECT_EQ(disk->traits().size, 10 * block);
}

TEST_F(MemoryDiskTest, ScattersAndGathers) {
    make(3 * block, no_bound);
    auto from = test::from_hex("01 02 03 04 05 06");
    Buffer all = from;
    Buffer pieces[] = {all.first(1), {}, all.subspan(1, 4), all.subspan(5)};
    TestRequest write(BlockOperation::write, block - 2, 6);
    write.memory = pieces;
    disk->submit(write);
    EXPECT_TRUE(write.succeeded());

    Bytes to(8);
    Buffer halves[] = {Buffer(to).first(3), Buffer(to).subspan(3)};
    TestRequest read(BlockOperation::read, block - 3, 8);
    read.memory = halves;
    disk->submit(read);
    EXPECT_TRUE(read.succeeded());
    EXPECT_EQ(to, test::from_hex("00 01 02 03 04 05 06 00"));
}

TEST_F(MemoryDiskTest, KeepsEveryRequestInsideItself) {
    make(2 * block + 5, no_bound);
    auto size = disk->traits().size;
    constexpr auto far = std::numeric_limits<std::uint64_t>::max();
    for (auto operation :
         {BlockOperation::read, BlockOperation::write, BlockOperation::trim,
          BlockOperation::write_zeroes, BlockOperation::status, BlockOperation::prefetch}) {
        EXPECT_EQ(perform(operation, size, 1), Code::out_of_range);
        EXPECT_EQ(perform(operation, 0, size + 1), Code::out_of_range);
        EXPECT_EQ(perform(operation, far, 2), Code::out_of_range);
        EXPECT_EQ(perform(operation, 2, far), Code::out_of_range);
        EXPECT_EQ(perform(operation, size, 0), fine);
        EXPECT_TRUE(disk->lend(operation, size, 1).empty());
        EXPECT_TRUE(disk->lend(operation, far, 2).empty());
        EXPECT_TRUE(disk->lend(operation, 2, far).empty());
    }
    EXPECT_EQ(disk->allocated_bytes(), 0u);
}

TEST_F(MemoryDiskTest, RefusesWhatWouldPassItsBoundAndChangesNothing) {
    make(8 * block, 3 * block);
    EXPECT_EQ(write(block - 1, 2, 0x11), fine) << "two blocks";
    EXPECT_EQ(write(4 * block - 1, 2, 0x22), Code::exhausted) << "two more are one too many";
    EXPECT_TRUE(all_zero(3 * block, 2 * block));
    EXPECT_EQ(zero_keeping_space(4 * block - 1, 2), Code::exhausted);
    EXPECT_EQ(disk->allocated_bytes(), 2 * block);

    EXPECT_EQ(write(4 * block, block, 0x33), fine);
    EXPECT_EQ(write(0, 2 * block, 0x44), fine) << "where there is data, more costs nothing";
    EXPECT_EQ(write(7 * block, 1, 0x55), Code::exhausted);
    EXPECT_EQ(perform(BlockOperation::trim, 4 * block, block), fine);
    EXPECT_EQ(write(7 * block, 1, 0x55), fine) << "trimming made room";
}

TEST_F(MemoryDiskTest, TakesAnyNumberAsItsBound) {
    for (auto bound : {no_bound, no_bound - block, std::uint64_t{1} << 63}) {
        make(2 * block, bound);
        EXPECT_EQ(write(0, 2 * block, 0x11), fine);
    }
    make(2 * block, 0);
    EXPECT_EQ(write(0, 1, 0x11), Code::exhausted);
    make(2 * block, block + 1);
    EXPECT_EQ(write(0, 2 * block, 0x11), fine) << "a begun block is a whole one";
}

TEST_F(MemoryDiskTest, GivesBackOnlyWholeBlocksAndZeroesTheEdges) {
    make(6 * block, no_bound);
    ASSERT_EQ(write(0, 6 * block, 0x77), fine);
    EXPECT_EQ(perform(BlockOperation::trim, block - 3, 2 * block + 6), fine);
    EXPECT_EQ(released, 2 * block);
    EXPECT_EQ(disk->allocated_bytes(), 4 * block);
    EXPECT_TRUE(all_zero(block - 3, 2 * block + 6));
    EXPECT_EQ(test::contents(*disk, 0, block - 3), Bytes(block - 3, std::byte{0x77}));
    EXPECT_EQ(test::contents(*disk, 3 * block + 3, block - 3), Bytes(block - 3, std::byte{0x77}));

    EXPECT_EQ(perform(BlockOperation::trim, 4 * block + 1, block - 2), fine) << "no whole block";
    EXPECT_EQ(released, 2 * block);
    EXPECT_TRUE(all_zero(4 * block + 1, block - 2));
}

TEST_F(MemoryDiskTest, TreatsAShortLastBlockAsAWholeOne) {
    make(block + 100, no_bound);
    ASSERT_EQ(write(0, block + 100, 0x77), fine);
    EXPECT_EQ(perform(BlockOperation::write_zeroes, block, 100), fine);
    EXPECT_EQ(released, 100u);
    EXPECT_EQ(disk->allocated_bytes(), block);
    EXPECT_EQ(status(0, block + 100, 4),
              (std::vector<Extent>{{block, false, false}, {100, true, true}}));
}

TEST_F(MemoryDiskTest, KeepsSpaceWhenZeroingIsAskedTo) {
    make(4 * block, no_bound);
    ASSERT_EQ(write(0, block, 0x77), fine);
    EXPECT_EQ(zero_keeping_space(0, 2 * block), fine);
    EXPECT_TRUE(all_zero(0, 2 * block));
    EXPECT_EQ(status(0, 4 * block, 4),
              (std::vector<Extent>{{2 * block, false, false}, {2 * block, true, true}}));
    EXPECT_EQ(disk->allocated_bytes(), 2 * block) << "counted, though its memory went back";
}

TEST_F(MemoryDiskTest, TouchesNoMemoryToZeroWhatIsZeroAlready) {
    make(4 * block, no_bound);
    EXPECT_EQ(zero_keeping_space(0, 4 * block), fine);
    EXPECT_EQ(released, 0u);
    EXPECT_EQ(disk->allocated_bytes(), 4 * block);
}

TEST_F(MemoryDiskTest, ReportsAsManyExtentsAsThereIsRoomFor) {
    make(200 * block, no_bound);
    for (std::uint64_t i : {1u, 3u, 64u, 65u, 127u, 199u}) ASSERT_EQ(write(i * block, 1, 1), fine);
    auto all = status(0, 200 * block, 100);
    std::vector<Extent> expected{{block, true, true},      {block, false, false},
                                 {block, true, true},      {block, false, false},
                                 {60 * block, true, true}, {2 * block, false, false},
                                 {61 * block, true, true}, {block, false, false},
                                 {71 * block, true, true}, {block, false, false}};
    EXPECT_EQ(all, expected);
    EXPECT_EQ(status(0, 200 * block, 3), std::vector<Extent>(all.begin(), all.begin() + 3));
    EXPECT_TRUE(status(0, 200 * block, 0).empty());
    EXPECT_TRUE(status(block, 0, 4).empty());
    EXPECT_EQ(status(block + 1, block, 4),
              (std::vector<Extent>{{block - 1, false, false}, {1, true, true}}));
}

TEST_F(MemoryDiskTest, LendsItsOwnMemory) {
    make(4 * block, no_bound);
    auto lent = disk->lend(BlockOperation::write, 10, block);
    ASSERT_EQ(lent.size(), block);
    EXPECT_EQ(disk->allocated_bytes(), 2 * block);
    std::ranges::fill(lent, std::byte{0x5a});
    TestRequest request(BlockOperation::write, 10, block);
    disk->submit(request.with_memory(lent));
    EXPECT_TRUE(request.succeeded());
    EXPECT_EQ(test::contents(*disk, 10, block), Bytes(block, std::byte{0x5a}));

    auto reading = disk->lend(BlockOperation::read, 2 * block + 1, 5);
    EXPECT_EQ(reading.data(), lent.data() - 10 + 2 * block + 1);
    EXPECT_EQ(disk->allocated_bytes(), 2 * block) << "lending to a reader makes no data";
}

TEST_F(MemoryDiskTest, LendsNothingToWriteBeyondItsBound) {
    make(4 * block, block);
    EXPECT_TRUE(disk->lend(BlockOperation::write, 0, 2 * block).empty());
    EXPECT_EQ(disk->allocated_bytes(), 0u);
    EXPECT_EQ(disk->lend(BlockOperation::read, 0, 2 * block).size(), 2 * block);
}

TEST_F(MemoryDiskTest, TakesALentWriteEvenWhereATrimCameBetween) {
    make(2 * block, block);
    auto lent = disk->lend(BlockOperation::write, 0, block);
    EXPECT_EQ(perform(BlockOperation::trim, 0, block), fine);
    std::ranges::fill(lent, std::byte{0x5a});
    TestRequest request(BlockOperation::write, 0, block);
    disk->submit(request.with_memory(lent));
    EXPECT_TRUE(request.succeeded());
    EXPECT_EQ(status(0, block, 1), (std::vector<Extent>{{block, false, false}}));
    EXPECT_EQ(perform(BlockOperation::write_zeroes, 0, block), fine);
    EXPECT_TRUE(all_zero(0, block));
}

// Bytes that came into lent memory are on the disk before the write is submitted. If the write is
// then refused, there is no block for them: a hole that does not read as zero would never go away.
TEST_F(MemoryDiskTest, LeavesNoBytesOfARefusedLentWriteInAHole) {
    make(3 * block, block);
    auto lent = disk->lend(BlockOperation::write, block / 2, block);
    ASSERT_TRUE(lent.empty()) << "needs two blocks";
    lent = disk->lend(BlockOperation::write, 10, 100);
    ASSERT_EQ(lent.size(), 100u);
    EXPECT_EQ(perform(BlockOperation::trim, 0, block), fine);
    EXPECT_EQ(write(block, 1, 0x11), fine) << "and takes the room";
    std::ranges::fill(lent, std::byte{0x5a});
    TestRequest request(BlockOperation::write, 10, 100);
    disk->submit(request.with_memory(lent));
    EXPECT_EQ(request.failure(), Code::exhausted);
    EXPECT_EQ(status(0, block, 1), (std::vector<Extent>{{block, true, true}}));
    EXPECT_TRUE(all_zero(0, block));
}

}  // namespace
}  // namespace weft::block
