// SPDX-License-Identifier: Apache-2.0
#include "block/copier.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "block/error_filter.hpp"
#include "block/heap_memory.hpp"
#include "block/memory_disk.hpp"

namespace weft::block {
namespace {

constexpr std::uint64_t size = 3 << 20;

struct Disk {
    MemoryDisk device{std::make_unique<HeapMemory>(size), size};

    Buffer bytes(std::uint64_t at, std::uint64_t length) {
        return device.lend(BlockOperation::write, at, length);
    }
    ConstBuffer contents() { return device.lend(BlockOperation::read, 0, size); }
};

void fill(Buffer place, unsigned seed) {
    std::mt19937 chance(seed);
    for (auto& octet : place) octet = static_cast<std::byte>(chance());
}

std::optional<Result<void>> copy(Copier& copier) {
    std::optional<Result<void>> outcome;
    copier.start([&](Result<void> result) { outcome = result; });
    return outcome;
}

TEST(Copier, CopiesDataAndLeavesHoles) {
    Disk source, target;
    fill(source.bytes(0, 4096), 1);
    fill(source.bytes(1 << 20, 300'000), 2);
    fill(source.bytes(size - 512, 512), 3);
    fill(target.bytes(2 << 20, 4096), 4);  // must be gone afterwards
    Copier copier(source.device, target.device, {.pieces_in_flight = 3, .piece_bytes = 65536});
    auto outcome = copy(copier);
    ASSERT_TRUE(outcome && outcome->has_value());
    EXPECT_EQ(std::memcmp(source.contents().data(), target.contents().data(), size), 0);
    EXPECT_EQ(copier.bytes_done(), size);
    EXPECT_EQ(copier.bytes_moved(), source.device.allocated_bytes());
    EXPECT_EQ(target.device.allocated_bytes(), source.device.allocated_bytes());
}

TEST(Copier, TellsOfAFailedReadAndStops) {
    Disk source, target;
    fill(source.bytes(0, size), 1);
    ErrorFilter failing(source.device);
    ASSERT_TRUE(failing.add({.operation = BlockOperation::read, .range = {{1 << 20, 1}}}));
    Copier copier(failing, target.device, {.pieces_in_flight = 4, .piece_bytes = 65536});
    auto outcome = copy(copier);
    ASSERT_TRUE(outcome && !outcome->has_value());
    EXPECT_EQ(outcome->error().code, Code::io_failed);
    EXPECT_LT(copier.bytes_done(), size);
}

TEST(Copier, TellsOfAFailedWriteAndOfAFailedFlush) {
    for (auto operation : {BlockOperation::write, BlockOperation::flush}) {
        Disk source, target;
        fill(source.bytes(0, 4096), 1);
        ErrorFilter failing(target.device);
        ASSERT_TRUE(failing.add({.operation = operation}));
        Copier copier(source.device, failing, {});
        auto outcome = copy(copier);
        ASSERT_TRUE(outcome && !outcome->has_value());
        EXPECT_EQ(outcome->error().code, Code::io_failed);
    }
}

}  // namespace
}  // namespace weft::block
